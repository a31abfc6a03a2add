//! Accounts of a chain that a private key owns.

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

    /// Its address, in lower case, as the service returns addresses.
    #[must_use]
    pub fn address(&self) -> String {
        self.checksummed.to_ascii_lowercase()
    }

    /// Its address with the checksum of EIP-55, as wallets show it.
    #[must_use]
    pub fn checksummed(&self) -> &str {
        &self.checksummed
    }

    /// Its private key, as `0x` and hex.
    #[must_use]
    pub fn private_key(&self) -> &str {
        &self.private_key
    }
}

impl fmt::Debug for Account {
    /// Without its key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("address", &self.checksummed).finish_non_exhaustive()
    }
}
