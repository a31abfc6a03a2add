//! The ledger: every change of a balance that is not a request, append-only.

use serde::Serialize;

use crate::account::{AccountId, Totals};
use crate::clock::Timestamp;
use crate::credits::Credits;
use crate::transaction::TxRef;

/// Why credits came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerKind {
    /// The free credits of a new account.
    SignupBonus,
    /// The plan bought when the account was made.
    PurchasePaySignup,
    /// A plan bought later.
    PurchaseTopup,
    /// An operator's grant or correction.
    Adjustment,
    /// The credits of a payment that a reorganisation of its chain removed, taken back.
    PaymentReversed,
    /// The same credits again, when the payment was mined after all.
    PaymentRestored,
}

impl LedgerKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::SignupBonus,
        Self::PurchasePaySignup,
        Self::PurchaseTopup,
        Self::Adjustment,
        Self::PaymentReversed,
        Self::PaymentRestored,
    ];
    /// The kinds of entries that buy something, as they are first written.
    pub const PURCHASES: [Self; 2] = [Self::PurchasePaySignup, Self::PurchaseTopup];
    /// The kinds that only [`settle_payment`](crate::PaymentStore::settle_payment) writes.
    pub const SETTLEMENTS: [Self; 2] = [Self::PaymentReversed, Self::PaymentRestored];

    /// The kind's name on the wire and in stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SignupBonus => "signup_bonus",
            Self::PurchasePaySignup => "purchase_pay_signup",
            Self::PurchaseTopup => "purchase_topup",
            Self::Adjustment => "adjustment",
            Self::PaymentReversed => "payment_reversed",
            Self::PaymentRestored => "payment_restored",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether the entry counts as purchased; everything else counts as granted.
    #[must_use]
    pub const fn is_purchase(self) -> bool {
        match self {
            Self::PurchasePaySignup | Self::PurchaseTopup | Self::PaymentReversed | Self::PaymentRestored => true,
            Self::SignupBonus | Self::Adjustment => false,
        }
    }
}

/// The payment behind an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRef {
    /// The payment's transaction.
    pub tx: TxRef,
    /// The plan that it bought, if any.
    pub plan_id: Option<String>,
}

/// An entry to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLedgerEntry {
    /// Why.
    pub kind: LedgerKind,
    /// How much, signed.
    pub amount: Credits,
    /// A sentence for the account's owner and the operator's records.
    pub description: String,
    /// The payment that it came from, if any.
    pub payment: Option<PaymentRef>,
}

impl NewLedgerEntry {
    /// An entry without a payment.
    #[must_use]
    pub fn new(kind: LedgerKind, amount: Credits, description: impl Into<String>) -> Self {
        Self { kind, amount, description: description.into(), payment: None }
    }

    /// What an account has after this entry; `None` when an amount could not be held.
    #[must_use]
    pub fn applied_to(&self, totals: Totals) -> Option<Totals> {
        let balance = totals.balance.checked_add(self.amount)?;
        if self.kind.is_purchase() {
            let purchased = totals.purchased.checked_add(self.amount)?;
            Some(Totals { balance, purchased, ..totals })
        } else {
            let granted = totals.granted.checked_add(self.amount)?;
            Some(Totals { balance, granted, ..totals })
        }
    }
}

/// An entry as written; never changed afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its number in this store, rising with time.
    pub id: i64,
    /// Whose balance it changed.
    pub account: AccountId,
    /// Why.
    pub kind: LedgerKind,
    /// How much, signed.
    pub amount: Credits,
    /// A sentence for the account's owner and the operator's records.
    pub description: String,
    /// The payment that it came from, if any.
    pub payment: Option<PaymentRef>,
    /// When.
    pub created_at: Timestamp,
}
