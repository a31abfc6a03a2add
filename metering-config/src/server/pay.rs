//! Payable 402s: payments that agents send with their requests, and how they are settled.

use std::fmt;
use std::path::PathBuf;

use metering_core::chains::Address;
use metering_core::payments::TokenAmount;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::server::section::section;
use crate::server::{List, Secret, Span};

section! {
    /// Payable 402s: payments that agents send with their requests, and how they are settled.
    pub struct PayConfig;

    /// Who executes payments: no one (nothing is offered), a facilitator, or this server.
    settle: Settle = Settle::Off,
    /// The wallet that pays the gas if this server executes payments: a file with its private key in hexadecimal.
    gas_key_file: Option<PathBuf>,
    /// The secret of challenges of MPP: a file with at least 32 bytes, the same on all nodes. By default, it is derived
    /// from the key of the gas wallet; without either, clients of MPP get no offers.
    mpp_secret_file: Option<PathBuf>,
    /// The key that signs offers and receipts for clients of x402: a file with a private key in hexadecimal. Without it,
    /// they are not signed.
    receipt_key_file: Option<PathBuf>,
    /// The highest fee of a transaction, in the chain's coin.
    max_fee: Amount = Amount::parse("0.01").expect("it is a decimal"),
    /// The maximum gas of a payment. Payments that need more are refused.
    max_gas: u64 = 200_000,
    /// Whether this server executes payments of wallets with code: contracts (ERC-1271), and delegations (EIP-7702).
    /// Their code can make transactions revert at the cost of the gas wallet.
    contract_wallets: bool = false,
    /// How many payments per hour may revert on a chain, at the cost of the gas wallet. Beyond that, no payments are
    /// executed until the count falls.
    max_reverts: u32 = 20,
    /// The URL of the facilitator.
    facilitator: Option<String>,
    /// The bearer token for the facilitator, if it requires one.
    facilitator_token: Option<Secret>,
    /// A file with that token, instead of `facilitator_token`.
    facilitator_token_file: Option<PathBuf>,
    /// How many confirmations a payment needs. Its own block counts.
    confirmations: u32 = 1,
    /// How long a request waits for its payment.
    wait: Span = Span::seconds(25),
    /// How often to check the chain meanwhile.
    poll: Span = Span::seconds(1),
    /// How long before a transaction that is not in a block is replaced by one with higher fees.
    replace_after: Span = Span::seconds(20),
    /// Whether requests without a key can pay. If not, they get 401.
    keyless: bool = true,
    /// Whether such requests can also be paid by actual usage, on routes priced by usage (x402's scheme `upto`). They
    /// are served before they are paid.
    upto: bool = false,
    /// What is offered.
    offers: Vec<OfferConfig>,
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

/// The amounts of a token that are offered.
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
    /// The price of a coin of the chain, in tokens. A payment is not executed while its fee may exceed its value.
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
