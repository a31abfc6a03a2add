//! The ledger: an append-only list of every change to a balance except usage.

use crate::access::account::{AccountId, Totals};
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::named_enum::named_enum;

named_enum! {
    /// Why a ledger entry changed a balance.
    pub enum LedgerKind {
        /// The free credits of a new account.
        SignupBonus = "signup_bonus",
        /// The plan whose payment created the account.
        PurchasePaySignup = "purchase_pay_signup",
        /// A plan bought later.
        PurchaseTopup = "purchase_topup",
        /// A purchase at the service that the account was imported from.
        PurchaseImported = "purchase_imported",
        /// Recurring credits.
        Refill = "refill",
        /// An operator's grant or correction.
        Adjustment = "adjustment",
        /// Credits taken back because a reorganisation removed their payment, or its processor reversed it.
        PaymentReversed = "payment_reversed",
        /// The same credits restored because the payment was mined after all, or the reversal ended.
        PaymentRestored = "payment_restored",
        /// Credits from a parent account or a child account.
        TransferIn = "transfer_in",
        /// Credits that were given to a parent account or a child account.
        TransferOut = "transfer_out",
    }
}

impl LedgerKind {
    /// The kinds that first record a purchase made here, of which there is one for each transaction.
    /// [`Self::SETTLEMENTS`] may reverse and restore it later.
    pub const PURCHASES: [Self; 2] = [Self::PurchasePaySignup, Self::PurchaseTopup];
    /// The kinds that only [`settle_payment`](crate::PaymentStore::settle_payment) and
    /// [`reverse_processor_payment`](crate::PaymentStore::reverse_processor_payment) write.
    pub const SETTLEMENTS: [Self; 2] = [Self::PaymentReversed, Self::PaymentRestored];

    /// Whether the entry counts as purchased; all others count as granted.
    #[must_use]
    pub const fn is_purchase(self) -> bool {
        match self {
            Self::PurchasePaySignup
            | Self::PurchaseTopup
            | Self::PurchaseImported
            | Self::PaymentReversed
            | Self::PaymentRestored => true,
            Self::SignupBonus | Self::Refill | Self::Adjustment | Self::TransferIn | Self::TransferOut => false,
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

/// An entry to write.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::money::{LedgerKind, NewLedgerEntry};
/// use metering_core::store::Posted;
/// use metering_core::{Clock, MemoryStore, Service, Store, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new());
/// let service = Service::with_defaults(store.clone());
/// let (account, _) = service.open_account("my-agent", "2".parse()?).await?;
///
/// let entry = NewLedgerEntry::new(LedgerKind::Adjustment, "0.5".parse()?, "Sorry for the outage on Monday");
/// let Posted::Account(account) = store.post_entry(&account.id, entry, SystemClock.now()).await? else {
///     return Err("the account was revoked".into());
/// };
/// assert_eq!(account.totals.balance.to_string(), "2.5");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLedgerEntry {
    /// The reason.
    pub kind: LedgerKind,
    /// The change to the balance, signed.
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

    /// An account's totals after this entry; `None` when one would be out of range.
    #[must_use]
    pub fn applied_to(&self, totals: Totals) -> Option<Totals> {
        let balance = totals.balance.checked_add(self.amount)?;
        // Held credits may return to the balance.
        balance.checked_add(totals.held)?;
        if self.kind.is_purchase() {
            let purchased = totals.purchased.checked_add(self.amount)?;
            Some(Totals { balance, purchased, ..totals })
        } else {
            let granted = totals.granted.checked_add(self.amount)?;
            Some(Totals { balance, granted, ..totals })
        }
    }
}

/// A written entry. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its number in this store, increasing with time.
    pub id: i64,
    /// The account whose balance it changed.
    pub account: AccountId,
    /// The reason.
    pub kind: LedgerKind,
    /// The change to the balance, signed.
    pub amount: Credits,
    /// A sentence for the account's owner and the operator's records.
    pub description: String,
    /// The payment that it came from, if any.
    pub payment: Option<PaymentRef>,
    /// When it was written.
    pub created_at: Timestamp,
}
