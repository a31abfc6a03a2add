//! Accounts on a chain, owned by a private key.

use std::fmt;

/// An account and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    checksummed: String,
    private_key: String,
}

impl Account {
    pub(crate) fn new(checksummed: String, private_key: String) -> Self {
        Self { checksummed, private_key }
    }

    /// The address in lower case, as the service returns addresses.
    #[must_use]
    pub fn address(&self) -> String {
        self.checksummed.to_ascii_lowercase()
    }

    /// The address with its EIP-55 checksum, as wallets show it.
    #[must_use]
    pub fn checksummed(&self) -> &str {
        &self.checksummed
    }

    /// The private key, as `0x` and hex.
    #[must_use]
    pub fn private_key(&self) -> &str {
        &self.private_key
    }
}

impl fmt::Debug for Account {
    /// Leaves out the private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("address", &self.checksummed).finish_non_exhaustive()
    }
}
