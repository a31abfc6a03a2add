//! All parts of the storage contract together, and several steps in one transaction.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::store::{
    AuthorizationStore, BrowserSessionStore, ChildAccountStore, EventStore, ImportStore, LogStore, MemberStore,
    OAuthStore, OperatorStore, PaymentStore, PriceStore, RefillStore, SignupStore, StoreError, UsageSinkStore,
};

/// A store for everything that a service can offer.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::service::SignupSettings;
/// use metering_core::{FullStore, Service};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), metering_core::StoreError> {
/// let store: Arc<dyn FullStore> = Arc::new(SqliteStore::in_memory()?); // or another backend, by the configuration
/// let service = Service::with_defaults(store.clone()).with_signup(store, SignupSettings::default());
/// # assert!(service.signups().pending("BCDF-GHJK").await.is_err());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait FullStore:
    PaymentStore
    + SignupStore
    + OperatorStore
    + RefillStore
    + EventStore
    + AuthorizationStore
    + ImportStore
    + LogStore
    + PriceStore
    + BrowserSessionStore
    + MemberStore
    + ChildAccountStore
    + OAuthStore
    + UsageSinkStore
{
    /// Runs `steps` in one transaction, after all earlier writes and before all later ones, and returns their result.
    /// None of their writes are kept if they fail. Use [`in_transaction`], which has the types.
    ///
    /// The steps may run more than once, so they only read and write through their store argument, and wait for nothing
    /// else. Only charges change the rows that the steps read, unless [`FullStore::lock_account`] blocks them. It does
    /// not charge ([`Store::commit`](crate::Store::commit)), and lists neither activity nor some of the deliveries.
    async fn transact(&self, steps: Steps) -> Result<Erased, StoreError>;

    /// The account with that id. In [`FullStore::transact`], no charge changes it until the transaction ends.
    async fn lock_account(&self, id: &AccountId) -> Result<Option<Account>, StoreError>;
}

/// The result of a transaction, whatever its type.
pub type Erased = Box<dyn Any + Send + Sync>;

/// The unfinished work.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The steps of [`FullStore::transact`].
pub type Steps = Arc<dyn for<'a> Fn(&'a dyn FullStore) -> Pending<'a, Result<Erased, StoreError>> + Send + Sync>;

/// Runs `steps` with `args` in one transaction, as in [`FullStore::transact`].
///
/// ```
/// use metering_core::money::{LedgerKind, NewLedgerEntry};
/// use metering_core::store::in_transaction;
/// use metering_core::{Clock, FullStore, Service, Store, StoreError, SystemClock};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = std::sync::Arc::new(SqliteStore::in_memory()?);
/// let service = Service::with_defaults(store.clone());
/// let (account, _) = service.open_account("my-agent", "2".parse()?).await?;
///
/// let grant = NewLedgerEntry::new(LedgerKind::Adjustment, "3".parse()?, "Ticket 311");
/// let args = (account.id.clone(), grant, SystemClock.now());
/// let failed: Result<(), _> = in_transaction(&*store, args, |store, (id, grant, now)| {
///     Box::pin(async move {
///         store.post_entry(id, grant.clone(), *now).await?;
///         Err(StoreError::Unavailable("changed my mind".into()))
///     })
/// })
/// .await;
/// assert!(failed.is_err());
/// assert_eq!(store.account(&account.id).await?.unwrap().totals.balance.to_string(), "2");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of the steps, and an error of the store.
pub async fn in_transaction<A, T>(
    store: &dyn FullStore,
    args: A,
    steps: for<'a> fn(&'a dyn FullStore, &'a A) -> Pending<'a, Result<T, StoreError>>,
) -> Result<T, StoreError>
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let result = store.transact(erased(args, steps)).await?;
    let mismatch = |_| StoreError::Broken("a transaction returned a value of another type".to_owned());
    result.downcast().map(|value| *value).map_err(mismatch)
}

fn erased<A, T>(args: A, steps: for<'a> fn(&'a dyn FullStore, &'a A) -> Pending<'a, Result<T, StoreError>>) -> Steps
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let args = Arc::new(args);
    Arc::new(move |store| {
        let args = Arc::clone(&args);
        Box::pin(async move { Ok(Box::new(steps(store, &args).await?) as Erased) })
    })
}
