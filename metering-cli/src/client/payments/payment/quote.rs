//! A quote: a plan at an exact amount, promised to one wallet until it expires.

use std::fmt;
use std::time::Duration;

use metering_client::Client;
use metering_core::access::AgentName;
use metering_core::chains::{Address, TokenUnits};
use metering_core::payments::PaymentKind;
use metering_core::{Clock, SystemClock, Timestamp};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::payments::payment::market::Offer;
use crate::failure::Failure;

/// How long the protocol honours a quote after its expiry, minus a day for a slow chain.
const HONOURED_AFTER_EXPIRY: Duration = Duration::from_secs(6 * 24 * 60 * 60);

/// The secret that claims a quote. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SignupNonce(Zeroizing<String>);

impl SignupNonce {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SignupNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignupNonce(…)")
    }
}

/// The response to `POST /signup/pay/quote`.
#[derive(Debug, Deserialize)]
pub(crate) struct Quote {
    pub(crate) signup_nonce: SignupNonce,
    pub(crate) recipient: Address,
    pub(crate) amount_atomic: TokenUnits,
    pub(crate) token_contract: Address,
    pub(crate) token_symbol: String,
    pub(crate) token_decimals: u8,
    pub(crate) chain_id: u64,
    pub(crate) payment_kind: PaymentKind,
    #[serde(default)]
    pub(crate) rpc_hint: Option<String>,
    pub(crate) expires_at: Expiry,
    #[serde(default)]
    pub(crate) terms_url: String,
}

/// When a quote expires, as the service wrote it (RFC 3339).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Expiry {
    text: String,
    at: Timestamp,
}

impl TryFrom<String> for Expiry {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let read: jiff::Timestamp = text.parse().map_err(|_| "must be an RFC 3339 time")?;
        Ok(Self { text, at: Timestamp::from_unix_millis(read.as_millisecond()) })
    }
}

impl From<Expiry> for String {
    fn from(expiry: Expiry) -> Self {
        expiry.text
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expiry {
    /// Whether the price is no longer promised.
    pub(crate) fn is_over(&self) -> bool {
        SystemClock.now() >= self.at
    }

    /// Whether a payment that is sent now might come too late to be honoured at all.
    pub(crate) fn is_long_over(&self) -> bool {
        SystemClock.now() >= self.at.saturating_add(HONOURED_AFTER_EXPIRY)
    }
}

#[derive(Serialize)]
struct Request<'a> {
    agent_name: &'a str,
    plan_id: &'a str,
    chain_id: u64,
    token_symbol: &'a str,
    payer_address: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
}

impl Quote {
    /// Requests a quote.
    pub(crate) async fn request(
        client: &Client,
        offer: &Offer,
        payer: Address,
        agent_name: &AgentName,
        email: Option<&str>,
    ) -> Result<Self, Failure> {
        let request = Request {
            agent_name: agent_name.as_str(),
            plan_id: &offer.id,
            chain_id: offer.chain_id,
            token_symbol: &offer.token_symbol,
            payer_address: payer,
            email,
        };
        match client.post("/signup/pay/quote", &request).await {
            Ok(response) => Ok(response.json()?),
            Err(error) if error.code() == Some("payer_already_registered") => Err(Failure::Conflict(format!(
                "{} already owns an account: get its key for this profile with `metering rotate`, then buy credits \
                with `metering topup`",
                payer.to_checksummed()
            ))),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry(text: &str) -> Result<Expiry, serde_json::Error> {
        serde_json::from_value(text.into())
    }

    #[test]
    fn quote_expires_on_time_and_is_long_over_days_later() {
        let ago = |seconds: u64| {
            let at = SystemClock.now().saturating_sub(Duration::from_secs(seconds));
            expiry(&at.to_string()).unwrap()
        };
        let hour = 3_600;
        assert!(ago(2).is_over() && !ago(2).is_long_over());
        assert!(!ago(6 * 24 * hour - 60).is_long_over() && ago(6 * 24 * hour + 1).is_long_over());
        assert!(!expiry("2999-01-01T00:00:00+01:00").unwrap().is_over());
        assert!(expiry("tomorrow").is_err());
    }

    #[test]
    fn expiry_text_is_kept_and_nonce_is_not_printed() {
        let text = "2999-01-01T00:00:00.123Z";
        assert_eq!(serde_json::to_string(&expiry(text).unwrap()).unwrap(), format!("\"{text}\""));
        let nonce: SignupNonce = serde_json::from_str("\"sqn_secret\"").unwrap();
        assert!(!format!("{nonce:?}").contains("secret"));
    }
}
