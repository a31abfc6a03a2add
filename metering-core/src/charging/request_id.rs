//! The caller's id for a request, which makes retries safe.

use crate::access::key_id::KeyNumber;

/// The caller's id for a request: 1 to 128 visible ASCII characters, unique for its key for 24 hours.
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
/// let charge = charge.with_request_id(RequestId::parse("order-17")?);
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
/// Prefix of a proxy's id of a request in its stored form.
const PROXY_PREFIX: &str = "proxy ";
/// Prefix of the number of a key other than the account's first. Ids have no spaces, so the stored forms differ.
const NUMBER_PREFIX: &str = "@";

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

    /// The id that a proxy assigned to a request. It contains a space, so it never equals an id that a client chose.
    pub(crate) fn of_proxy(&self) -> Self {
        Self(format!("{PROXY_PREFIX}{}", self.0))
    }

    /// The stored form of the id for a request with this key of its account. Ids are per key, so no key can repeat
    /// another key's charge or get its refund.
    ///
    /// ```
    /// use metering_core::RequestId;
    /// use metering_core::access::KeyNumber;
    ///
    /// let id = RequestId::parse("order-17")?;
    /// assert_eq!(id.of_key_number(KeyNumber::FIRST), id);
    /// let other = id.of_key_number(KeyNumber::new(7));
    /// assert_eq!(RequestId::from_stored(other.as_str())?, other);
    /// assert_ne!(other, id);
    /// # Ok::<(), metering_core::charging::RequestIdError>(())
    /// ```
    #[must_use]
    pub fn of_key_number(&self, key: KeyNumber) -> Self {
        if key.is_first() { self.clone() } else { Self(format!("{NUMBER_PREFIX}{} {}", key.get(), self.0)) }
    }

    /// Parses an id in its stored form.
    ///
    /// # Errors
    /// See [`RequestId::parse`].
    pub fn from_stored(text: &str) -> Result<Self, RequestIdError> {
        let numbered = text.strip_prefix(NUMBER_PREFIX).and_then(|rest| rest.split_once(' '));
        let of_key = numbered.filter(|(number, _)| number.parse::<u32>().is_ok()).map_or(text, |(_, rest)| rest);
        let id = of_key.strip_prefix(KEY_PREFIX).or_else(|| of_key.strip_prefix(PROXY_PREFIX));
        Self::parse(id.unwrap_or(of_key))?;
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
