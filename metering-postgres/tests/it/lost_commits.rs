//! Commits whose response is lost: each charge and each other write still counts once.

use std::sync::Arc;

use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::Posted;
use metering_core::{
    AccountId, ApiKey, Charge, Credits, Decision, NewAccount, RateLimits, Store, SystemRandomness, Timestamp,
};
use metering_postgres::PostgresStore;
use metering_tests::database_proxy::DatabaseProxy;
use metering_tests::postgres::{Cluster, is_skipped};

pub(crate) const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

pub(crate) fn charge(key: &ApiKey) -> Posting {
    Posting::Charge(Charge::new(key, Credits::BASE_CALL, "GET", "/x"))
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_cuts_around_commits_lose_and_repeat_nothing() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    let url = cluster.fresh_schema();
    let link = DatabaseProxy::to(cluster.address());
    let direct = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let store = Arc::new(
        PostgresStore::connect(&format!("{}&pool_size=4", link.through(&url)).parse().unwrap()).await.unwrap(),
    );
    let key = ApiKey::generate(&SystemRandomness);
    let id = AccountId::generate(&SystemRandomness);
    let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
    account.limits = RateLimits::NONE;
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_whole(2).unwrap(), "Free")];
    store.create_account(account).await.unwrap();
    link.cut_commits();
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (store, key, id) = (Arc::clone(&store), key.clone(), id.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..30 {
                let outcomes = store.commit(vec![charge(&key), charge(&key)], NOON).await.unwrap();
                let accepted = |outcome: &Outcome| matches!(outcome, Outcome::Decided(Decision::Accepted(_)));
                assert!(outcomes.iter().all(accepted), "{outcomes:?}");
            }
            for _ in 0..5 {
                let entry = NewLedgerEntry::new(LedgerKind::Adjustment, Credits::BASE_CALL, "Again");
                assert!(matches!(store.post_entry(&id, entry, NOON).await.unwrap(), Posted::Account(_)));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(link.cuts() > 20, "{}", link.cuts());
    let account = direct.account(&id).await.unwrap().unwrap();
    assert_eq!(account.totals.used.atoms(), 4 * 30 * 2 * Credits::BASE_CALL.atoms());
    let granted = Credits::from_whole(2).unwrap().atoms() + 4 * 5 * Credits::BASE_CALL.atoms();
    assert_eq!(account.totals.granted.atoms(), granted);
    assert_eq!(direct.verify().await.unwrap().discrepancies, []);
}
