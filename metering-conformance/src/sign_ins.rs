//! Contracts for the sign-ins of wallets: each is used once, and forgotten when it has expired.

use std::sync::Arc;
use std::time::Duration;

use metering_core::clock::Timestamp;
use metering_core::store::AuthorizationStore;

use super::authorization_scene::TASKS;
use super::event_scene::at;
use super::scene::racing;

/// More than a backend deletes at a time.
const MANY: u16 = 600;

fn nonce(number: u16) -> [u8; 32] {
    let mut nonce = [0xFF; 32];
    nonce[..2].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// A nonce is new once, even with another expiry the next time. Another nonce is new.
pub async fn a_sign_in_is_used_once(store: Arc<dyn AuthorizationStore>) {
    assert!(store.use_sign_in(nonce(1), at(60)).await.unwrap());
    for expires_at in [at(60), at(0), at(9_999)] {
        assert!(!store.use_sign_in(nonce(1), expires_at).await.unwrap());
    }
    assert!(store.use_sign_in(nonce(2), at(60)).await.unwrap());
}

/// Many requests use one nonce at once, and one of them succeeds.
pub async fn concurrent_sign_ins_with_one_nonce_use_it_once(store: Arc<dyn AuthorizationStore>) {
    let results =
        racing(&store, 0..TASKS, |store, _| async move { store.use_sign_in(nonce(1), at(60)).await.unwrap() }).await;
    assert_eq!(results.into_iter().filter(|is_new| *is_new).count(), 1);
}

/// It is remembered until its expiry, and not longer.
pub async fn a_sign_in_is_forgotten_when_it_expires(store: Arc<dyn AuthorizationStore>) {
    assert!(store.use_sign_in(nonce(1), at(60)).await.unwrap());
    let before: Timestamp = at(60).saturating_sub(Duration::from_millis(1));
    assert_eq!(store.forget_expired(before).await.unwrap(), 0);
    assert!(!store.use_sign_in(nonce(1), at(120)).await.unwrap());
    assert_eq!(store.forget_expired(at(60)).await.unwrap(), 1, "the later use did not extend it");
    assert!(store.use_sign_in(nonce(1), at(120)).await.unwrap());
}

/// All expired ones are deleted, no matter how many, and the others are kept.
pub async fn many_expired_sign_ins_are_forgotten(store: Arc<dyn AuthorizationStore>) {
    for number in 0..MANY {
        assert!(store.use_sign_in(nonce(number), at(60)).await.unwrap());
    }
    assert!(store.use_sign_in(nonce(MANY), at(61)).await.unwrap());
    assert_eq!(store.forget_expired(at(60)).await.unwrap(), u64::from(MANY));
    assert!(!store.use_sign_in(nonce(MANY), at(61)).await.unwrap());
    assert!(store.use_sign_in(nonce(0), at(120)).await.unwrap());
}
