//! Configuration of payments, top-ups and key recovery.

use std::fmt;

use metering_core::Credits;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::server::section::section;
use crate::server::{Span, SpanOrOff};

section! {
    /// Waiting for payments and watching chains.
    pub struct PaymentsConfig;

    /// How long a quote's price is valid.
    quote_lifetime: Span = Span::seconds(30 * 60),
    /// How long a claim or top-up waits for its payment to get enough confirmations.
    claim_wait: Span = Span::seconds(45),
    /// How often to check the chain while waiting.
    claim_poll: Span = Span::seconds(1),
    /// How often watched chains are scanned.
    watch_interval: Span = Span::seconds(10),
    /// A watched chain that makes no progress for this long makes `/ready` fail; with `off` it never does.
    stalled_after: SpanOrOff = SpanOrOff::seconds(15 * 60),
}

section! {
    /// Topping up existing accounts.
    pub struct TopupConfig;

    /// Whether a payer that is not known to belong to the account must sign. If not, a payment goes to the first
    /// account that submits it.
    require_payer_proof: bool = true,
}

section! {
    /// Key recovery by wallet.
    pub struct RecoveryConfig;

    /// How long a challenge is valid.
    challenge_lifetime: Span = Span::seconds(10 * 60),
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
