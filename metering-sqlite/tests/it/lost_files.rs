//! Files that are deleted or replaced under an open store: no charge written to them is confirmed.

use std::path::{Path, PathBuf};

use metering_core::access::KeyHash;
use metering_core::charging::{Outcome, Posting};
use metering_core::{Charge, ClientSource, Credits, Store, StoreError, UsageLine};
use metering_sqlite::SqliteStore;

use crate::scene::{NOON, account, charge, created, execute};

fn named(file: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", file.display()))
}

async fn commit(store: &SqliteStore, key: KeyHash) -> Result<Vec<Outcome>, StoreError> {
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    let charge = Charge::of(key, Credits::BASE_CALL, line);
    store.commit(vec![Posting::Charge(charge)], NOON).await
}

#[tokio::test]
async fn store_with_deleted_files_charges_nothing() {
    for suffix in ["", "-wal", "-shm"] {
        for replaced in [false, true] {
            let (_folder, file, store) = created();
            let (_, key) = account(&store, 5).await;
            charge(&store, key).await.unwrap();
            store.check_identity().await.unwrap();
            let (lost, other) = (named(&file, suffix), file.with_extension("other"));
            if replaced {
                std::fs::copy(&lost, &other).unwrap();
                std::fs::rename(&other, &lost).unwrap();
            } else {
                std::fs::remove_file(&lost).unwrap();
            }
            let what = format!("{suffix}, replaced: {replaced}");
            match commit(&store, key).await {
                Err(error @ (StoreError::Closed(_) | StoreError::Broken(_))) => {
                    let verb = if replaced { "was replaced" } else { "was deleted" };
                    assert!(error.to_string().contains(verb) && error.must_reopen(), "{what}: {error}");
                }
                other => panic!("{what}: {other:?}"),
            }
            assert!(matches!(store.check_identity().await, Err(StoreError::Closed(_))), "{what}");
            assert!(matches!(store.check().await, Err(StoreError::Closed(_))), "{what}");
            // A file that reappears does not help: it lacks what was written since.
            let _ = std::fs::write(&lost, b"");
            assert!(matches!(commit(&store, key).await, Err(StoreError::Closed(_))), "{what}");
        }
    }
}

#[tokio::test]
async fn file_lost_during_commit_leaves_outcome_unknown() {
    let (_folder, file, store) = created();
    let (_, key) = account(&store, 5).await;
    // The commit waits for this lock. Meanwhile the file is deleted.
    let lock = rusqlite::Connection::open(&file).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (committed, ()) = tokio::join!(commit(&store, key), async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        std::fs::remove_file(&file).unwrap();
        lock.execute_batch("ROLLBACK").unwrap();
    });
    let error = committed.unwrap_err();
    assert!(error.outcome_is_unknown() && error.must_reopen(), "{error}");
    let closed = commit(&store, key).await.unwrap_err();
    assert!(!closed.outcome_is_unknown() && closed.must_reopen(), "{closed}");
}

#[tokio::test]
async fn harmless_file_operations_are_not_a_loss() {
    let (folder, file, store) = created();
    let (_, key) = account(&store, 5).await;
    execute(&file, "PRAGMA wal_checkpoint(TRUNCATE)");
    charge(&store, key).await.unwrap();
    drop(SqliteStore::open(&file).unwrap());
    store.backup_to(&folder.path().join("copy.db")).await.unwrap();
    store.check_identity().await.unwrap();
    store.check().await.unwrap();
    assert_eq!(charge(&store, key).await, Ok(3));
}
