//! Moving a store: its records, the lock, and the "moved" marker.

use metering_core::Store;
use metering_core::usage::ACTIVITY_KEPT;
use metering_sql::transfer::{Record, Section};
use metering_sqlite::{Moved, SqliteStore};

use crate::contract::fast_folder;
use crate::scene::{NOON, account, charge, database_path, grant, records};

/// How many newer entries each ledger entry and each usage entry has.
async fn newer(store: &SqliteStore) -> (Vec<Option<u32>>, Vec<u32>) {
    let ledger = records(store, Section::Ledger, 13).await.into_iter().filter_map(|record| match record {
        Record::Ledger(record) => Some(record.newer),
        _ => None,
    });
    let activity = records(store, Section::Activity, 13).await.into_iter().filter_map(|record| match record {
        Record::Activity(record) => Some(record.newer),
        _ => None,
    });
    (ledger.collect(), activity.collect())
}

#[tokio::test]
async fn records_follow_writes_of_every_opener() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let (store, other) = (SqliteStore::open(&file).unwrap(), SqliteStore::open(&file).unwrap());
    let (id, key) = account(&store, 100).await;
    assert_eq!(newer(&store).await, (vec![Some(0)], vec![]));
    charge(&store, key).await.unwrap();
    assert_eq!(newer(&store).await, (vec![Some(1)], vec![0]));
    other.post_entry(&id, grant(1), NOON).await.unwrap();
    assert_eq!(newer(&store).await, (vec![Some(2), Some(0)], vec![1]));
    charge(&other, key).await.unwrap();
    assert_eq!(newer(&other).await, (vec![Some(3), Some(1)], vec![2, 0]));
}

#[tokio::test]
async fn export_has_the_last_entries_of_a_long_history() {
    let folder = fast_folder();
    let store = SqliteStore::open(&folder.path().join("metering.db")).unwrap();
    let (id, key) = account(&store, 10_000).await;
    for _ in 0..ACTIVITY_KEPT + 500 {
        charge(&store, key).await.unwrap();
    }
    store.post_entry(&id, grant(1), NOON).await.unwrap();
    let (ledger, activity) = newer(&store).await;
    assert_eq!(ledger, [None, Some(0)]);
    assert_eq!(activity, (1..ACTIVITY_KEPT).rev().collect::<Vec<_>>());
    let accounts = records(&store, Section::Accounts, 13).await;
    let [Record::Account(record)] = accounts.as_slice() else { panic!("{accounts:?}") };
    assert_eq!(record.entries, u64::from(ACTIVITY_KEPT) + 1);
}

#[tokio::test]
async fn exclusively_opened_store_is_read_and_marked() {
    let (_folder, file) = database_path();
    assert!(SqliteStore::open_alone(&file).is_err() && !file.exists(), "open_alone creates nothing");
    let store = SqliteStore::create(&file).unwrap();
    let (id, key) = account(&store, 5).await;
    let (copy, name) = (file.with_extension("copy"), store.source_id().await.unwrap());
    store.backup_to(&copy).await.unwrap();
    assert!(SqliteStore::open_alone(&file).is_err(), "another store has it open");
    drop(store);
    let alone = SqliteStore::open_alone(&file).unwrap();
    assert_eq!(charge(&alone, key).await, Ok(4));
    assert_eq!(alone.account(&id).await.unwrap().unwrap().id, id);
    assert_eq!(alone.moved().await.unwrap(), None);
    alone.mark_moved("postgres://db/metering", NOON).await.unwrap();
    drop(alone);
    let refused = SqliteStore::open(&file).unwrap_err().to_string();
    assert!(refused.contains("moved to postgres://db/metering at 2026-11-21T12:00:00.000Z"), "{refused}");
    let alone = SqliteStore::open_alone(&file).unwrap();
    assert_eq!(alone.moved().await.unwrap(), Some(Moved { to: "postgres://db/metering".to_owned(), at: NOON }));
    assert_eq!((alone.unmark_moved().await.unwrap(), alone.unmark_moved().await.unwrap()), (true, false));
    assert_eq!(alone.source_id().await.unwrap(), name);
    drop(alone);
    assert_eq!(charge(&SqliteStore::open(&file).unwrap(), key).await, Ok(3));
    let other = SqliteStore::create(&file.with_extension("other")).unwrap();
    assert_ne!(other.source_id().await.unwrap(), name);
    assert_eq!(SqliteStore::open(&copy).unwrap().source_id().await.unwrap(), name);
}
