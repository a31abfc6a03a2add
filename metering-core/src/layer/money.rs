//! [`Money`]: the charge, hold or payment of a request.

use crate::charging::charge::Receipt;
use crate::charging::refusal::Refusal;
use crate::charging::{EarlyReceipt, ExpectedCharge, HoldGuard};
use crate::error::Error;

/// The part that can still be refunded or settled. Whoever takes it first settles it.
pub(super) enum Money {
    /// The charge may not be on disk yet.
    Charged(EarlyReceipt),
    /// The charge is not decided yet. Only its account and price are known.
    Expected(ExpectedCharge),
    /// The charge was refused after the request was started, so there is nothing to refund.
    Refused(Refusal),
    /// The charge failed, or was refused with this error. After a failed flush it may be on disk all the same, and is never
    /// refunded.
    Failed(Error),
    Held(HoldGuard),
    Captured,
    Refunded,
}

impl Money {
    /// Whether the charge is not on disk yet.
    pub(super) const fn is_pending(&self) -> bool {
        match self {
            Self::Charged(early) => !early.is_on_disk(),
            Self::Expected(_) => true,
            Self::Refused(_) | Self::Failed(_) | Self::Held(_) | Self::Captured | Self::Refunded => false,
        }
    }

    pub(super) const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Charged(early) => Some(early.receipt()),
            Self::Held(guard) => Some(guard.receipt()),
            Self::Expected(_) | Self::Refused(_) | Self::Failed(_) | Self::Captured | Self::Refunded => None,
        }
    }
}
