//! A payment as the journal keeps it.

use std::fmt;

use http::{HeaderName, HeaderValue};
use metering_core::Timestamp;
use metering_core::chains::{Address, TokenUnits};
use metering_core::offers::AuthorizationNonce;
use serde::{Deserialize, Serialize};

use crate::client::paying::amount::Amount;
use crate::failure::Failure;

/// A signed payment. It contains no private key, but anyone who has it can execute it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The nonce of the authorization.
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// The call that it pays for.
    pub(crate) call: String,
    /// The account of the call: a hash of its API key. Absent without a key, and in entries of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    pub(crate) method: String,
    pub(crate) url: String,
    /// Whether the payment was made without a prompt. Only such payments count towards the daily limit.
    pub(crate) is_automatic: bool,
    pub(crate) amount: Amount,
    pub(crate) symbol: String,
    pub(crate) units: TokenUnits,
    pub(crate) chain_id: u64,
    #[serde(deserialize_with = "address")]
    pub(crate) token: Address,
    #[serde(deserialize_with = "address")]
    pub(crate) payer: Address,
    #[serde(deserialize_with = "address")]
    pub(crate) pay_to: Address,
    /// When it expires, in seconds since 1970.
    pub(crate) valid_before: u64,
    /// The header to send, byte for byte the same each time.
    pub(crate) header: String,
    pub(crate) payment: String,
}

fn address<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl Entry {
    /// The request header that carries the payment.
    pub(super) fn to_header(&self) -> Result<(HeaderName, HeaderValue), Failure> {
        let wrong = || Failure::Failed(format!("the journal's entry {} has no valid header", self.id));
        let name = HeaderName::try_from(&self.header).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(&self.payment).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

/// The id of an authorization in the journal.
pub(super) fn id(nonce: AuthorizationNonce) -> String {
    nonce.to_string()
}

/// `0.05 USDC on chain 8453 to 0x2096...`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { amount, symbol, chain_id, pay_to, .. } = self;
        write!(f, "{amount} {symbol} on chain {chain_id} to {}", pay_to.to_checksummed())
    }
}

/// Leaves out the payment, which anyone could execute.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).field("url", &self.url).finish_non_exhaustive()
    }
}
