//! Contracts for rotation: the wallet that paid for an account replaces its key, once per challenge.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::{AccountId, KeyHash, Payer, RateLimits};
use metering_core::charging::LimitWindow;
use metering_core::payments::Challenge;
use metering_core::store::{NewAccount, PaymentStore};

use super::sale::{MOMENT, buyer, challenge, wallet};
use super::scene::{
    BASE, Customer, MINUTE, NOON, accepted, account, adjustment, atoms, charge, create, customer, new_account, new_id,
    new_key, refused,
};

/// A customer with credits for ten base calls, paid for by wallet `number`.
async fn payer(store: &dyn PaymentStore, number: u8, limits: RateLimits) -> Customer {
    let payer = Some(Payer { address: wallet(number), chain_id: 8453 });
    let new = NewAccount { payer, limits, entries: vec![adjustment(10 * BASE)], ..new_account() };
    let customer = Customer { id: new.id.clone(), key: new.key };
    create(store, new).await;
    customer
}

/// Opens a challenge for an account and a wallet.
async fn ask(store: &dyn PaymentStore, account: &AccountId, number: u8, nonce: &str) -> Challenge {
    let opened = challenge(account, wallet(number), nonce);
    store.open_challenge(opened.clone()).await.unwrap();
    opened
}

/// Tries a rotation and expects that it changes neither the key nor the challenge.
async fn assert_nothing_rotates(store: &dyn PaymentStore, nonce: &str, customer: &Customer) {
    let (before, live) = (store.challenge(nonce).await.unwrap(), store.live_keys(&[customer.key], NOON).await.unwrap());
    let key = new_key();
    assert_eq!(store.rotate_key(nonce, key, NOON).await.unwrap(), None, "{nonce}");
    assert_eq!(store.challenge(nonce).await.unwrap(), before, "{nonce}");
    assert_eq!(store.live_keys(&[customer.key, key], NOON).await.unwrap(), [live[0], false], "{nonce}");
}

/// The old key stops working and the new one starts working immediately, and the challenge is used up.
pub async fn a_challenge_replaces_the_key_once(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::default()).await;
    ask(&*store, &owner.id, 1, "asked").await;
    let key = new_key();
    let result = store.rotate_key("asked", key, NOON).await.unwrap().expect("the challenge is open");
    assert_eq!(result, account(&*store, &owner.id).await);
    assert_eq!(store.account_by_key(&key).await.unwrap(), Some(result));
    assert_eq!(refused(&*store, charge(owner.key, BASE), NOON).await, Refusal::UnknownKey);
    assert_eq!(accepted(&*store, charge(key, BASE), NOON).await.account, owner.id);
    assert_eq!(store.challenge("asked").await.unwrap(), None);
    let rotated = Customer { id: owner.id, key };
    assert_nothing_rotates(&*store, "asked", &rotated).await;
}

/// Balance and rate limit windows belong to the account, so a rotated key does not reset them.
pub async fn a_rotated_key_keeps_balance_and_windows(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::per_minute(2)).await;
    accepted(&*store, charge(owner.key, BASE), NOON).await;
    ask(&*store, &owner.id, 1, "asked").await;
    let key = new_key();
    store.rotate_key("asked", key, NOON).await.unwrap().expect("the challenge is open");
    assert_eq!(accepted(&*store, charge(key, BASE), NOON).await.balance, atoms(8 * BASE));
    let refusal = refused(&*store, charge(key, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::RateLimited { window: LimitWindow::Minute, .. }), "{refusal:?}");
}

/// An account can have several open challenges; each can be used, one after the other.
pub async fn each_of_several_challenges_can_be_used(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::default()).await;
    let other = payer(&*store, 2, RateLimits::default()).await;
    for nonce in ["first", "second", "third"] {
        ask(&*store, &owner.id, 1, nonce).await;
    }
    ask(&*store, &other.id, 2, "another's").await;
    let mut keys = vec![owner.key];
    for nonce in ["second", "third", "first"] {
        let key = new_key();
        let rotated = store.rotate_key(nonce, key, NOON).await.unwrap().expect("the challenge is open");
        assert_eq!(rotated.id, owner.id);
        keys.push(key);
        let live = store.live_keys(&keys, NOON).await.unwrap();
        assert!(live.iter().rev().copied().eq((0..keys.len()).map(|age| age == 0)), "{live:?}");
    }
    assert_eq!(store.live_keys(&[other.key], NOON).await.unwrap(), [true]);
    assert!(store.challenge("another's").await.unwrap().is_some());
}

/// A challenge can be used until its expiry, and not a moment later.
pub async fn expired_challenge_rotates_nothing(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::default()).await;
    let until = ask(&*store, &owner.id, 1, "asked").await.expires_at;
    for late in [until.saturating_add(MOMENT), until.saturating_add(MINUTE)] {
        assert_eq!(store.rotate_key("asked", new_key(), late).await.unwrap(), None);
        assert!(store.challenge("asked").await.unwrap().is_some(), "a late signature gets the right error");
        assert_eq!(store.live_keys(&[owner.key], NOON).await.unwrap(), [true]);
    }
    assert!(store.rotate_key("asked", new_key(), until).await.unwrap().is_some());
    assert_eq!(store.live_keys(&[owner.key], NOON).await.unwrap(), [false]);
}

/// A revoked account cannot get a new key from its wallet either.
pub async fn a_revoked_account_is_not_rotated(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::default()).await;
    ask(&*store, &owner.id, 1, "asked").await;
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert_nothing_rotates(&*store, "asked", &owner).await;
    // The wallet's next account is not affected either, because the challenge is for the revoked one.
    let next = payer(&*store, 1, RateLimits::default()).await;
    assert_nothing_rotates(&*store, "asked", &next).await;
}

/// Only the wallet that paid for the account can replace its key.
pub async fn another_wallet_rotates_nothing(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::default()).await;
    let without = customer(&*store, BASE).await;
    buyer(&*store, 2).await;
    ask(&*store, &owner.id, 2, "another's wallet").await;
    ask(&*store, &owner.id, 3, "nobody's wallet").await;
    ask(&*store, &without.id, 1, "an account without a payer").await;
    ask(&*store, &new_id(), 1, "no account").await;
    for nonce in ["another's wallet", "nobody's wallet", "an account without a payer", "no account", "no challenge"] {
        assert_nothing_rotates(&*store, nonce, &owner).await;
        assert_eq!(store.live_keys(&[without.key], NOON).await.unwrap(), [true], "{nonce}");
    }
}

/// A key that an account has or had is an error: the old key and the challenge stay, and another key can still be set.
pub async fn key_in_use_cannot_be_rotated_in(store: Arc<dyn PaymentStore>) {
    let owner = payer(&*store, 1, RateLimits::default()).await;
    let other = customer(&*store, BASE).await;
    let others: KeyHash = new_key();
    store.replace_key(&other.id, others, NOON).await.unwrap().expect("the account is live");
    let opened = ask(&*store, &owner.id, 1, "asked").await;
    for (what, key) in [("its own", owner.key), ("another's", others), ("another's old one", other.key)] {
        assert!(store.rotate_key("asked", key, NOON).await.is_err(), "{what}");
        assert_eq!(store.challenge("asked").await.unwrap().as_ref(), Some(&opened), "{what}");
        assert_eq!(
            store.live_keys(&[owner.key, others, other.key], NOON).await.unwrap(),
            [true, true, false],
            "{what}"
        );
    }
    assert!(store.rotate_key("asked", new_key(), NOON).await.unwrap().is_some());
}
