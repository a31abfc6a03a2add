//! Values that are kept in memory for a limited time, by a secret that a browser has. A restart forgets it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_core::Randomness;
use sha3::{Digest, Sha3_256};
use tokio::time::Instant;
use zeroize::Zeroizing;

/// How many values there may be. One more removes the oldest.
const MAX: usize = 1_000;

/// Values with the time at which each ends, by the SHA3-256 of their secrets.
type ByHash<T> = HashMap<[u8; 32], (T, Instant)>;

/// Values that all last equally long.
#[derive(Debug)]
pub(super) struct Expiring<T> {
    lifetime: Duration,
    by_hash: Mutex<ByHash<T>>,
}

impl<T> Expiring<T> {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, by_hash: Mutex::default() }
    }

    /// Keeps a value.
    pub(super) fn keep(&self, secret: &str, value: T) {
        let now = Instant::now();
        let mut kept = self.lock();
        kept.retain(|_, (_, until)| now < *until);
        if kept.len() >= MAX
            && let Some(oldest) = kept.iter().min_by_key(|(_, (_, until))| *until).map(|(hash, _)| *hash)
        {
            kept.remove(&oldest);
        }
        kept.insert(hash(secret), (value, now + self.lifetime));
    }

    /// A copy of the value.
    pub(super) fn get(&self, secret: &str) -> Option<T>
    where
        T: Clone,
    {
        let kept = self.lock();
        kept.get(&hash(secret)).filter(|(_, until)| Instant::now() < *until).map(|(value, _)| value.clone())
    }

    /// Removes the value.
    pub(super) fn take(&self, secret: &str) -> Option<T> {
        let (value, until) = self.lock().remove(&hash(secret))?;
        (Instant::now() < until).then_some(value)
    }

    fn lock(&self) -> MutexGuard<'_, ByHash<T>> {
        self.by_hash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash of a secret.
pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha3_256::digest(secret.as_bytes()).into()
}

/// 256 random bits.
pub(super) fn random_hex(randomness: &dyn Randomness) -> String {
    let mut bytes = Zeroizing::new([0; 32]);
    randomness.fill(&mut *bytes);
    hex::encode(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_value_is_there_until_it_is_taken_or_expires() {
        let kept = Expiring::new(LIFETIME);
        kept.keep("one", 1);
        kept.keep("two", 2);
        assert_eq!((kept.get("one"), kept.get("two"), kept.get("")), (Some(1), Some(2), None));
        assert_eq!((kept.take("one"), kept.take("one"), kept.get("one")), (Some(1), None, None));
        tokio::time::advance(LIFETIME).await;
        assert_eq!((kept.get("two"), kept.take("two")), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn one_too_many_removes_the_oldest() {
        let kept = Expiring::new(LIFETIME);
        kept.keep("oldest", 0);
        for number in 0..MAX {
            tokio::time::advance(Duration::from_millis(1)).await;
            kept.keep(&number.to_string(), number);
        }
        assert_eq!((kept.get("oldest"), kept.get("0")), (None, Some(0)));
        assert_eq!(kept.lock().len(), MAX);
    }
}
