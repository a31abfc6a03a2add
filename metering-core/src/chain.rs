//! Chains: where plans are paid.

use serde::{Deserialize, Serialize};

use crate::address::Address;

/// A chain that plans may be paid on, as far as clients need to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Its id (EIP-155).
    pub chain_id: u64,
    /// Its name for people.
    pub name: String,
    /// An RPC URL that anyone may use; empty when there is none to recommend. Never the operator's own.
    pub public_rpc_url: String,
    /// Who is paid.
    pub recipient: Address,
    /// How many blocks deep a payment must be.
    pub confirmations: u32,
}
