//! A chain's section of the configuration.

use metering_core::{Address, Chain};
use serde::{Deserialize, Serialize};

/// A chain that plans are paid on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainConfig {
    /// Its id (EIP-155).
    pub chain_id: u64,
    /// Its name for people; by default the section's.
    pub name: Option<String>,
    /// Who is paid.
    pub recipient: Address,
    /// An RPC URL that clients may be told; never the operator's own.
    #[serde(default)]
    pub public_rpc_url: String,
    /// How many blocks deep a payment must be.
    #[serde(default = "default_confirmations")]
    pub confirmations: u32,
}

const fn default_confirmations() -> u32 {
    12
}

impl ChainConfig {
    /// What clients are told of the chain.
    #[must_use]
    pub fn chain(&self, section: &str) -> Chain {
        Chain {
            chain_id: self.chain_id,
            name: self.name.clone().unwrap_or_else(|| section.to_owned()),
            public_rpc_url: self.public_rpc_url.clone(),
            recipient: self.recipient,
            confirmations: self.confirmations,
        }
    }
}
