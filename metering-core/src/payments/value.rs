//! The value of a payment in a currency, for receipts.

use crate::clock::Timestamp;
use crate::money::currency::Currency;
use crate::payments::exchange_rate::{CurrencyAmount, ExchangeRate};

/// The value of a payment in the operator's currency when it was credited. It is stored then, and never computed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentValue {
    /// The currency.
    pub currency: Currency,
    /// The amount; `None` if no rate was known at that moment.
    pub converted: Option<ConvertedAmount>,
}

/// An amount of a currency, and the rate that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedAmount {
    /// The amount.
    pub amount: CurrencyAmount,
    /// The value of one token.
    pub rate: ExchangeRate,
    /// The source of the rate.
    pub source: String,
    /// The time of the rate.
    pub as_of: Timestamp,
}
