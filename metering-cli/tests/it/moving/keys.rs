//! Accounts with several keys: with every kind of terms, in every state.

use metering_core::access::{Budget, BudgetReset, KeyHash, KeyId, KeyTerms, Networks, RoutePatterns, Scopes};
use metering_core::charging::{Outcome, Posting};
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey};
use metering_core::{AccountId, Credits, Decision, RateLimits, Store};
use metering_sqlite::SqliteStore;

use super::filling::{charge, grant, later};
use super::{NOON, customer};

pub(crate) const KEYED: u8 = 8;

/// The secrets of the account, by their outcomes.
pub(crate) const COUNTED: u8 = 0xd1;
pub(crate) const BELOW: u8 = 0xd2;
pub(crate) const DISABLED: u8 = 0xd3;
pub(crate) const LEAKED: u8 = 0xd4;
pub(crate) const REVOKED: u8 = 0xd5;
pub(crate) const REPLACED: u8 = 0xd6;
const REPLACEMENT: u8 = 0xd7;

/// The secrets of all keys that [`fill`] makes.
pub(crate) fn secrets() -> impl Iterator<Item = KeyHash> {
    [KEYED, COUNTED, BELOW, DISABLED, LEAKED, REVOKED, REPLACED, REPLACEMENT].into_iter().map(secret)
}

pub(crate) fn secret(number: u8) -> KeyHash {
    KeyHash::from_bytes([number; 32])
}

/// An account with a key of every kind, each of which was used.
pub(crate) async fn fill(store: &SqliteStore) {
    let (account, first) = customer(store, KEYED, grant(1_000)).await;
    let counted = create(store, &account, None, COUNTED, terms()).await;
    create(store, &account, Some(&counted), BELOW, below()).await;
    let mut others = Vec::new();
    for number in [DISABLED, LEAKED, REVOKED, REPLACED] {
        let terms = KeyTerms::new(format!("Key {number} — ü").parse().unwrap(), Scopes::default());
        others.push(create(store, &account, None, number, terms).await);
    }
    let numbers = [COUNTED, BELOW, BELOW, DISABLED, LEAKED, REVOKED, REPLACED];
    let mut postings: Vec<_> = numbers.into_iter().map(|number| from_office(secret(number))).collect();
    postings.push(charge(first, "/a", None));
    let outcomes = store.commit(postings, NOON).await.unwrap();
    let refunds = outcomes.into_iter().skip(1).step_by(3).map(|outcome| match outcome {
        Outcome::Decided(Decision::Accepted(receipt)) => Posting::Refund(receipt.into_refund().unwrap()),
        other => panic!("{other:?}"),
    });
    store.commit(refunds.collect(), later(1)).await.unwrap();
    let off = metering_core::store::TermsChange { disabled: Some(true), ..Default::default() };
    change(store, &account, &others[0], KeyChange::Terms(Box::new(off))).await;
    assert!(store.report_leaked(&secret(LEAKED), NOON).await.unwrap().is_some());
    change(store, &account, &others[2], KeyChange::Revoke).await;
    let rotation = KeyChange::Rotate { secret: secret(REPLACEMENT), old_until: Some(later(600)) };
    change(store, &account, &others[3], rotation).await;
}

/// A charge from a network that all keys allow.
fn from_office(secret: KeyHash) -> Posting {
    let Posting::Charge(mut charge) = charge(secret, "/a", None) else { unreachable!() };
    charge.address = "203.0.113.9".parse().ok();
    Posting::Charge(charge)
}

/// Terms of every kind.
pub(crate) fn terms() -> KeyTerms {
    KeyTerms {
        routes: RoutePatterns::parse(["GET /a", "/b/*"]).unwrap(),
        networks: Networks::parse(["203.0.113.0/24", "2001:db8::/32"]).unwrap(),
        expires_at: Some(later(86_400 * 400)),
        limits: RateLimits::per_minute(100).and_per_day(1_000),
        tokens_per_minute: 9_000,
        max_in_flight: 7,
        budget: Some(Budget { limit: Credits::from_whole(5).unwrap(), reset: Some(BudgetReset::Weekly) }),
        alert_below: Some(Credits::from_atoms(12_345_678)),
        ..KeyTerms::new("Counted, 'quoted' \"too\"".parse().unwrap(), Scopes::ALL)
    }
}

fn below() -> KeyTerms {
    let budget = Some(Budget { limit: Credits::from_atoms(5_000_000), reset: None });
    KeyTerms { budget, ..KeyTerms::new("Below".parse().unwrap(), Scopes::default()) }
}

pub(crate) async fn create(
    store: &dyn Store,
    account: &AccountId,
    parent: Option<&KeyId>,
    number: u8,
    terms: KeyTerms,
) -> KeyId {
    let new = NewKey {
        account: account.clone(),
        parent: parent.cloned(),
        secret: secret(number),
        terms,
        max_keys: 100,
        created_at: NOON,
    };
    match store.create_key(new).await.unwrap() {
        KeyCreated::Key(key) => key.id,
        refused => panic!("{refused:?}"),
    }
}

async fn change(store: &dyn Store, account: &AccountId, key: &KeyId, change: KeyChange) {
    let changed = store.change_key(account, key, None, change, NOON).await.unwrap();
    assert!(matches!(changed, KeyChanged::Key(_)), "{changed:?}");
}
