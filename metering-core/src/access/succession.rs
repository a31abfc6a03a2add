//! Derives the key that replaces another, so a client can recover a lost response.
//!
//! A service stores only the hash of a key, so it cannot repeat a response that contains one. A client that sends an
//! idempotency key with the rotation gets a new key that is derived from the old key and the idempotency key: the same
//! request returns the same new key, on any node, and nothing is stored for it. Anyone with both inputs can compute the
//! result, so the idempotency key must be as hard to guess as a key.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::access::key::ApiKey;
use crate::charging::delivery::IdempotencyKey;
use crate::random::Randomness;

/// Separates these hashes from all others.
const PURPOSE: &[u8] = b"metering: the key that replaces a key";

/// The shortest idempotency key for a rotation. A UUID has 36 characters and 122 random bits.
pub const ROTATION_KEY_MIN: usize = 32;

/// The idempotency key is too short for a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have at least {ROTATION_KEY_MIN} random characters for this request, such as a UUID")]
pub struct ShortRotationKey;

impl ApiKey {
    /// The key that replaces this one in the rotation with this idempotency key: always the same.
    ///
    /// ```
    /// use metering_core::charging::IdempotencyKey;
    /// use metering_core::{ApiKey, SystemRandomness};
    ///
    /// let key = ApiKey::generate(&SystemRandomness);
    /// let rotation = IdempotencyKey::parse("8e03978e-40d5-43e8-bc93-6894a57f9324")?;
    /// assert_eq!(key.successor(&rotation)?.hash(), key.successor(&rotation)?.hash());
    /// assert_ne!(key.successor(&rotation)?.hash(), key.hash());
    /// assert!(key.successor(&IdempotencyKey::parse("1")?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the idempotency key is shorter than [`ROTATION_KEY_MIN`]: it might be guessed.
    pub fn successor(&self, rotation: &IdempotencyKey) -> Result<Self, ShortRotationKey> {
        derived_key(PURPOSE, self.expose(), rotation)
    }
}

/// The key derived from a secret and an idempotency key: always the same. `purpose` separates kinds of secrets.
///
/// # Errors
/// When the idempotency key is shorter than [`ROTATION_KEY_MIN`]: it might be guessed.
pub(crate) fn derived_key(purpose: &[u8], secret: &str, rotation: &IdempotencyKey) -> Result<ApiKey, ShortRotationKey> {
    let rotation = rotation.as_str();
    if rotation.len() < ROTATION_KEY_MIN {
        return Err(ShortRotationKey);
    }
    let mut seed = Sha3_256::new();
    for part in [purpose, secret.as_bytes(), rotation.as_bytes()] {
        seed.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        seed.update(part);
    }
    let seed = Zeroizing::new(seed.finalize().into());
    Ok(ApiKey::generate(&Derived { seed, next: AtomicU64::new(0) }))
}

/// Bytes derived from a secret seed: its hashes with a counter.
struct Derived {
    seed: Zeroizing<[u8; 32]>,
    next: AtomicU64,
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived(…)")
    }
}

impl Randomness for Derived {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            let counter = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let block = Zeroizing::new(<[u8; 32]>::from(
                Sha3_256::new().chain_update(self.seed.as_slice()).chain_update(counter).finalize(),
            ));
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    fn rotation(text: &str) -> IdempotencyKey {
        IdempotencyKey::parse(text).unwrap()
    }

    #[test]
    fn successor_follows_from_both_inputs() {
        let (key, other) = (ApiKey::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let (one, two) = (rotation(&"1".repeat(32)), rotation(&"2".repeat(32)));
        let hash = |key: &ApiKey, rotation| key.successor(rotation).unwrap().hash();
        assert_eq!(hash(&key, &one), hash(&key, &one));
        let all =
            [hash(&key, &one), hash(&key, &two), hash(&other, &one), hash(&other, &two), key.hash(), other.hash()];
        for (place, hash) in all.iter().enumerate() {
            assert!(!all[..place].contains(hash), "{place}");
        }
        assert!(ApiKey::parse(key.successor(&one).unwrap().expose()).is_ok());
    }

    /// A change of the derivation would lock out clients that retry across an upgrade.
    #[test]
    fn derivation_does_not_change() {
        #[derive(Debug)]
        struct Sevens;
        impl Randomness for Sevens {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(7);
            }
        }
        let key = ApiKey::generate(&Sevens);
        let next = key.successor(&rotation("8e03978e-40d5-43e8-bc93-6894a57f9324")).unwrap();
        assert_eq!(next.expose(), "sk_live_IakwTs1yR9QgCxF9erUctrv3t93NaJ3H1wG8FZ");
    }

    #[test]
    fn short_idempotency_keys_are_refused() {
        let key = ApiKey::generate(&SystemRandomness);
        for (length, accepted) in [(1, false), (31, false), (32, true), (128, true)] {
            assert_eq!(key.successor(&rotation(&"x".repeat(length))).is_ok(), accepted, "{length}");
        }
    }
}
