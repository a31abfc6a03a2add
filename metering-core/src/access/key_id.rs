//! Identifiers of a key that do not reveal it: its public id, and its number within its account.

use std::str::FromStr;
use std::sync::Arc;

use sha3::{Digest, Sha3_256};

use crate::access::account::AccountId;
use crate::access::key::KeyHash;
use crate::lower_hex::is_lower_hex;
use crate::text_traits::text_traits;

/// Separates these hashes from all others.
const PURPOSE: &[u8] = b"metering: the public id of a key";

/// The public id of a key: `key_` and 20 lower-case hex digits. It stays the same when the key is rotated.
///
/// ```
/// use metering_core::access::KeyId;
/// use metering_core::{ApiKey, SystemRandomness};
///
/// let key = ApiKey::generate(&SystemRandomness);
/// let id = KeyId::of_first(&key.hash());
/// assert_eq!(id.as_str().parse(), Ok(id));
/// assert!("key_42".parse::<KeyId>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Arc<str>);

/// The text is not the id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a key is key_ followed by 20 lower-case hex digits")]
pub struct KeyIdError;

impl KeyId {
    const PREFIX: &str = "key_";
    const DIGITS: usize = 20;

    /// The id of the key whose first secret has this hash. Its 80 bits are derived from the secret, and reveal nothing
    /// about it.
    #[must_use]
    pub fn of_first(secret: &KeyHash) -> Self {
        let digest = Sha3_256::new().chain_update(PURPOSE).chain_update(secret.as_bytes()).finalize();
        Self(format!("{}{}", Self::PREFIX, hex::encode(&digest[..Self::DIGITS / 2])).into())
    }

    /// The id of an imported key without secrets, from its account and its position there.
    pub(crate) fn of_import(account: &AccountId, position: usize) -> Self {
        let place = format!("{account}/{position}");
        let digest = Sha3_256::new().chain_update(PURPOSE).chain_update(place.as_bytes()).finalize();
        Self(format!("{}{}", Self::PREFIX, hex::encode(&digest[..Self::DIGITS / 2])).into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        match text.strip_prefix(Self::PREFIX) {
            Some(rest) if rest.len() == Self::DIGITS && is_lower_hex(rest) => Ok(Self(text.into())),
            _ => Err(KeyIdError),
        }
    }
}

text_traits!(KeyId: Display, Debug, Serialize);

/// The number of a key within its account, in the order of creation. Never reused. Stores keep it instead of the id
/// where there is a row or an entry per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyNumber(u32);

impl KeyNumber {
    /// The key that an account is created with.
    pub const FIRST: Self = Self(0);

    /// The key with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether it is the key that its account was created with.
    #[must_use]
    pub const fn is_first(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_the_secret_and_parses() {
        let (one, two) = (KeyHash::from_bytes([1; 32]), KeyHash::from_bytes([2; 32]));
        let id = KeyId::of_first(&one);
        assert_eq!((KeyId::of_first(&one), id.as_str().parse()), (id.clone(), Ok(id.clone())));
        assert_ne!(KeyId::of_first(&two), id);
        for text in ["", "key_", "key_0123456789abcdef012", "key_0123456789ABCDEF0123", "org_0123456789abcdef0123"] {
            assert_eq!(text.parse::<KeyId>(), Err(KeyIdError), "{text}");
        }
    }
}
