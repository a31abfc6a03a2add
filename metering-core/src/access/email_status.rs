//! Whether an account holds its email address, and whether its owner has shown that they read mail sent there.

use crate::clock::Timestamp;
use crate::money::credits::Credits;

/// The state of an account's email address.
///
/// Among the accounts that are not revoked, at most one *holds* an address. An account that waits for verification
/// does not hold its address, so typing someone else's address does not block its owner.
///
/// ```
/// use metering_core::access::EmailStatus;
///
/// assert!(EmailStatus::Unchecked.is_holding());
/// assert!(!EmailStatus::Pending { free_credits: "2".parse()? }.is_holding());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmailStatus {
    /// The account was opened without verification. It holds its address, if it has one.
    #[default]
    Unchecked,
    /// The owner has not followed a link to the address yet. The account does not hold it.
    Pending {
        /// The free credits that the account gets when the address is verified; may be zero.
        free_credits: Credits,
    },
    /// The owner followed a link that was sent to the address. The account holds it.
    Verified {
        /// When the link was followed.
        at: Timestamp,
    },
}

impl EmailStatus {
    /// Whether an account with this status holds its address.
    #[must_use]
    pub const fn is_holding(self) -> bool {
        !matches!(self, Self::Pending { .. })
    }

    /// Whether the address was verified. Only such an address may get recovery links.
    #[must_use]
    pub const fn is_verified(self) -> bool {
        matches!(self, Self::Verified { .. })
    }
}
