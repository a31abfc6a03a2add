//! [`Money`]: what a request has paid.

use crate::charging::charge::Receipt;
use crate::charging::{EarlyReceipt, HoldGuard};
use crate::error::Error;

/// What can still be refunded or settled. It is taken by the first that does so.
pub(super) enum Money {
    /// The charge may still be on its way to disk.
    Charged(EarlyReceipt),
    /// The charge did not get to disk.
    NotCharged(Error),
    Held(HoldGuard),
    Captured,
    Refunded,
}

impl Money {
    pub(super) const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Charged(early) => Some(early.receipt()),
            Self::Held(guard) => Some(guard.receipt()),
            Self::NotCharged(_) | Self::Captured | Self::Refunded => None,
        }
    }
}
