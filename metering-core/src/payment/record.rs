//! The record of a payment that was turned into credits: what makes it count once.

use crate::account::AccountId;
use crate::clock::Timestamp;
use crate::payment::{Payment, PaymentSettlement};

/// What a payment was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentUse {
    /// It made an account.
    PaySignup,
    /// Its account registered it.
    Topup,
    /// An operator gave it to an account.
    Assigned,
}

impl PaymentUse {
    /// Every use.
    pub const ALL: [Self; 3] = [Self::PaySignup, Self::Topup, Self::Assigned];

    /// The use's name in stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaySignup => "pay_signup",
            Self::Topup => "topup",
            Self::Assigned => "assigned",
        }
    }

    /// The use of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|used| used.as_str() == name)
    }
}

/// A payment and the account that was credited with it. There is at most one for each transaction, for ever. Account,
/// payer and amount never change; the block and the settlement do while the payment is not final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRecord {
    /// The payment.
    pub payment: Payment,
    /// Who has the credits.
    pub account: AccountId,
    /// What it was used for.
    pub used_as: PaymentUse,
    /// The plan that was credited, if any.
    pub plan_id: Option<String>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Whether it can still be undone.
    pub settlement: PaymentSettlement,
}
