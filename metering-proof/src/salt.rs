//! Salts of leaves: without its salt, a commitment reveals nothing about its leaf. They are derived from a secret of
//! the log, so none is stored, and the salts of one account reveal nothing about another's.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use metering_core::AccountId;
use metering_core::store::LogSecret;
use sha2::Sha256;

const PURPOSE: &[u8] = b"metering-leaf-salt-v1\0";

/// The salt of a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 16]);

impl Salt {
    /// The salt with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(…)")
    }
}

/// The salts of the leaves of one account.
#[derive(Clone)]
pub struct AccountSalts(Hmac<Sha256>);

impl AccountSalts {
    /// The salts of an account's leaves in the log with this secret.
    #[must_use]
    pub fn new(secret: &LogSecret, account: &AccountId) -> Self {
        let key = mac(secret.expose()).chain_update(PURPOSE).chain_update(account.as_str()).finalize().into_bytes();
        Self(mac(&key))
    }

    /// The salt of the leaf with this number in its account.
    #[must_use]
    pub fn salt(&self, number: u64) -> Salt {
        let mac = self.0.clone().chain_update(number.to_be_bytes()).finalize().into_bytes();
        let mut salt = [0; 16];
        salt.copy_from_slice(&mac[..16]);
        Salt(salt)
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl fmt::Debug for AccountSalts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountSalts(…)")
    }
}
