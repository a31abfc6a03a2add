//! Moves a store with many keys to another database, and compares both.

use metering_core::access::{Budget, BudgetReset, KeyTerms, Scopes};
use metering_core::charging::Posting;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{KeyChange, KeyCreated, KeyStore, NewKey};
use metering_core::{AccountId, ApiKey, Charge, Credits, NewAccount, Store, SystemRandomness};
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Record, Section};
use metering_tests::postgres::fresh_schema;

use crate::lost_commits::NOON;
use crate::moved::{moved, records};

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_many_keys_is_moved_completely() {
    let Some(url) = fresh_schema() else { return };
    let source = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let (first, account) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
    let mut new = NewAccount::new(account.clone(), "agent".parse().unwrap(), first.hash(), NOON);
    new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_whole(2).unwrap(), "Free")];
    source.create_account(new).await.unwrap();
    let (mut parent, mut secrets) = (None, vec![first]);
    for number in 0..7 {
        let mut terms = KeyTerms::new(format!("key {number}").parse().unwrap(), Scopes::ALL);
        if number > 2 {
            terms.routes = "GET /x\n/y/*".parse().unwrap();
            terms.networks = "10.0.0.0/8 2001:db8::/32".parse().unwrap();
            terms.expires_at = Some(NOON.saturating_add(std::time::Duration::from_secs(3_600)));
            terms.budget = Some(Budget { limit: Credits::from_atoms(1_000), reset: Some(BudgetReset::Weekly) });
            terms.limits.requests_per_minute = 50;
            terms.max_in_flight = 3;
        }
        let secret = ApiKey::generate(&SystemRandomness);
        let (account, hash) = (account.clone(), secret.hash());
        let new = NewKey { account, parent, secret: hash, terms, max_keys: 10, created_at: NOON };
        let KeyCreated::Key(key) = source.create_key(new).await.unwrap() else { panic!("it was not created") };
        parent = Some(key.id);
        secrets.push(secret);
    }
    for (place, secret) in secrets.iter().cycle().take(60).enumerate() {
        let mut charge = Charge::new(secret, Credits::from_atoms(2), "GET", "/x");
        charge.address = "10.1.2.3".parse().ok();
        source.commit(vec![Posting::Charge(charge)], NOON).await.unwrap();
        if place == 30 {
            let (secret, old_until) = (
                ApiKey::generate(&SystemRandomness).hash(),
                Some(NOON.saturating_add(std::time::Duration::from_secs(60))),
            );
            let change = KeyChange::Rotate { secret, old_until };
            source.change_key(&account, parent.as_ref().unwrap(), None, change, NOON).await.unwrap();
        }
    }
    source.report_leaked(&secrets[4].hash(), NOON).await.unwrap().unwrap();

    let target = moved(&source).await;
    assert_eq!(target.verify().await.unwrap().discrepancies, []);

    let counts = [(Section::Keys, 8), (Section::Secrets, 9)];
    for (section, count) in counts {
        assert_eq!(records(&target, section, 3).await.len(), count, "{section}");
    }
    let keys = records(&target, Section::Keys, 100).await;
    let metered = |record: &&Record| matches!(record, Record::Key(key) if key.meter.is_some());
    assert_eq!(keys.iter().filter(metered).count(), 4);
    let today = NOON.day();
    let shown = target.keys(&account, None, 100, today).await.unwrap();
    assert_eq!(shown, source.keys(&account, None, 100, today).await.unwrap());
    let mut charge = Charge::new(&secrets[3], Credits::from_atoms(2), "GET", "/x");
    charge.address = "10.1.2.3".parse().ok();
    let moved = target.commit(vec![Posting::Charge(charge.clone())], NOON).await.unwrap();
    let stayed = source.commit(vec![Posting::Charge(charge)], NOON).await.unwrap();
    assert_eq!(moved, stayed);
}
