//! Payable 402s: what agents can pay with their requests, and how that is settled.

use std::fmt;
use std::path::PathBuf;

use crate::ConfigError;
use metering_core::chains::Address;
use metering_core::payments::TokenAmount;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::server::{Config, List, Secret, Span};

/// The least size of a request's head to accept, in bytes. Clients send all extensions of the offers back with a
/// payment.
const MIN_HEAD_BYTES: usize = 16 * 1_024;
/// The gas that no transfer by signature does without.
const MIN_GAS: u64 = 60_000;

/// Payable 402s: what agents can pay with their requests, and how that is settled.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PayConfig {
    /// Who executes payments: no one (nothing is offered), a facilitator, or this server.
    pub settle: Settle,
    /// The wallet that pays the gas if this server executes payments: a file with its private key in hexadecimal.
    pub gas_key_file: Option<PathBuf>,
    /// The secret of challenges of MPP: a file with at least 32 bytes, the same on all nodes. By default, it follows
    /// from the key of the wallet that pays the gas; without either, clients of MPP are not offered anything.
    pub mpp_secret_file: Option<PathBuf>,
    /// The highest fee of a transaction, in the chain's coin.
    pub max_fee: Amount,
    /// The most gas that a payment may use. Others are refused.
    pub max_gas: u64,
    /// Whether this server executes payments of wallets with code: contracts (ERC-1271), and delegations (EIP-7702).
    /// Their code can make transactions revert at the cost of the gas wallet.
    pub contract_wallets: bool,
    /// How many payments may revert on a chain within an hour, at the cost of the gas wallet. After that, none are
    /// executed until fewer did.
    pub max_reverts: u32,
    /// The URL of the facilitator.
    pub facilitator: Option<String>,
    /// What the facilitator is sent as a bearer token, if it asks for one.
    pub facilitator_token: Option<Secret>,
    /// A file with that token, instead of `facilitator_token`.
    pub facilitator_token_file: Option<PathBuf>,
    /// How many confirmations a payment needs. Its own block counts.
    pub confirmations: u32,
    /// How long a request waits for its payment.
    pub wait: Span,
    /// How often the chain is looked at meanwhile.
    pub poll: Span,
    /// After how long a transaction that is in no block is replaced by one with higher fees.
    pub replace_after: Span,
    /// Whether requests without a key can pay. If not, they get 401.
    pub keyless: bool,
    /// What is offered.
    pub offers: Vec<OfferConfig>,
}

/// Who executes payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settle {
    /// Payments are off: nothing is offered.
    Off,
    /// A facilitator of x402.
    Facilitator,
    /// This server.
    #[serde(rename = "self")]
    Own,
}

/// Amounts of a token that are offered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferConfig {
    /// The name of a section of `[chains]`.
    pub chain: String,
    /// The token's contract.
    pub asset: Address,
    /// The amounts, in tokens.
    pub amounts: List<Amount>,
    /// How many credits a token buys.
    pub credits_per_unit: Amount,
    /// What a coin of the chain costs, in tokens. A payment is not executed while its fee may exceed its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coin_price: Option<Amount>,
}

/// An exact decimal above zero, as a string such as `"0.05"` or a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount(TokenAmount);

impl Amount {
    /// The amount.
    #[must_use]
    pub const fn tokens(self) -> TokenAmount {
        self.0
    }
}

impl Default for PayConfig {
    fn default() -> Self {
        Self {
            settle: Settle::Off,
            gas_key_file: None,
            mpp_secret_file: None,
            max_fee: Amount::parse("0.01").expect("it is a decimal"),
            max_gas: 200_000,
            contract_wallets: false,
            max_reverts: 20,
            facilitator: None,
            facilitator_token: None,
            facilitator_token_file: None,
            confirmations: 1,
            wait: Span::seconds(25),
            poll: Span::seconds(1),
            replace_after: Span::seconds(20),
            keyless: true,
            offers: Vec::new(),
        }
    }
}

impl PayConfig {
    /// # Errors
    /// The first key that is missing or does not fit the others.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: &str| Err(ConfigError::key(format!("pay.{key}"), problem));
        if self.settle == Settle::Off {
            return match self.offers.is_empty() {
                true => Ok(()),
                false => invalid("settle", "must be \"self\" or \"facilitator\": with \"off\", nothing can be offered"),
            };
        }
        if self.offers.is_empty() {
            return invalid("offers", "is required: a chain, an asset, amounts, and credits_per_unit");
        }
        match (self.settle, &self.gas_key_file, &self.facilitator) {
            (Settle::Own, None, _) => return invalid("gas_key_file", "is required with pay.settle = \"self\""),
            (Settle::Own, _, Some(_)) => return invalid("facilitator", "needs pay.settle = \"facilitator\""),
            (Settle::Facilitator, _, None) => return invalid("facilitator", "is required: the facilitator's URL"),
            (Settle::Facilitator, Some(_), _) => return invalid("gas_key_file", "needs pay.settle = \"self\""),
            _ => {}
        }
        if self.max_gas < MIN_GAS {
            return invalid("max_gas", &format!("must be at least {MIN_GAS}: a transfer uses about that much"));
        }
        if self.max_reverts == 0 {
            return invalid("max_reverts", "must be at least 1");
        }
        if self.confirmations == 0 {
            return invalid("confirmations", "must be at least 1");
        }
        if config.http.max_header_bytes < MIN_HEAD_BYTES {
            let problem =
                format!("must be at least {MIN_HEAD_BYTES} with pay.offers: payments have the offers in them");
            return Err(ConfigError::key("http.max_header_bytes", problem));
        }
        for offer in &self.offers {
            match config.chains.get(&offer.chain) {
                None => return invalid("offers", &format!("there is no section [chains.{}]", offer.chain)),
                Some(chain) if chain.rpc_urls.is_empty() => {
                    return invalid("offers", &format!("chains.{} needs rpc_urls", offer.chain));
                }
                Some(_) if offer.asset == Address::ZERO => {
                    return invalid(
                        "offers",
                        "asset must be a token's contract; a chain's own coin cannot be signed for",
                    );
                }
                Some(_) if offer.amounts.is_empty() => return invalid("offers", "amounts must not be empty"),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl Amount {
    fn parse(text: &str) -> Option<Self> {
        TokenAmount::parse(text).ok().map(Self)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "must be a decimal above zero as text, such as \"0.05\"")]
        enum Input {
            Text(String),
            Whole(u64),
        }
        let text = match Input::deserialize(deserializer)? {
            Input::Text(text) => text,
            Input::Whole(number) => number.to_string(),
        };
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("must be a decimal above zero, such as \"0.05\""))
    }
}

#[cfg(test)]
mod tests;
