//! The exchange rates that are known now. Whoever credits a payment looks its rate up here, in memory: a purchase never
//! waits for a rate.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chains::units::TokenUnits;
use crate::clock::{Day, Timestamp};
use crate::money::currency::Currency;
use crate::payments::exchange_rate::ExchangeRate;
use crate::payments::value::{ConvertedAmount, PaymentValue};

/// The rates of one currency, with the name of their source.
///
/// ```
/// use metering_core::chains::TokenUnits;
/// use metering_core::payments::{ExchangeRates, RateList};
///
/// let rates = ExchangeRates::new("EUR".parse()?, "ECB", None);
/// let now = "2026-11-28T12:00:00Z".parse()?;
/// let paid = || rates.value(TokenUnits::new(5_000_000), Some(("USDC", 6)), now);
/// assert_eq!(paid().converted, None);
/// rates.set(RateList::from_json(br#"{"as_of": "2026-11-27", "rates": {"USDC": "0.8612"}}"#, "EUR".parse()?)?);
/// assert_eq!(paid().converted.unwrap().amount.to_string(), "4.31");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ExchangeRates {
    currency: Currency,
    source: String,
    max_age: Option<Duration>,
    list: Mutex<Option<RateList>>,
}

/// The rates of tokens at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateList {
    /// Their time.
    pub as_of: Timestamp,
    /// The value of one token, by its symbol in capital letters.
    rates: BTreeMap<String, ExchangeRate>,
}

/// Why rates cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RateListError(String);

/// A list as JSON. Rates are numbers or strings, and are read as text.
#[derive(Deserialize)]
struct ListDocument {
    currency: Option<String>,
    as_of: String,
    rates: BTreeMap<String, Box<RawValue>>,
}

impl ExchangeRates {
    /// Rates of `currency`, none of which is known yet. Rates that are older than `max_age` are not used.
    #[must_use]
    pub fn new(currency: Currency, source: impl Into<String>, max_age: Option<Duration>) -> Self {
        Self { currency, source: source.into(), max_age, list: Mutex::default() }
    }

    /// The currency.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Replaces all rates.
    pub fn set(&self, list: RateList) {
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = Some(list);
    }

    /// The current value of an amount of a token. `token` is its symbol and decimals, if they are known.
    #[must_use]
    pub fn value(&self, amount: TokenUnits, token: Option<(&str, u8)>, now: Timestamp) -> PaymentValue {
        let converted = self.converted(amount, token, now);
        if converted.is_none() {
            let symbol = token.map(|(symbol, _)| symbol);
            tracing::warn!(symbol, currency = %self.currency, "there is no rate for a payment; its receipt will have no value");
        }
        PaymentValue { currency: self.currency, converted }
    }

    fn converted(&self, amount: TokenUnits, token: Option<(&str, u8)>, now: Timestamp) -> Option<ConvertedAmount> {
        let (symbol, decimals) = token?;
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let RateList { as_of, rates } = list.as_ref()?;
        if self.max_age.is_some_and(|max_age| as_of.saturating_add(max_age) < now) {
            return None;
        }
        let rate = *rates.get(&symbol.to_ascii_uppercase())?;
        let amount = rate.convert(amount, decimals, self.currency.decimals().into())?;
        Some(ConvertedAmount { amount, rate, source: self.source.clone(), as_of: *as_of })
    }
}

impl RateList {
    /// The rates of tokens, by their symbols, at a time: RFC 3339, or a day (UTC).
    ///
    /// # Errors
    /// When the time is neither.
    pub fn new<S: AsRef<str>>(
        as_of: &str,
        rates: impl IntoIterator<Item = (S, ExchangeRate)>,
    ) -> Result<Self, RateListError> {
        let as_of = as_of.parse::<Timestamp>().or_else(|_| as_of.parse::<Day>().map(Day::start));
        let as_of = as_of.map_err(|_| wrong("as_of must be a time such as 2026-11-27T15:00:00Z, or a day"))?;
        let rates = rates.into_iter().map(|(symbol, rate)| (symbol.as_ref().to_ascii_uppercase(), rate)).collect();
        Ok(Self { as_of, rates })
    }

    /// Reads `{"currency": "EUR", "as_of": "2026-11-27T15:00:00Z", "rates": {"USDC": "0.8612"}}`. Other members do not
    /// count, and `currency` may be left out.
    ///
    /// # Errors
    /// When it is not such a document, is about another currency, or any rate is not an exact decimal above zero.
    pub fn from_json(json: &[u8], currency: Currency) -> Result<Self, RateListError> {
        let document: ListDocument = serde_json::from_slice(json).map_err(wrong)?;
        if let Some(other) = document.currency.filter(|found| found.parse() != Ok(currency)) {
            return Err(wrong(format_args!("the rates are those of {other:?}, not of {currency}")));
        }
        let mut rates = Vec::with_capacity(document.rates.len());
        for (symbol, rate) in &document.rates {
            let text = rate.get();
            let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
            let rate = text.parse::<ExchangeRate>();
            rates.push((symbol, rate.map_err(|error| wrong(format_args!("the rate of {symbol:?}: {error}")))?));
        }
        Self::new(&document.as_of, rates)
    }
}

fn wrong(problem: impl fmt::Display) -> RateListError {
    RateListError(problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "2026-11-28T12:00:00Z";

    fn euro() -> Currency {
        "EUR".parse().unwrap()
    }

    fn list(json: &str) -> Result<RateList, RateListError> {
        RateList::from_json(json.as_bytes(), euro())
    }

    fn amount(rates: &ExchangeRates, token: Option<(&str, u8)>, now: &str) -> Option<String> {
        let value = rates.value(TokenUnits::new(5_000_000), token, now.parse().unwrap());
        assert_eq!(value.currency, euro());
        value.converted.map(|converted| converted.amount.to_string())
    }

    #[test]
    fn rates_are_numbers_or_strings_and_never_floats() {
        let text = r#"{"currency": "EUR", "as_of": "2026-11-27T16:00:00+01:00", "more": [1],
            "rates": {"usdc": 0.10000000000000000000000001, "EURC": "1"}}"#;
        let rates = ExchangeRates::new(euro(), "Desk", None);
        rates.set(list(text).unwrap());
        let value = rates.value(TokenUnits::new(5_000_000), Some(("USDC", 6)), NOON.parse().unwrap());
        let ConvertedAmount { amount, rate, source, as_of } = value.converted.unwrap();
        assert_eq!((amount.to_string().as_str(), source.as_str()), ("0.50", "Desk"));
        assert_eq!(rate.to_string(), "0.10000000000000000000000001");
        assert_eq!(as_of.to_string(), "2026-11-27T15:00:00.000Z");
    }

    #[test]
    fn without_a_rate_there_is_no_value() {
        let rates = ExchangeRates::new(euro(), "Desk", Some(Duration::from_secs(24 * 60 * 60)));
        let usdc = Some(("USDC", 6));
        assert_eq!(amount(&rates, usdc, NOON), None, "none is known yet");
        rates.set(list(r#"{"as_of": "2026-11-27T12:00:00Z", "rates": {"USDC": 2}}"#).unwrap());
        // token, now, value
        let table = [
            (usdc, NOON, Some("10.00")),
            (usdc, "2026-11-28T12:00:00.001Z", None),
            (Some(("ETH", 18)), NOON, None),
            (None, NOON, None),
        ];
        for (token, now, value) in table {
            assert_eq!(amount(&rates, token, now).as_deref(), value, "{token:?} {now}");
        }
    }

    #[test]
    fn rubbish_is_refused() {
        let table = [
            ("", "EOF"),
            ("<html>", "expected value"),
            ("[]", "expected struct"),
            (r#"{"rates": {}}"#, "as_of"),
            (r#"{"as_of": "yesterday", "rates": {}}"#, "as_of must be"),
            (r#"{"as_of": "2026-11-27"}"#, "rates"),
            (r#"{"as_of": "2026-11-27", "currency": "USD", "rates": {}}"#, "USD"),
            (r#"{"as_of": "2026-11-27", "rates": {"USDC": 0}}"#, "USDC"),
            (r#"{"as_of": "2026-11-27", "rates": {"USDC": "-0.86"}}"#, "USDC"),
            (r#"{"as_of": "2026-11-27", "rates": {"USDC": "0,86"}}"#, "USDC"),
            (r#"{"as_of": "2026-11-27", "rates": {"USDC": null}}"#, "USDC"),
            (r#"{"as_of": "2026-11-27", "rates": {"USDC": {"rate": 1}}}"#, "USDC"),
            (r#"{"as_of": "2026-11-27", "rates": {"USDC": 1e400}}"#, "USDC"),
        ];
        for (text, problem) in table {
            let error = list(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
