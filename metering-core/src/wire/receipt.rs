//! Receipts for purchases.

use serde::{Deserialize, Serialize};

use crate::money::credits::Credits;
use crate::payments::PaymentValue;
use crate::payments::credit_note::CreditNote;
use crate::payments::{CurrencyAmount, SalesTax};
use crate::wire::buyer::BuyerDocument;

/// The response to `GET /credits/receipts`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReceiptsDocument {
    /// The account's id.
    pub org_id: String,
    /// A receipt for each purchase, newest first.
    pub receipts: Vec<ReceiptDocument>,
    /// The value of `before` for the receipts that follow; null when there are none.
    pub next: Option<i64>,
}

/// The receipt for a purchase, and the response to `GET /credits/receipt`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReceiptDocument {
    /// The receipt's number. It never changes and is unique among the receipts of this service.
    pub number: String,
    /// `R-`, the chain's id and the beginning of the transaction's hash: the number too, unless the operator had set
    /// consecutive numbers when the payment was credited. It finds the receipt as well.
    pub reference: String,
    /// `paid`; `reversed` while a chain reorganisation has removed the payment, or its processor has taken all of it
    /// back, with its credits; or `partly_reversed`, if its processor has taken back a part.
    pub status: String,
    /// When the credits were added, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub issued_at: String,
    /// The seller of the credits.
    pub seller: SellerDocument,
    /// The account that bought them.
    pub customer: CustomerDocument,
    /// The buyer, as set by the account's owner at the time of purchase; null if the receipt names nobody.
    pub buyer: Option<BuyerDocument>,
    /// The plan that was bought; null for a payment that the operator assigned without a plan.
    pub plan_id: Option<String>,
    /// The plan's name for people when it was bought; null when it is not known.
    pub plan_label: Option<String>,
    /// Credits added in all, bonus included.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// The bonus in `credits`; null for a payment without a plan, and for one that was
    /// credited before this service stored bonuses.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub bonus_credits: Option<Credits>,
    /// The payment.
    pub payment: PaymentDocument,
    /// The tax in the amount; null if the operator had set none when the payment was credited, and for a payment on a chain
    /// without a value in a currency.
    pub tax: Option<TaxDocument>,
    /// One credit note each time the payment, or a part of it, was taken back; oldest first.
    pub credit_notes: Vec<CreditNoteDocument>,
}

/// An amount that was taken back from a payment. It corrects the receipt that it is part of.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreditNoteDocument {
    /// Its number. It never changes.
    pub number: String,
    /// `C-`, the part after `R-` in the receipt's reference, and a part of its own. It is also the number, unless the
    /// operator had set consecutive numbers when it was issued.
    pub reference: String,
    /// When the credits were taken back, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub issued_at: String,
    /// The amount of the payment that was taken back, in its token or currency, as a string: at most the rest that the
    /// credit notes in force at that time left. Null when the token's decimals are no longer known.
    pub amount: Option<String>,
    /// Why it was taken back; may be empty.
    pub reason: String,
    /// When the credits returned, as RFC 3339: a dispute was won, or the transaction was mined after all. Null while it
    /// is in force.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub cancelled_at: Option<String>,
    /// The tax in the amount taken back, at the rate of the receipt; null if the receipt has none. If credit notes take
    /// back the whole payment, their tax adds up to that of the receipt.
    pub tax: Option<TaxDocument>,
}

impl CreditNoteDocument {
    /// With the number that is derived from the payment, and without tax.
    pub(crate) fn of(note: &CreditNote, decimals: Option<u8>) -> Self {
        Self {
            number: note.number.to_string(),
            reference: note.number.to_string(),
            tax: None,
            issued_at: note.issued_at.to_string(),
            amount: decimals.map(|decimals| note.amount.to_human(decimals)),
            reason: note.reason.clone(),
            cancelled_at: note.cancelled_at.map(|at| at.to_string()),
        }
    }

    /// The amount taken back, for people: `2.5 USDC`; `paid` if its decimals are not known.
    #[must_use]
    pub fn credited(&self, token_symbol: Option<&str>, paid: &str) -> String {
        match (&self.amount, token_symbol) {
            (Some(amount), Some(symbol)) => format!("{amount} {symbol}"),
            _ => paid.to_owned(),
        }
    }
}

/// The seller of the credits, as the operator configured it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SellerDocument {
    /// The name.
    pub name: String,
    /// The postal address, line by line.
    pub address: Vec<String>,
    /// The tax number, if any.
    pub tax_id: Option<String>,
    /// An email address or URL for questions, if any.
    pub contact: Option<String>,
}

/// The buyer of the credits.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CustomerDocument {
    /// The account's id.
    pub org_id: String,
    /// The name that its owner gave it.
    pub agent_name: String,
    /// Its owner's email address, if any.
    pub email: Option<String>,
}

/// The payment of a purchase.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentDocument {
    /// The processor that took the payment, such as `stripe`; absent for a payment on a chain. The chain fields are
    /// then empty or null: `chain_id` is 0, and the token is the currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// The processor's id of the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_id: Option<String>,
    /// How much of the amount was refunded or disputed, as a string; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_reversed: Option<String>,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The chain's name; null when it is no longer configured.
    pub chain_name: Option<String>,
    /// The transaction.
    pub tx_hash: String,
    /// The transaction's page of a block explorer, if one is known for the chain.
    pub explorer_url: Option<String>,
    /// The wallet that paid (EIP-55).
    pub payer: String,
    /// The address that was paid (EIP-55).
    pub recipient: String,
    /// The token's symbol; null when no plan is sold for it any longer.
    pub token_symbol: Option<String>,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The amount in tokens, as a string; null when the token's decimals are no longer known.
    pub token_amount: Option<String>,
    /// The amount in the token's smallest unit, as a string of digits.
    pub amount_atomic: String,
    /// When the payment was mined, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub mined_at: String,
    /// The payment's value in the operator's currency; null if the operator had set no currency when it was credited,
    /// and for a processor's payment, whose amount is in one.
    pub value: Option<ValueDocument>,
}

/// The value of a payment in a currency when it was credited. It is never computed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ValueDocument {
    /// The currency (ISO 4217).
    pub currency: String,
    /// The amount, as a string with the decimals of the currency; null, like the members that follow, if no rate was known
    /// then.
    pub amount: Option<String>,
    /// The value of one token, as a string.
    pub rate: Option<String>,
    /// The source of the rate.
    pub rate_source: Option<String>,
    /// The time of the rate, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub rate_as_of: Option<String>,
}

/// The tax in an amount of a currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaxDocument {
    /// Its name, such as `VAT`.
    pub name: String,
    /// Its rate in percent, as a string; 0 if the buyer owes it.
    pub percent: String,
    /// The currency of the amounts (ISO 4217).
    pub currency: String,
    /// The amount with the tax, as a string with the decimals of the currency, like those that follow.
    pub gross: String,
    /// The amount without the tax.
    pub net: String,
    /// The tax.
    pub amount: String,
    /// The legally required note, if the buyer owes the tax; else null.
    pub note: Option<String>,
}

impl TaxDocument {
    /// The tax in an amount; `None` if the amount is too large.
    pub(crate) fn of(
        tax: &SalesTax,
        is_reverse_charge: bool,
        (gross, currency): (CurrencyAmount, &str),
    ) -> Option<Self> {
        Self::with(tax, is_reverse_charge, (gross, currency), tax.rate.included_in(gross)?)
    }

    /// The tax in an amount, of which `included` is tax unless the buyer owes it.
    pub(crate) fn with(
        tax: &SalesTax,
        is_reverse_charge: bool,
        (gross, currency): (CurrencyAmount, &str),
        included: CurrencyAmount,
    ) -> Option<Self> {
        let name = tax.name.clone();
        let (percent, amount, note) = if is_reverse_charge {
            let note = format!("Reverse charge: the recipient is liable for {name}.");
            ("0".to_owned(), gross.minus(gross)?, Some(note))
        } else {
            (tax.rate.percent(), included, None)
        };
        let (gross, net, amount) = (gross.to_string(), gross.minus(amount)?.to_string(), amount.to_string());
        Some(Self { name, percent, currency: currency.to_owned(), gross, net, amount, note })
    }

    /// The tax in one line: `0.69 EUR (19 %), 3.62 EUR without it`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { percent, currency, net, amount, note, .. } = self;
        let note = note.as_ref().map_or_else(String::new, |note| format!(". {note}"));
        format!("{amount} {currency} ({percent} %), {net} {currency} without it{note}")
    }
}

impl ValueDocument {
    /// The value for people, with its rate: `4.31 EUR at 0.8612 EUR per USDC (ECB, 2026-11-27 15:00 UTC)`.
    #[must_use]
    pub fn in_words(&self, token_symbol: Option<&str>) -> String {
        let currency = &self.currency;
        match (&self.amount, self.rate_in_words(token_symbol)) {
            (Some(amount), Some(rate)) => format!("{amount} {currency} at {rate}"),
            _ => format!("None in {currency}: no exchange rate was known when the payment was credited"),
        }
    }

    /// Its rate for people, if one was known: `0.8612 EUR per USDC (ECB, 2026-11-27 15:00 UTC)`.
    #[must_use]
    pub fn rate_in_words(&self, token_symbol: Option<&str>) -> Option<String> {
        let (rate, source, as_of) = (self.rate.as_ref()?, self.rate_source.as_ref()?, self.rate_as_of.as_ref()?);
        let (currency, token) = (&self.currency, token_symbol.unwrap_or("token"));
        let (day, time) = (as_of.get(..10).unwrap_or(as_of), as_of.get(11..16).unwrap_or_default());
        Some(format!("{rate} {currency} per {token} ({source}, {day} {time} UTC)"))
    }

    /// The amount paid, with its value if it has one: `5 USDC, 4.31 EUR`.
    #[must_use]
    pub fn beside(paid: String, value: Option<&Self>) -> String {
        match value.and_then(|value| Some((value.amount.as_ref()?, &value.currency))) {
            Some((amount, currency)) => format!("{paid}, {amount} {currency}"),
            None => paid,
        }
    }
}

impl From<&PaymentValue> for ValueDocument {
    fn from(value: &PaymentValue) -> Self {
        let converted = value.converted.as_ref();
        Self {
            currency: value.currency.to_string(),
            amount: converted.map(|converted| converted.amount.to_string()),
            rate: converted.map(|converted| converted.rate.to_string()),
            rate_source: converted.map(|converted| converted.source.clone()),
            rate_as_of: converted.map(|converted| converted.as_of.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tax_is_part_of_the_amount_unless_the_buyer_owes_it() {
        let tax = SalesTax { name: "VAT".to_owned(), rate: "0.19".parse().unwrap(), reverse_charge: true };
        let of = |owes| TaxDocument::of(&tax, owes, ("4.31".parse().unwrap(), "EUR")).unwrap().in_words();
        assert_eq!(of(false), "0.69 EUR (19 %), 3.62 EUR without it");
        let owed = "0.00 EUR (0 %), 4.31 EUR without it. Reverse charge: the recipient is liable for VAT.";
        assert_eq!(of(true), owed);
    }

    #[test]
    fn a_value_names_its_rate_source_and_time() {
        let text = str::to_owned;
        let value = ValueDocument {
            currency: text("EUR"),
            amount: Some(text("4.31")),
            rate: Some(text("0.8612")),
            rate_source: Some(text("ECB")),
            rate_as_of: Some(text("2026-11-27T15:00:00.000Z")),
        };
        let words = "4.31 EUR at 0.8612 EUR per USDC (ECB, 2026-11-27 15:00 UTC)";
        assert_eq!(value.in_words(Some("USDC")), words);
        assert_eq!(value.rate_in_words(None).unwrap(), "0.8612 EUR per token (ECB, 2026-11-27 15:00 UTC)");
        assert_eq!(ValueDocument::beside(text("5 USDC"), Some(&value)), "5 USDC, 4.31 EUR");
        let none = PaymentValue { currency: "EUR".parse().unwrap(), converted: None };
        let none = ValueDocument::from(&none);
        assert!(none.in_words(None).starts_with("None in EUR: "), "{none:?}");
        assert_eq!(none.rate_in_words(None), None);
        for value in [None, Some(&none)] {
            assert_eq!(ValueDocument::beside(text("5 USDC"), value), "5 USDC");
        }
    }
}
