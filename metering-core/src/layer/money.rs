//! [`Money`]: what a request has paid.

use crate::charging::charge::Receipt;
use crate::charging::{EarlyReceipt, HoldGuard};
use crate::error::Error;

/// What can still be refunded or settled. It is taken by the first that does so.
pub(super) enum Money {
    /// The charge may still be on its way to disk.
    Charged(EarlyReceipt),
    /// The flush failed. The charge may be on disk all the same, and is never refunded.
    FlushFailed(Error),
    Held(HoldGuard),
    Captured,
    Refunded,
}

impl Money {
    pub(super) const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Charged(early) => Some(early.receipt()),
            Self::Held(guard) => Some(guard.receipt()),
            Self::FlushFailed(_) | Self::Captured | Self::Refunded => None,
        }
    }
}
