//! Damaged pages: `verify` and `backup_to` notice every one of them, and so does `open` after a crash.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metering_core::charging::{HoldAction, HoldTerms, Posting};
use metering_core::prices::NewPriceVersion;
use metering_core::store::{KeyDelivery, PriceStore};
use metering_core::{Credits, PaymentStore, Store, StoreError, SystemRandomness};
use metering_sqlite::SqliteStore;

use crate::contract::fast_folder;
use crate::scene::{
    NOON, account, assert_corrupt, challenge, charge, charge_of, claim, credit, execute, post, quote, tx, wallet,
};

/// Creates a store with rows in most tables, and closes it.
async fn filled(file: &Path) {
    let store = SqliteStore::create(file).unwrap();
    let (id, key) = account(&store, 1_000).await;
    for _ in 0..40 {
        account(&store, 1).await;
    }
    store.credit_payment(credit(&id, 1, tx(1))).await.unwrap();
    store.open_quote(quote(2)).await.unwrap();
    store.claim_quote(claim(&quote(2), tx(2), KeyDelivery::Now).0).await.unwrap();
    store.open_challenge(challenge(&id, wallet(2), "asked")).await.unwrap();
    store.set_scan_mark(8453, 17).await.unwrap();
    // A text of several pages, as catalogues have.
    let catalogue = format!("{{\"x-filler\": \"{}\"}}", "catalogue ".repeat(1_200)).into();
    let prices = NewPriceVersion { catalogue, since: NOON, recorded_at: NOON, applied_by: None };
    store.record_prices(prices).await.unwrap();
    for _ in 0..200 {
        charge(&store, key).await.unwrap();
    }
    for is_settled in [true, false] {
        let terms = HoldTerms::new(&SystemRandomness, Duration::from_secs(60), Credits::ZERO);
        let receipt = post(&store, charge_of(key, Credits::BASE_CALL).with_hold(terms)).await.unwrap();
        if is_settled {
            let release = receipt.hold_update(HoldAction::Release).unwrap();
            store.commit(vec![Posting::Hold(release)], NOON).await.unwrap();
        }
    }
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// Every page of every B-tree, with the name of its table or index.
fn pages(file: &Path) -> Vec<(String, u64)> {
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut statement = connection.prepare("SELECT name, pageno FROM dbstat ORDER BY pageno").unwrap();
    let pages = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))).unwrap();
    pages.collect::<Result<_, _>>().unwrap()
}

fn page_of(file: &Path, name: &str) -> u64 {
    pages(file).into_iter().find(|(found, _)| found == name).unwrap().1
}

fn zero(file: &Path, page: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&[0; 4096], (page - 1) * 4096).unwrap();
}

fn is_corrupt<T>(found: Result<T, StoreError>) -> bool {
    matches!(found, Err(StoreError::Corrupt(_)))
}

#[tokio::test]
async fn verify_and_backup_detect_every_zeroed_page() {
    let folder = fast_folder();
    let (file, copy, backup) =
        (folder.path().join("metering.db"), folder.path().join("copy.db"), folder.path().join("backup.db"));
    filled(&file).await;
    let pages = pages(&file);
    let mut missed = Vec::new();
    for (name, page) in &pages {
        std::fs::copy(&file, &copy).unwrap();
        zero(&copy, *page);
        match SqliteStore::open(&copy) {
            Ok(store) => {
                let (verified, backed_up) = (store.verify().await, store.backup_to(&backup).await);
                if !is_corrupt(verified) || !is_corrupt(backed_up) {
                    missed.push((name, page));
                }
            }
            refused => assert!(is_corrupt(refused), "{name}, page {page}"),
        }
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().contains("backup")), "{left:?}");
    }
    let trees: std::collections::BTreeSet<_> = pages.iter().map(|(name, _)| name).collect();
    println!("{} pages of {} B-trees were zeroed one at a time; unnoticed: {missed:?}", pages.len(), trees.len());
    assert!(trees.len() > 30 && missed.is_empty(), "{} B-trees: {missed:?}", trees.len());
}

/// A key of an account that does not exist.
const OTHER_ACCOUNT: &str = "
    INSERT INTO api_key (account, number, public_id, name, scopes, routes, networks, disabled, requests_per_minute,
      requests_per_day, max_in_flight, created_at)
    SELECT 99, 0, 'key_0', name, scopes, routes, networks, 0, 0, 0, 0, 1 FROM api_key WHERE account = 7";

#[tokio::test]
async fn unresolvable_keys_are_detected() {
    // damage, expected fragment of the message
    let table = [
        ("DELETE FROM api_key", "do not have the key"),
        ("DELETE FROM api_key WHERE account = 7", "1 accounts do not have the key"),
        ("UPDATE api_key SET account = 99 WHERE account = 7", "1 accounts do not have the key"),
        ("DELETE FROM key_secret", "do not have the secret"),
        ("DELETE FROM key_secret WHERE account = 7", "1 keys do not have the secret"),
        ("UPDATE key_secret SET revoked_at = 1 WHERE account = 7", "1 keys do not have the secret"),
        ("UPDATE account SET revoked_at = 1 WHERE id = 7", "1 keys do not have the secret"),
        ("UPDATE api_key SET revoked_at = 1 WHERE account = 7", "1 keys do not have the secret"),
        ("UPDATE api_key SET leaked_at = 1 WHERE account = 7", "1 keys do not have the secret"),
        ("INSERT INTO key_secret (hash, account, created_at) VALUES (x'00', 99, 1)", "1 secrets belong to no key"),
        ("UPDATE key_secret SET key = 1 WHERE account = 7", "1 secrets belong to no key"),
        (OTHER_ACCOUNT, "1 keys belong to no account"),
        (
            "UPDATE api_key SET requests_per_day = 1 WHERE account = 7",
            "1 keys without a meter, or meters without a key",
        ),
        ("INSERT INTO key_meter VALUES (7, 0, 0, 0, 0, 0, 0, 0, 0)", "1 keys without a meter, or meters without a key"),
        ("INSERT INTO key_meter VALUES (7, 1, 0, 0, 0, 0, 0, 0, 0)", "1 keys without a meter, or meters without a key"),
    ];
    for (damage, expected) in table {
        let folder = fast_folder();
        let file = folder.path().join("metering.db");
        filled(&file).await;
        execute(&file, &format!("PRAGMA foreign_keys = off; {damage}"));
        let store = SqliteStore::open(&file).unwrap();
        assert_corrupt(&store, expected, damage).await;
    }
}

/// The files of a store after a crash: one commit is only in the write-ahead log.
async fn crashed(folder: &Path) -> PathBuf {
    let (file, crashed) = (folder.join("metering.db"), folder.join("crashed.db"));
    filled(&file).await;
    let store = SqliteStore::open(&file).unwrap();
    account(&store, 1).await;
    for suffix in ["", "-wal"] {
        let named = |file: &Path| PathBuf::from(format!("{}{suffix}", file.display()));
        std::fs::copy(named(&file), named(&crashed)).unwrap();
    }
    crashed
}

#[tokio::test]
async fn a_database_that_crashed_is_checked_before_it_is_used() {
    let folder = fast_folder();
    let file = crashed(folder.path()).await;
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.verify().await.unwrap().accounts, 43, "the commit that was only in the log is there");
    drop(store);

    let file = crashed(&folder.path().join("again")).await;
    zero(&file, page_of(&folder.path().join("again").join("metering.db"), "challenge"));
    for attempt in 1..=3 {
        assert!(is_corrupt(SqliteStore::open(&file)), "attempt {attempt}");
        assert!(is_corrupt(SqliteStore::open_alone(&file)), "attempt {attempt}");
    }
}

#[tokio::test]
async fn damaged_store_is_not_ready_until_repaired() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    filled(&file).await;
    let intact = std::fs::read(&file).unwrap();
    let page = page_of(&file, "key_secret");
    zero(&file, page);
    let store = SqliteStore::open(&file).unwrap();
    assert!(is_corrupt(store.account_by_key(&crate::scene::new_key()).await));
    for _ in 0..3 {
        assert!(is_corrupt(store.check().await));
    }
    drop(store);
    std::fs::write(&file, intact).unwrap();
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.account_by_key(&crate::scene::new_key()).await.unwrap(), None);
    store.check().await.unwrap();
}
