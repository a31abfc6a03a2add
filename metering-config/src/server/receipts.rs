//! Receipts: the numbers, tax and currency of receipts of payments, and signed receipts of requests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use metering_core::money::Currency;
use metering_core::payments::{ExchangeRate, ExchangeRates, NumberPrefix, RateList, ReceiptTerms, SalesTax, TaxRate};
use metering_core::service::Seller;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ConfigError;
use crate::server::section::section;
use crate::server::{BrandText, FactorSetting, List, Secret, SettableFactor, Span, SpanOrOff};

section! {
    /// How receipts and credit notes of payments are numbered, the tax that they show, and the value of payments; and
    /// receipts of requests, which prove what each cost.
    pub struct ReceiptsConfig;

    /// Whether receipts and credit notes have consecutive numbers, without gaps, or numbers that follow from their
    /// payments.
    numbering: ReceiptNumbering,
    /// The prefix of consecutive numbers. With `{year}` in it, numbering restarts each year (UTC).
    prefix: String = "INV-".to_owned(),
    /// The keys that sign receipts of requests, as `metering admin receipt-key create` makes them: the last private key
    /// signs, and all public keys are published. Without it, requests get no receipts. Needs `public_url`.
    key_file: Option<PathBuf>,
    /// The ids of accounts whose requests all get a receipt. Others request it per request.
    always: List<String>,
    /// The currency in which receipts show the value of a payment; by default they show none.
    currency: Option<CurrencyConfig>,
    /// The tax that prices include; by default receipts show none.
    tax: Option<TaxConfig>,
}

/// How receipts are numbered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptNumbering {
    /// By numbers that follow from the payment.
    #[default]
    Payment,
    /// One after the other, without gaps.
    Consecutive,
}

/// The tax that prices include.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxConfig {
    /// Its name on receipts, such as `VAT`.
    pub name: BrandText<20>,
    /// The rate, as a string such as `"0.19"` for 19 %.
    pub rate: String,
    /// Whether buyers with a VAT number of another country pay the tax themselves (reverse charge).
    #[serde(default)]
    pub reverse_charge: bool,
}

impl ReceiptsConfig {
    /// The terms of receipts from now on.
    ///
    /// # Errors
    /// The first key that is not valid.
    pub fn terms(&self, seller: Seller) -> Result<ReceiptTerms, ConfigError> {
        let prefix = self.prefix.parse::<NumberPrefix>();
        let prefix = prefix.map_err(|problem| ConfigError::key("receipts.prefix", problem))?;
        let numbering = (self.numbering == ReceiptNumbering::Consecutive).then_some(prefix);
        let tax = match &self.tax {
            Some(TaxConfig { name, rate, reverse_charge }) => {
                let problem = "must be a string from \"0\" to below \"1\", such as \"0.19\" for 19 %";
                let rate = rate.parse::<TaxRate>().map_err(|_| ConfigError::key("receipts.tax.rate", problem))?;
                Some(SalesTax { name: name.as_str().to_owned(), rate, reverse_charge: *reverse_charge })
            }
            None => None,
        };
        Ok(ReceiptTerms { seller, tax, numbering })
    }
}

section! {
    /// A currency, and the source of its exchange rates: `rates`, `url` or `file`.
    pub struct CurrencyConfig;

    /// The currency (ISO 4217).
    code: String,
    /// The source of the rates, as shown on receipts.
    source: Option<BrandText<120>>,
    /// The URL of the rates as JSON: http or https, masked when printed.
    url: Option<Secret>,
    /// A file with that JSON, instead of `url`.
    file: Option<PathBuf>,
    /// How often they are read.
    every: Span = Span::seconds(10 * 60),
    /// How long reading them may take.
    timeout: Span = Span::seconds(10),
    /// How old rates may be. Older ones are not used. By default 6 days for rates that are read, and `off` otherwise.
    max_age: Option<SpanOrOff>,
    /// The time of `rates`: RFC 3339, or a day.
    as_of: Option<String>,
    /// The value of one token, by its symbol, instead of `url`: strings such as `"0.8612"`, or whole numbers.
    rates: BTreeMap<String, FactorSetting<ExchangeRate>>,
}

/// Where rates are read.
#[derive(Debug, Clone, Copy)]
pub enum RateFeed<'a> {
    /// At this URL.
    Url(&'a Secret),
    /// In this file.
    File(&'a PathBuf),
}

/// From the Thursday before Easter to the Tuesday after it, central banks set no rates.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(6 * 24 * 60 * 60);

impl SettableFactor for ExchangeRate {
    const NAME: &'static str = "rate";

    fn is_zero(&self) -> bool {
        false
    }
}

impl CurrencyConfig {
    /// Where rates are read; `None` if they are in the configuration.
    #[must_use]
    pub fn feed(&self) -> Option<RateFeed<'_>> {
        self.url.as_ref().map(RateFeed::Url).or(self.file.as_ref().map(RateFeed::File))
    }

    /// The rates: those of the configuration, or none yet.
    ///
    /// # Errors
    /// The first key that is missing or does not fit the others.
    pub fn exchange_rates(&self) -> Result<ExchangeRates, ConfigError> {
        let invalid = |key: &str, problem: &str| ConfigError::key(format!("receipts.currency.{key}"), problem);
        let code = self.code.parse::<Currency>().map_err(|error| invalid("code", &error.to_string()))?;
        let source = self.source.as_ref().ok_or_else(|| invalid("source", "is required: receipts name it"))?;
        let ways = [!self.rates.is_empty(), self.url.is_some(), self.file.is_some()];
        if ways.into_iter().filter(|is_set| *is_set).count() != 1 {
            return Err(invalid("rates", "is required, or url or file, and only one of the three"));
        }
        if self.every.duration() < Duration::from_secs(1) {
            return Err(invalid("every", "must be at least 1s"));
        }
        let default_age = self.feed().map(|_| DEFAULT_MAX_AGE);
        let max_age = self.max_age.map_or(default_age, SpanOrOff::duration);
        let rates = ExchangeRates::new(code, source.as_str(), max_age);
        match (self.feed(), &self.as_of) {
            (None, Some(as_of)) => {
                let fixed = self.rates.iter().map(|(symbol, rate)| (symbol, rate.get()));
                let list = RateList::new(as_of, fixed);
                rates.set(list.map_err(|_| invalid("as_of", "must be a time such as 2026-11-27T15:00:00Z, or a day"))?);
            }
            (None, None) => return Err(invalid("as_of", "is required with rates: the time of the rates")),
            (Some(_), Some(_)) => return Err(invalid("as_of", "must be in the document with the rates")),
            (Some(RateFeed::Url(url)), None) => {
                let is_http = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
                // Not repeated: it may contain a secret.
                if !Url::parse(url.expose()).is_ok_and(is_http) {
                    return Err(invalid("url", "must be an http(s) URL"));
                }
            }
            (Some(RateFeed::File(_)), None) => {}
        }
        Ok(rates)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::chains::TokenUnits;

    use super::*;

    const FIXED: &str = "code = 'EUR'\nsource = 'ECB reference rate of 2026-11-27'\nas_of = '2026-11-27'\n";

    fn rates(text: &str) -> Result<ExchangeRates, String> {
        let config: CurrencyConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        config.exchange_rates().map_err(|error| error.to_string())
    }

    #[test]
    fn fixed_rates_are_known_at_once_and_never_old() {
        let rates = rates(&format!("{FIXED}rates = {{ usdc = '0.8612', WETH = 2543 }}")).unwrap();
        let now = "2036-11-28T12:00:00Z".parse().unwrap();
        let value = |symbol, decimals| rates.value(TokenUnits::new(5_000_000), Some((symbol, decimals)), now);
        let converted = value("USDC", 6).converted.unwrap();
        assert_eq!((converted.amount.to_string().as_str(), converted.rate.to_string().as_str()), ("4.31", "0.8612"));
        assert_eq!(converted.source, "ECB reference rate of 2026-11-27");
        assert_eq!(converted.as_of.to_string(), "2026-11-27T00:00:00.000Z");
        assert_eq!(value("WETH", 6).converted.unwrap().amount.to_string(), "12715.00");
        assert_eq!(value("DAI", 6).converted, None);
    }

    #[test]
    fn terms_are_checked() {
        let terms = |text: &str| {
            let config: ReceiptsConfig = toml::from_str(text).map_err(|error| error.to_string())?;
            config.terms(Seller::default()).map_err(|error| error.to_string())
        };
        assert_eq!(terms("").unwrap(), ReceiptTerms::default());
        let vat = "[tax]\nname = 'VAT'\nrate = '0.19'\n";
        let set =
            terms(&format!("numbering = 'consecutive'\nprefix = '{{year}}-'\n{vat}reverse_charge = true")).unwrap();
        let tax = set.tax.unwrap();
        assert_eq!((tax.name.as_str(), tax.rate.percent().as_str(), tax.reverse_charge), ("VAT", "19", true));
        assert_eq!(set.numbering.unwrap().to_string(), "{year}-");
        assert_eq!(terms("numbering = 'consecutive'").unwrap().numbering.unwrap().to_string(), "INV-");
        // text, what the error names
        let table = [
            ("prefix = 'A1'".to_owned(), "receipts.prefix"),
            ("numbering = 'consecutive'\nprefix = 'R-'".to_owned(), "receipts.prefix"),
            ("numbering = 'yearly'".to_owned(), "yearly"),
            (vat.replace("0.19", "19"), "receipts.tax.rate"),
            (vat.replace("'0.19'", "0.19"), "rate"),
            (vat.replace("rate", "share"), "share"),
            (vat.replace("VAT", ""), "1 to 20 characters"),
        ];
        for (text, named) in table {
            let error = terms(&text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn rates_that_are_read_get_old() {
        let (now, text) =
            ("2026-11-28T12:00:00Z".parse().unwrap(), "code = 'EUR'\nsource = 'Desk'\nfile = 'rates.json'\n");
        // setting, the time of the rates, whether they are used
        let table = [
            ("", "2026-11-23", true),
            ("", "2026-11-22", false),
            ("max_age = '1d'", "2026-11-28", true),
            ("max_age = '1d'", "2026-11-27", false),
            ("max_age = 'off'", "1999-01-01", true),
        ];
        for (setting, as_of, is_used) in table {
            let rates = rates(&format!("{text}{setting}")).unwrap();
            let paid = || rates.value(TokenUnits::new(5), Some(("USDC", 6)), now).converted;
            assert_eq!(paid(), None, "none was read yet");
            rates.set(RateList::new(as_of, [("USDC", "0.8612".parse().unwrap())]).unwrap());
            assert_eq!(paid().is_some(), is_used, "{setting} {as_of}");
        }
    }

    #[test]
    fn values_are_checked() {
        let fed = "code = 'EUR'\nsource = 'Desk'\n";
        // text, what the error names
        let table = [
            (format!("{fed}url = 'http://127.0.0.1:9/eur.json'"), None),
            (format!("{fed}file = '/run/eur.json'\nevery = '1m'\ntimeout = '2s'"), None),
            (String::new(), Some("receipts.currency.code")),
            (FIXED.replace("EUR", "EUX"), Some("receipts.currency.code")),
            (FIXED.replace("EUR", "euro"), Some("receipts.currency.code")),
            (FIXED.replace("source", "url"), Some("receipts.currency.source")),
            (FIXED.to_owned(), Some("receipts.currency.rates")),
            (format!("{FIXED}url = 'http://a'\nrates = {{ USDC = 1 }}"), Some("receipts.currency.rates")),
            (format!("{fed}url = 'http://a'\nfile = 'a'"), Some("receipts.currency.rates")),
            (format!("{fed}rates = {{ USDC = 1 }}"), Some("receipts.currency.as_of")),
            (format!("{fed}as_of = 'now'\nrates = {{ USDC = 1 }}"), Some("receipts.currency.as_of")),
            (format!("{FIXED}file = 'a'"), Some("receipts.currency.as_of")),
            (format!("{fed}file = 'a'\nevery = '10ms'"), Some("receipts.currency.every")),
            (format!("{fed}url = 'ftp://a'"), Some("receipts.currency.url")),
            (format!("{FIXED}rates = {{ USDC = 0.8612 }}"), Some("a rate as a whole number or a string")),
            (format!("{FIXED}rates = {{ USDC = '0' }}"), Some("out of range")),
            (format!("{FIXED}rates = {{ USDC = '0,86' }}"), Some("not a decimal number")),
            (format!("{FIXED}currency = 'EUR'"), Some("currency")),
        ];
        for (text, expected) in table {
            let found = rates(&text).err();
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(expected.is_none_or(|key| found.as_ref().unwrap().contains(key)), "{text}: {found:?}");
        }
    }
}
