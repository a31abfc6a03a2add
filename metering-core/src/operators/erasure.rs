//! The records that the erasure of a person removes, and for how long records of people are kept.

use std::time::Duration;

use crate::access::account::Account;

/// The changes of an erasure, planned or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The account, afterwards.
    pub account: Account,
    /// The records of its owner that were found, by kind. Kinds without any are left out, so it is empty for an account
    /// that is erased.
    pub parts: Vec<ErasedPart>,
}

/// Records of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErasedPart {
    /// The kind, such as `webhooks`.
    pub kind: &'static str,
    /// How many.
    pub records: u64,
}

/// For how long records of people's actions are kept. `None` means the store's own retention.
///
/// ```
/// use std::time::Duration;
///
/// use metering_core::operators::Retention;
///
/// assert!(Retention::default().is_unlimited());
/// let week = Some(Duration::from_secs(7 * 24 * 60 * 60));
/// assert!(!Retention { events: week, ..Retention::default() }.is_unlimited());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// The paths of requests in recent activity. The entries are kept.
    pub activity: Option<Duration>,
    /// Events, with their deliveries.
    pub events: Option<Duration>,
    /// Finished deliveries: delivered or parked.
    pub deliveries: Option<Duration>,
    /// Entries of the audit log.
    pub audit: Option<Duration>,
}

impl Retention {
    /// Whether everything is kept for the store's own retention.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}
