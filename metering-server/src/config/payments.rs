//! How plans are sold and keys are rotated, as configured.

use std::fmt;

use metering_core::Credits;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::Span;

/// How payments are waited for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PaymentsConfig {
    /// How long a quote's price is promised.
    pub quote_lifetime: Span,
    /// How long a claim or top-up waits for its payment to become deep enough.
    pub claim_wait: Span,
    /// How often it looks meanwhile.
    pub claim_poll: Span,
    /// How often watched chains are looked at.
    pub watch_interval: Span,
    /// After how long without progress a watched chain makes `/ready` fail; `0s` means never.
    pub stalled_after: Span,
}

/// Registering payments for accounts that exist.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopupConfig {
    /// Whether a payer who is not known to belong to the account must sign. Without it, whoever names a payment
    /// first gets it.
    pub require_payer_proof: bool,
}

/// Rotating keys by wallet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryConfig {
    /// How long a challenge can be answered.
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
            stalled_after: Span::seconds(15 * 60),
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

/// An exact amount of credits, zero or above: a whole number, or a text such as `"0.5"`. A number with a fraction is
/// refused, since it would come through a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditAmount(Credits);

impl CreditAmount {
    /// An amount that is zero or above.
    #[must_use]
    pub(crate) const fn of(credits: Credits) -> Self {
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
        f.write_str("credits as a whole number or as a text such as \"0.5\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<CreditAmount, E> {
        let credits: Credits = text.parse().map_err(|error| E::custom(format_args!("{text:?}: {error}")))?;
        if credits.is_negative() {
            return Err(E::custom("must not be negative"));
        }
        Ok(CreditAmount(credits))
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<CreditAmount, E> {
        self.visit_str(&whole.to_string())
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<CreditAmount, E> {
        self.visit_str(&whole.to_string())
    }
}
