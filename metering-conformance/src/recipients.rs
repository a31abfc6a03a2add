//! Contracts for recipients: each has the time of its first registration, and is listed.

use std::sync::Arc;
use std::time::Duration;

use metering_core::chains::Address;
use metering_core::store::PaymentStore;

use super::sale::{after, wallet};
use super::scene::NOON;

/// Each recipient has the time of its first registration on its chain, no matter how often it is registered again.
pub async fn recipient_is_known_since_first_registration(store: Arc<dyn PaymentStore>) {
    let first = store.register_recipients(vec![(1, wallet(1)), (u64::MAX, wallet(1))], NOON).await.unwrap();
    assert!(first.iter().all(|registration| registration.is_new && registration.since == NOON));
    let listed = store.recipients().await.unwrap();
    let later = after(Duration::from_secs(60));
    let configured = vec![(u64::MAX, wallet(1)), (1, wallet(2)), (1, wallet(1))];
    let again = store.register_recipients(configured, later).await.unwrap();
    let found: Vec<_> =
        again.iter().map(|found| (found.chain_id, found.recipient, found.since, found.is_new)).collect();
    let expected = [(u64::MAX, wallet(1), NOON, false), (1, wallet(2), later, true), (1, wallet(1), NOON, false)];
    assert_eq!(found, expected);
    assert!(again.iter().all(|registration| registration.other_store.is_none()), "there is one store");
    let all = store.recipients().await.unwrap();
    assert_eq!((all[0], all[2]), (listed[0], listed[1]), "known recipients are unchanged");
}

/// Recipients are listed by chain and address, for the whole range of both.
pub async fn recipients_are_listed_in_order(store: Arc<dyn PaymentStore>) {
    assert_eq!(store.recipients().await.unwrap(), []);
    let (low, high) = (Address::from_bytes([0x01; 20]), Address::from_bytes([0xFF; 20]));
    let expected = [(0, low), (1, low), (1, high), (1 << 63, low), (u64::MAX, high)];
    for (chain_id, recipient) in expected.iter().rev() {
        store.register_recipients(vec![(*chain_id, *recipient)], NOON).await.unwrap();
    }
    let listed = store.recipients().await.unwrap();
    let found: Vec<_> = listed.iter().map(|record| (record.chain_id, record.recipient)).collect();
    assert_eq!(found, expected);
    assert!(listed.iter().all(|record| record.store == listed[0].store && record.since == NOON));
}

/// The registration that replaces a recipient names the old one; repeating it does not.
pub async fn changed_recipient_is_reported(store: Arc<dyn PaymentStore>) {
    store.register_recipients(vec![(1, wallet(1))], NOON).await.unwrap();
    let later = after(Duration::from_secs(60));
    let changed = store.register_recipients(vec![(1, wallet(2))], later).await.unwrap();
    assert_eq!((changed[0].replaces, changed[0].since), (Some(wallet(1)), later));
    let again = store.register_recipients(vec![(1, wallet(2))], later).await.unwrap();
    assert_eq!(again[0].replaces, None);
}
