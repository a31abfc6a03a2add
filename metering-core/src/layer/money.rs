//! [`Money`]: what a request has paid.

use crate::charging::HoldGuard;
use crate::charging::charge::Receipt;

/// What can still be refunded or settled. It is taken by the first that does so.
pub(super) enum Money {
    Charged(Receipt),
    Held(HoldGuard),
    Captured,
    Refunded,
}

impl Money {
    pub(super) const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Charged(receipt) => Some(receipt),
            Self::Held(guard) => Some(guard.receipt()),
            Self::Captured | Self::Refunded => None,
        }
    }
}
