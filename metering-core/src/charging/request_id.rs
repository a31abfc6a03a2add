//! The caller's id for a request, which makes retries safe.

/// The caller's id for a request: 1 to 128 visible ASCII characters, unique within the account for 24 hours.
///
/// ```
/// use metering_core::{Charge, Credits, MemoryStore, RequestId, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// let charge = Charge::new(&key, Credits::BASE_CALL, "GET", "/price");
/// let charge = Charge { request_id: Some(RequestId::parse("order-17")?), ..charge };
/// let first = service.charge(charge.clone()).await?;
/// let again = service.charge(charge).await?;
/// assert!(again.repeated);
/// assert_eq!(again.balance, first.balance);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(String);

/// Prefix of an idempotency key in its stored form.
const KEY_PREFIX: &str = "key ";

/// The text is not a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 visible ASCII characters")]
pub struct RequestIdError;

impl RequestId {
    /// How long a request id is remembered.
    pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

    /// Parses an id.
    ///
    /// # Errors
    /// When the text is empty, too long, or has other characters.
    pub fn parse(text: &str) -> Result<Self, RequestIdError> {
        let visible = text.bytes().all(|b| b.is_ascii_graphic());
        if visible && (1..=128).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(RequestIdError) }
    }

    /// The id of an idempotency key with this text.
    pub(crate) fn of_key(text: &str) -> Self {
        Self(format!("{KEY_PREFIX}{text}"))
    }

    /// Parses an id in its stored form.
    ///
    /// # Errors
    /// As [`RequestId::parse`].
    pub fn from_stored(text: &str) -> Result<Self, RequestIdError> {
        Self::parse(text.strip_prefix(KEY_PREFIX).unwrap_or(text))?;
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
