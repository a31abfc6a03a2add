//! Properties of a backend on disk: the file, its mode and version, and concurrent use by several stores.

use std::path::{Path, PathBuf};

use metering_core::charging::Posting;
use metering_core::{Charge, ClientSource, Credits, Store, StoreError, UsageLine};
use metering_sqlite::SqliteStore;

use crate::scene::{NOON, account, charge, created, database_path, execute};

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file, store) = created();
    account(&store, 1).await;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    for suffix in ["", "-wal", "-shm"] {
        let path = PathBuf::from(format!("{}{suffix}", file.display()));
        assert_eq!(mode(&path), 0o600, "{suffix}");
    }
    drop(store);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(SqliteStore::open(&file).unwrap());
    assert_eq!(mode(&file), 0o600, "a more permissive mode is tightened");
}

#[tokio::test]
async fn data_survives_reopening() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 5).await;
    assert_eq!(charge(&store, key).await, Ok(4));
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(charge(&store, key).await, Ok(3));
    assert_eq!(store.account(&id).await.unwrap().unwrap().totals.used.atoms(), 2 * Credits::BASE_CALL.atoms());
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn backup_is_a_complete_separate_store() {
    let (folder, _file, store) = created();
    let (_, key) = account(&store, 3).await;
    charge(&store, key).await.unwrap();
    let copy = folder.path().join("copy.db");
    store.backup_to(&copy).await.unwrap();
    assert!(
        matches!(store.backup_to(&copy).await, Err(StoreError::Unavailable(_))),
        "an existing file is not overwritten"
    );
    assert_eq!(charge(&store, key).await, Ok(1));
    let copied = SqliteStore::open(&copy).unwrap();
    assert_eq!(charge(&copied, key).await, Ok(1), "the copy is independent");
    assert_eq!(copied.verify().await.unwrap().discrepancies, []);
}

/// Litestream adds two tables to each database that it copies, even to one that is still empty.
#[test]
fn empty_file_with_tables_of_litestream_becomes_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let (new, theirs) = (folder.path().join("new.db"), folder.path().join("theirs.db"));
    let tables = "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
                  CREATE TABLE _litestream_lock (id INTEGER);";
    execute(&new, tables);
    drop(SqliteStore::open(&new).unwrap());
    drop(SqliteStore::open(&new).unwrap());
    execute(&theirs, &format!("{tables} CREATE TABLE theirs (x)"));
    assert!(matches!(SqliteStore::open(&theirs), Err(StoreError::Corrupt(_))), "another program's table counts");
}

#[test]
fn files_of_others_are_left_unchanged() {
    let (folder, file) = database_path();
    drop(SqliteStore::create(&file).unwrap());
    execute(&file, "PRAGMA user_version = 99");
    match SqliteStore::open(&file) {
        Err(StoreError::NewerVersion { found: 99, supported }) => assert!(supported < 99),
        other => panic!("{other:?}"),
    }
    let foreign = folder.path().join("foreign.db");
    execute(&foreign, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    let before = std::fs::read(&foreign).unwrap();
    #[cfg(unix)]
    open_to_all(&foreign);
    assert!(matches!(SqliteStore::open(&foreign), Err(StoreError::Corrupt(_))));
    let count =
        rusqlite::Connection::open(&foreign)
            .unwrap()
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
    assert_eq!(count, Ok(1), "no table was added");
    assert_eq!(std::fs::read(&foreign).unwrap(), before, "not a byte was changed");
    #[cfg(unix)]
    assert_eq!(mode(&foreign), 0o644, "the mode was not changed");
    assert!(matches!(SqliteStore::open_alone(&foreign), Err(StoreError::Corrupt(_))));
    assert_eq!(std::fs::read(&foreign).unwrap(), before);
    let text = folder.path().join("text.db");
    std::fs::write(&text, "not a database at all, but long enough to have a header of one hundred bytes, ".repeat(9))
        .unwrap();
    assert!(matches!(SqliteStore::open(&text), Err(StoreError::Corrupt(_))));
    #[cfg(unix)]
    {
        open_to_all(&text);
        assert!(matches!(SqliteStore::open(&text), Err(StoreError::Corrupt(_))));
        assert_eq!(mode(&text), 0o644);
    }
}

#[cfg(unix)]
fn open_to_all(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let (folder, _) = database_path();
    let missing = folder.path().join("no");
    let file = missing.join("such").join("metering.db");
    match SqliteStore::open(&file) {
        Err(error @ StoreError::Unavailable(_)) => {
            let expected = format!("the folder {} does not exist", missing.display());
            assert!(error.to_string().contains(&expected), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!missing.exists());
    drop(SqliteStore::create(&file).unwrap());
}

/// The space for recent activity is bounded by the number of entries kept, no matter how many are written.
#[tokio::test]
async fn space_for_activity_is_independent_of_request_count() {
    let (_folder, file, store) = created();
    let (_, quiet) = account(&store, 1_000_000).await;
    charge(&store, quiet).await.unwrap();
    let mut busy = Vec::new();
    for _ in 0..4 {
        busy.push(account(&store, 1_000_000).await);
    }
    for _ in 0..3 {
        for _ in 0..20 {
            // Each request uses a different line, so that each gets its own entry.
            let charges = (0..200).flat_map(|n| busy.iter().map(move |(_, key)| (n, *key)));
            let postings = charges.map(|(n, key)| {
                let route_template = format!("/{n}").into();
                let line = UsageLine { route_template, http_method: "GET".into(), source: ClientSource::Direct };
                let price = Credits::BASE_CALL;
                Posting::Charge(Charge::of(key, price, line).with_path("/"))
            });
            store.commit(postings.collect(), NOON).await.unwrap();
        }
    }
    for (id, _) in &busy {
        let usage = store.activity(id, u32::MAX).await.unwrap().len();
        assert!(usage >= 1_000, "{usage} entries were returned");
    }
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
    drop(store);
    let connection = rusqlite::Connection::open(&file).unwrap();
    let sql = "SELECT count(*), sum(length(entries)) FROM recent_activity";
    let (rows, bytes) =
        connection.query_row(sql, [], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?))).unwrap();
    assert!(rows <= 4 * 64 + 1 && bytes <= 4 * 1_024 * 40, "{rows} rows, {bytes} bytes");
    let store = SqliteStore::open(&file).unwrap();
    for (id, _) in &busy {
        let usage = store.activity(id, u32::MAX).await.unwrap().len();
        assert!((1_000..=1_025).contains(&usage), "{usage} entries were returned");
    }
}
