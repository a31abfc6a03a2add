/// A position in a list, for fetching the next page. Opaque: each backend has its own format, and any other text is an
/// error.
///
/// Following the cursors returns every item that existed at the start exactly once, even if others are written
/// meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Makes a cursor, in the backend's format.
    #[must_use]
    pub fn new(cursor: impl Into<String>) -> Self {
        Self(cursor.into())
    }

    /// The cursor in the backend's format.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A page of a list.
///
/// ```
/// use metering_core::{Account, Store, StoreError};
///
/// /// All accounts of a store, a hundred at a time.
/// async fn all(store: &dyn Store) -> Result<Vec<Account>, StoreError> {
///     let (mut accounts, mut after) = (Vec::new(), None);
///     loop {
///         let page = store.accounts(after.as_ref(), 100).await?;
///         accounts.extend(page.items);
///         after = page.next;
///         if after.is_none() {
///             return Ok(accounts);
///         }
///     }
/// }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert!(all(&metering_core::MemoryStore::new()).await?.is_empty());
/// # Ok::<(), StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor for the next page; `None` at the end.
    pub next: Option<Cursor>,
}
