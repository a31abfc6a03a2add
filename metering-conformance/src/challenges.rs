//! Contracts for challenges: stored as given, several at a time, and used up by failures.

use std::sync::Arc;

use metering_core::clock::Timestamp;
use metering_core::payments::Challenge;
use metering_core::store::PaymentStore;

use super::sale::{MOMENT, buyer, challenge, wallet};
use super::scene::{DAY, NOON, new_id, new_key};

async fn failures(store: &dyn PaymentStore, nonce: &str) -> Option<u32> {
    store.challenge(nonce).await.unwrap().map(|challenge| challenge.failures)
}

/// All fields of a challenge are stored as given. Whether its account exists is only checked at the rotation.
pub async fn challenges_are_stored_unchanged(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    let at = Timestamp::from_unix_millis;
    let long = "x".repeat(10_000);
    let table = [
        challenge(&owner, wallet(1), "plain"),
        challenge(&new_id(), wallet(0xFF), "for nobody"),
        Challenge {
            message: "“größer”\r\n\n\t'%_ \\ \u{1F511}\n".to_owned(), ..challenge(&owner, wallet(2), "Plain")
        },
        Challenge { message: long, expires_at: at(253_402_300_799_999), ..challenge(&owner, wallet(3), "long") },
        Challenge { expires_at: at(1), failures: Challenge::MAX_FAILURES - 1, ..challenge(&owner, wallet(4), "'; --") },
        Challenge { message: String::new(), ..challenge(&owner, wallet(0), "größer") },
    ];
    for challenge in &table {
        store.open_challenge(challenge.clone()).await.unwrap();
    }
    for challenge in table {
        assert_eq!(store.challenge(&challenge.nonce).await.unwrap(), Some(challenge));
    }
}

/// An unknown nonce finds no challenge; nonces are compared exactly.
pub async fn an_unknown_nonce_finds_no_challenge(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    store.open_challenge(challenge(&owner, wallet(1), "asked")).await.unwrap();
    for nonce in ["", "Asked", "ask", "asked ", "asked%"] {
        assert_eq!(store.challenge(nonce).await.unwrap(), None, "{nonce:?}");
    }
}

/// Opening a challenge with a nonce in use is an error and leaves the existing challenge unchanged.
pub async fn a_challenge_with_a_nonce_in_use_is_an_error(store: Arc<dyn PaymentStore>) {
    let (first, second) = (buyer(&*store, 1).await.id, buyer(&*store, 2).await.id);
    let kept = challenge(&first, wallet(1), "asked");
    store.open_challenge(kept.clone()).await.unwrap();
    for new in [kept.clone(), challenge(&second, wallet(2), "asked")] {
        assert!(store.open_challenge(new).await.is_err());
        assert_eq!(store.challenge("asked").await.unwrap(), Some(kept.clone()));
    }
}

/// Failures are counted, and the fifth uses the challenge up. Other challenges of the account are not affected.
pub async fn challenge_is_used_up_after_five_failures(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    for nonce in ["first", "second"] {
        store.open_challenge(challenge(&owner, wallet(1), nonce)).await.unwrap();
    }
    for count in 1..Challenge::MAX_FAILURES {
        store.fail_challenge("first").await.unwrap();
        assert_eq!((failures(&*store, "first").await, failures(&*store, "second").await), (Some(count), Some(0)));
    }
    store.fail_challenge("first").await.unwrap();
    assert_eq!((failures(&*store, "first").await, failures(&*store, "second").await), (None, Some(0)));
    assert_eq!(store.rotate_key("first", new_key(), NOON).await.unwrap(), None, "the challenge is used up");
    assert!(store.rotate_key("second", new_key(), NOON).await.unwrap().is_some(), "the other one is still valid");
}

/// A challenge that starts with some failures has fewer attempts left.
pub async fn failures_continue_from_the_stored_count(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    let failures_so_far = Challenge::MAX_FAILURES - 2;
    let opened = Challenge { failures: failures_so_far, ..challenge(&owner, wallet(1), "asked") };
    store.open_challenge(opened).await.unwrap();
    store.fail_challenge("asked").await.unwrap();
    assert_eq!(failures(&*store, "asked").await, Some(failures_so_far + 1));
    store.fail_challenge("asked").await.unwrap();
    assert_eq!(failures(&*store, "asked").await, None);
}

/// Failing a challenge that does not exist, or no longer exists, does nothing.
pub async fn failing_an_unknown_challenge_does_nothing(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    store.fail_challenge("asked").await.unwrap();
    let opened = challenge(&owner, wallet(1), "asked");
    store.open_challenge(opened.clone()).await.unwrap();
    store.fail_challenge("other").await.unwrap();
    assert_eq!(store.challenge("asked").await.unwrap(), Some(opened), "failures before it do not count");
    assert_eq!(store.challenge("other").await.unwrap(), None);
    for _ in 0..Challenge::MAX_FAILURES + 3 {
        store.fail_challenge("asked").await.unwrap();
    }
    assert_eq!(store.challenge("asked").await.unwrap(), None);
}

/// An expired challenge can still be found, so that a late signature gets the right error.
pub async fn an_expired_challenge_is_still_found(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    let expired = Challenge { expires_at: NOON.saturating_sub(DAY), ..challenge(&owner, wallet(1), "asked") };
    store.open_challenge(expired.clone()).await.unwrap();
    assert_eq!(store.rotate_key("asked", new_key(), NOON.saturating_sub(MOMENT)).await.unwrap(), None);
    assert_eq!(store.challenge("asked").await.unwrap(), Some(expired));
}
