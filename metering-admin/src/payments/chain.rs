//! A chain that payments are read from.

use metering_core::chains::{Chain, ChainReader};

/// A chain and its reader. Borrowed, because a server keeps its readers by chain id and a command opens its own.
#[derive(Debug, Clone, Copy)]
pub struct ReadableChain<'a> {
    /// The operator's name for it, such as the name of its configuration section. Errors and documents name it so.
    pub name: &'a str,
    /// The chain.
    pub chain: &'a Chain,
    /// Reads it.
    pub reader: &'a dyn ChainReader,
}

impl ReadableChain<'_> {
    /// Its id (EIP-155).
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.chain.chain_id
    }
}
