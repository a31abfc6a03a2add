//! Payable 402s: what agents can pay with their requests, and how that is settled.

use std::fmt;
use std::path::PathBuf;

use metering_core::chains::Address;
use metering_core::payments::TokenAmount;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::server::{List, Secret, Span};

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
    /// The key that signs offers and receipts for clients of x402: a file with a private key in hexadecimal. Without it,
    /// they are not signed.
    pub receipt_key_file: Option<PathBuf>,
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
    /// Whether those requests can also be paid for by what they use, on routes priced by usage (the scheme `upto` of
    /// x402). They are served before they are paid.
    pub upto: bool,
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
            receipt_key_file: None,
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
            upto: false,
            offers: Vec::new(),
        }
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
