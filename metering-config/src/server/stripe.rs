//! Selling plans by card, with Stripe Checkout.

use std::collections::HashSet;
use std::path::PathBuf;

use metering_core::money::Currency;
use metering_core::payments::TokenAmount;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ConfigError;
use crate::server::section::section;
use crate::server::{CreditAmount, Secret};

/// Currencies whose smallest unit at Stripe differs from ISO 4217.
const OTHER_UNITS: [&str; 3] = ["ISK", "MGA", "UGX"];

section! {
    /// Selling plans by card, with Stripe Checkout. Without this section no cards are accepted.
    pub struct StripeConfig;

    /// The secret key of the API, or better a restricted one: `docs/stripe.md` says with which rights.
    key: Option<Secret>,
    /// A file with that key, instead of `key`.
    key_file: Option<PathBuf>,
    /// The signing secret of the webhook endpoint; two lines while it is rolled.
    webhook_secret: Option<Secret>,
    /// A file with that secret, instead of `webhook_secret`.
    webhook_secret_file: Option<PathBuf>,
    /// The URL of the API.
    api_base: String = "https://api.stripe.com".to_owned(),
    /// The plans that are sold by card.
    plans: Vec<CardPlan>,
}

/// A plan that is sold by card.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardPlan {
    /// Its id, 1 to 64 characters of `A-Z a-z 0-9 _ - .`.
    pub id: String,
    /// Its display name, which Stripe and receipts show.
    pub label: String,
    /// The credits that a buyer gets.
    pub credits: CreditAmount,
    /// Its price, as exact decimal text.
    pub amount: String,
    /// The currency of the price (ISO 4217).
    pub currency: String,
}

impl CardPlan {
    /// Its price in the currency's smallest unit, and the currency.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn price(&self) -> Result<(u64, Currency), (&'static str, String)> {
        let currency = self.currency.parse::<Currency>().map_err(|error| ("currency", error.to_string()))?;
        if OTHER_UNITS.contains(&currency.code()) {
            return Err(("currency", format!("{currency} is not supported: Stripe uses a different smallest unit")));
        }
        let amount = TokenAmount::parse(&self.amount).map_err(|error| ("amount", error.to_string()))?;
        let units = amount.to_units(currency.decimals()).map(|units| units.get());
        // Stripe accepts amounts of at most eight digits.
        let Some(units) = units.and_then(|units| u64::try_from(units).ok()).filter(|units| *units <= 99_999_999) else {
            let decimals = currency.decimals();
            return Err(("amount", format!("must have at most {decimals} decimals in {currency}, and eight digits")));
        };
        if currency.decimals() == 3 && units % 10 != 0 {
            return Err(("amount", format!("must end with 0 in the third decimal: Stripe requires it in {currency}")));
        }
        Ok((units, currency))
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if !(1..=64).contains(&self.id.len()) || !self.id.bytes().all(plain) {
            return Err(("id", "must be 1 to 64 characters of A-Z a-z 0-9 _ - .".to_owned()));
        }
        if self.label.trim().is_empty() || self.label.len() > 250 || self.label.chars().any(char::is_control) {
            return Err(("label", "must be one line of 1 to 250 bytes".to_owned()));
        }
        if !self.credits.credits().is_positive() {
            return Err(("credits", "must be above zero".to_owned()));
        }
        self.price().map(drop)
    }
}

impl StripeConfig {
    /// `returns_to` is the URL of the pages, if one is configured.
    ///
    /// # Errors
    /// The first key that is missing or wrong.
    pub(super) fn check(&self, returns_to: Option<&str>) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: &str| Err(ConfigError::key(format!("stripe.{key}"), problem));
        if self.key.is_none() {
            return invalid("key_file", "is required: a file with the secret key of Stripe's API");
        }
        if self.webhook_secret.is_none() {
            return invalid(
                "webhook_secret_file",
                "is required: a file with the signing secret of the webhook endpoint",
            );
        }
        let is_url = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
        if !Url::parse(&self.api_base).is_ok_and(is_url) {
            return invalid("api_base", "must be an http(s) URL without a query");
        }
        if returns_to.is_none() {
            let problem = "is required with [stripe]: it is the URL that customers return to after they paid";
            return Err(ConfigError::key("public_url", problem));
        }
        if self.plans.is_empty() {
            return invalid("plans", "is required: the plans that are sold by card, as [[stripe.plans]]");
        }
        let mut ids = HashSet::new();
        for plan in &self.plans {
            let of_plan = |(key, problem): (&str, String)| {
                ConfigError::key(format!("stripe.plans.{key}"), format_args!("of plan {:?} {problem}", plan.id))
            };
            plan.check().map_err(of_plan)?;
            if !ids.insert(&plan.id) {
                return Err(of_plan(("id", "is the id of another plan".to_owned())));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: &str = "key = 'sk_test_1'\nwebhook_secret = 'whsec_1'\n";

    fn problem(text: &str) -> Option<String> {
        let config: StripeConfig = toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        config.check(Some("https://acme.example")).err().map(|error| error.to_string())
    }

    fn plan(key: &str, value: &str) -> String {
        let fields = [
            ("id", "'starter'"),
            ("label", "'Starter'"),
            ("credits", "10"),
            ("amount", "'10.00'"),
            ("currency", "'eur'"),
        ];
        let lines = fields.map(|(name, usual)| format!("{name} = {}\n", if name == key { value } else { usual }));
        format!("[[plans]]\n{}", lines.concat())
    }

    #[test]
    fn wrong_keys_are_named() {
        assert_eq!(problem(&format!("{SECRETS}{}", plan("", ""))), None);
        // text, key
        let table = [
            (plan("", ""), "stripe.key_file"),
            ("key = 'sk_test_1'".to_owned(), "stripe.webhook_secret_file"),
            (SECRETS.to_owned(), "stripe.plans"),
            (format!("{SECRETS}api_base = 'stripe'\n{}", plan("", "")), "stripe.api_base"),
            (format!("{SECRETS}{0}{0}", plan("", "")), "stripe.plans.id"),
            (SECRETS.to_owned() + &plan("id", "'a b'"), "stripe.plans.id"),
            (SECRETS.to_owned() + &plan("label", "''"), "stripe.plans.label"),
            (SECRETS.to_owned() + &plan("credits", "0"), "stripe.plans.credits"),
            (SECRETS.to_owned() + &plan("amount", "'0'"), "stripe.plans.amount"),
            (SECRETS.to_owned() + &plan("amount", "'10.001'"), "stripe.plans.amount"),
            (SECRETS.to_owned() + &plan("amount", "'1000000.00'"), "stripe.plans.amount"),
            (SECRETS.to_owned() + &plan("currency", "'ISK'"), "stripe.plans.currency"),
            (SECRETS.to_owned() + &plan("currency", "'euros'"), "stripe.plans.currency"),
        ];
        for (text, key) in table {
            let problem = problem(&text).unwrap_or_default();
            assert!(problem.contains(key), "{text}: {problem}");
        }
    }

    #[test]
    fn prices_are_in_the_smallest_unit() {
        let price = |amount: &str, currency: &str| {
            let text = plan("", "").replace("10.00", amount).replace("eur", currency);
            toml::from_str::<StripeConfig>(&text).unwrap().plans[0].price().ok().map(|(units, _)| units)
        };
        assert_eq!(
            [price("10.5", "usd"), price("500", "jpy"), price("1.230", "kwd")],
            [Some(1050), Some(500), Some(1230)]
        );
        assert_eq!([price("500.5", "jpy"), price("1.234", "kwd")], [None, None]);
    }
}
