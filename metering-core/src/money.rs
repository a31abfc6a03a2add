//! Exact amounts of credits, and the ledger of balance changes.
//!
//! No amount is ever a float. Ledger entries are only appended: a mistake is corrected by another entry.

pub(crate) mod alert;
pub(crate) mod credit_sum;
pub(crate) mod credits;
pub(crate) mod currency;
pub(crate) mod decimal;
pub(crate) mod ledger;
pub(crate) mod refill;
pub(crate) mod runway;

pub use alert::{AlertLevel, BalanceAlert};
pub use credit_sum::CreditSum;
pub use credits::{ATOMS_PER_CREDIT, Credits, printed, printed_if_any};
pub use currency::{Currency, CurrencyError};
pub use decimal::DecimalError;
pub use ledger::{LedgerEntry, LedgerKind, NewLedgerEntry, PaymentRef};
pub use refill::{Refill, RefillError};
pub use runway::Runway;
