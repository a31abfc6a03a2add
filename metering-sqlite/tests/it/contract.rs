//! The conformance suite and the model-based tests, with a separate file for each test.

use std::path::Path;
use std::sync::Arc;

use metering_conformance::{agrees_on_random_operations, openers_agree};
use metering_core::{FullStore, Store};
use metering_sqlite::SqliteStore;
use tempfile::TempDir;

/// A folder in memory if the system has one. These tests are about data, not about the disk, and thousands of commits
/// that wait for a disk would be slow. Other tests kill real servers to check durability.
pub(crate) fn fast_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

async fn fresh() -> (Arc<dyn FullStore>, TempDir) {
    let folder = fast_folder();
    let store = SqliteStore::open(&folder.path().join("metering.db")).unwrap();
    (Arc::new(store), folder)
}

/// Two stores on the same file, each with its own writer and cache.
async fn fresh_pair() -> ([Arc<dyn FullStore>; 2], TempDir) {
    let folder = fast_folder();
    let open = || -> Arc<dyn FullStore> { Arc::new(SqliteStore::open(&folder.path().join("metering.db")).unwrap()) };
    ([open(), open()], folder)
}

metering_conformance::store_conformance!(fresh);

/// A database in memory, which the tests of other crates use.
mod in_memory {
    use super::*;

    async fn fresh() -> (Arc<dyn FullStore>, ()) {
        (Arc::new(SqliteStore::in_memory().unwrap()), ())
    }

    metering_conformance::store_conformance!(fresh);

    #[test]
    fn random_operations_agree_with_the_model() {
        agrees_on_random_operations(64, fresh);
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    agrees_on_random_operations(64, fresh);
}

#[test]
fn two_openers_of_one_file_agree_with_the_model() {
    openers_agree(128, fresh_pair);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_opened_by_another_process_is_noticed_by_the_next_commit() {
    let (stores, _guard) = fresh_pair().await;
    metering_conformance::openers_notice_a_log(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_openers_of_one_file_share_a_token_limit() {
    let (stores, _guard) = fresh_pair().await;
    let stores = stores.into_iter().map(|store| store as Arc<dyn Store>).collect();
    metering_conformance::openers_share_a_token_limit(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_operations_on_keys_agree_with_the_memory_store() {
    for seed in 1..=24 {
        let (stores, _guard) = fresh_pair().await;
        metering_conformance::openers_agree_on_keys(&stores.map(|store| store as Arc<dyn Store>), seed).await;
    }
}
