//! Recent activity when some of its blocks were overwritten and others were not.

use metering_core::charging::Posting;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::usage::{ACTIVITY_KEPT, Activity, ActivityKind};
use metering_core::{AccountId, ApiKey, Charge, Credits, NewAccount, Store, SystemRandomness, Timestamp};
use metering_postgres::PostgresStore;
use metering_tests::postgres::fresh_schema;

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

async fn charge(store: &PostgresStore, key: &ApiKey, times: u32) {
    let charge = Charge::new(key, Credits::BASE_CALL, "GET", "/x");
    for _ in 0..times {
        store.commit(vec![Posting::Charge(charge.clone())], NOON).await.unwrap();
    }
}

fn number(entry: &Activity) -> u32 {
    entry.id.strip_prefix("act_").unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn activity_has_no_gaps_where_a_block_has_only_ledger_entries() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
    let grant = || NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_whole(1).unwrap(), "grant");
    let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
    account.limits.requests_per_minute = 0;
    account.entries = vec![grant()];
    store.create_account(account).await.unwrap();
    // Fill up to block 65. Then add more grants than a block has numbers, so that block 66 does not overwrite block 2,
    // although its neighbours are overwritten.
    charge(&store, &key, 1_040).await;
    for _ in 0..40 {
        store.post_entry(&id, grant(), NOON).await.unwrap();
    }
    charge(&store, &key, 60).await;

    let shown = store.activity(&id, u32::MAX).await.unwrap();
    let (usage, ledger): (Vec<_>, Vec<_>) = shown.iter().partition(|entry| entry.kind == ActivityKind::Usage);
    assert_eq!((ledger.len(), shown.iter().map(number).max()), (41, Some(1_141)));
    // The account's first entry is a ledger entry; those are all kept.
    let numbers: Vec<u32> = shown.iter().map(number).collect();
    let recent: Vec<u32> = (1_141 - ACTIVITY_KEPT + 1..=1_141).rev().chain([1]).collect();
    assert_eq!(numbers, recent);
    assert_eq!(usage.len(), 960);
}
