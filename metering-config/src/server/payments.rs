//! Configuration of payments, top-ups and key recovery.

use std::fmt;

use metering_core::Credits;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::server::{Span, SpanOrOff};

/// Waiting for payments and watching chains.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PaymentsConfig {
    /// How long a quote's price is valid.
    pub quote_lifetime: Span,
    /// How long a claim or top-up waits for its payment to get enough confirmations.
    pub claim_wait: Span,
    /// How often it checks while waiting.
    pub claim_poll: Span,
    /// How often watched chains are scanned.
    pub watch_interval: Span,
    /// A watched chain that makes no progress for this long makes `/ready` fail; with `off` it never does.
    pub stalled_after: SpanOrOff,
}

/// Topping up existing accounts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopupConfig {
    /// Whether a payer that is not known to belong to the account must sign. If not, a payment goes to the first
    /// account that submits it.
    pub require_payer_proof: bool,
}

/// Key recovery by wallet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryConfig {
    /// How long a challenge is valid.
    pub challenge_lifetime: Span,
}

impl Default for PaymentsConfig {
    fn default() -> Self {
        let claim_poll = Span::seconds(1);
        Self {
            quote_lifetime: Span::seconds(30 * 60),
            claim_wait: Span::seconds(45),
            claim_poll,
            watch_interval: Span::seconds(10),
            stalled_after: SpanOrOff::seconds(15 * 60),
        }
    }
}

impl Default for TopupConfig {
    fn default() -> Self {
        Self { require_payer_proof: true }
    }
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self { challenge_lifetime: Span::seconds(10 * 60) }
    }
}

/// An exact amount of credits, zero or more: a whole number, or a string such as `"0.5"`. Fractional numbers are
/// refused because TOML and JSON parsers read them as floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditAmount(Credits);

impl CreditAmount {
    /// Wraps an amount; it must not be negative.
    #[must_use]
    pub const fn of(credits: Credits) -> Self {
        Self(credits)
    }

    /// The amount.
    #[must_use]
    pub const fn credits(self) -> Credits {
        self.0
    }
}

impl Serialize for CreditAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CreditAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CreditAmountVisitor)
    }
}

struct CreditAmountVisitor;

impl Visitor<'_> for CreditAmountVisitor {
    type Value = CreditAmount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("credits as a whole number or a string such as \"0.5\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<CreditAmount, E> {
        let credits: Credits = text.parse().map_err(|error| E::custom(format_args!("{text:?}: {error}")))?;
        if credits.is_negative() {
            return Err(E::custom("must not be negative"));
        }
        Ok(CreditAmount(credits))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<CreditAmount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<CreditAmount, E> {
        self.visit_str(&number.to_string())
    }
}
