//! Backups: complete, of one moment, and never over another store.

use std::fs;

use metering_core::{AccountId, Store};
use metering_sqlite::SqliteStore;
use serde_json::Value;

use crate::fixture::{Fixture, block_on};

#[test]
fn backup_is_one_file_that_opens_as_a_store() {
    let fixture = Fixture::new();
    let org = fixture.create("a", "123456789.12345678").org_id;
    let open = fixture.store();
    let text = fixture.admin(&["backup", "copy.db"]).success().stdout;
    assert_eq!(text, "copy.db is a complete copy. Accounts: 1; discrepancies: 0.\n");
    assert_eq!(fixture.files(), 2, "the data directory and the copy, nothing half made");
    drop(open);
    // The copy is not the store: changes to one do not show in the other.
    fixture.admin(&["account", "grant", &org, "--credits", "1"]).success();
    let copy = fixture.admin(&["--database", "sqlite:copy.db", "account", "show", &org, "--json"]).success();
    assert!(copy.stdout.contains("\"credit_balance\":123456789.12345678,"), "{}", copy.stdout);
    fixture.admin(&["--database", "sqlite:copy.db", "verify"]).success();
    let id: AccountId = org.parse().unwrap();
    let store = SqliteStore::open(&fixture.path("copy.db")).unwrap();
    assert!(block_on(store.account(&id)).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn backup_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.create("a", "1");
    fixture.admin(&["backup", "copy.db"]).success();
    fixture.admin(&["export", "accounts", "--output", "accounts.csv"]).success();
    for name in ["copy.db", "accounts.csv", "metering-data/metering.db"] {
        assert_eq!(fs::metadata(fixture.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::metadata(fixture.path("metering-data")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn existing_file_is_replaced_only_with_force() {
    let fixture = Fixture::new();
    fixture.create("a", "1");
    fs::write(fixture.path("copy.db"), "precious").unwrap();
    let message = fixture.admin(&["backup", "copy.db"]).failure(5);
    assert!(message.contains("--force"), "{message}");
    assert_eq!(fs::read(fixture.path("copy.db")).unwrap(), b"precious");
    let document: Value = fixture.json(&["backup", "copy.db", "--force"]);
    assert_eq!((&document["accounts"], &document["discrepancies"]), (&1.into(), &0.into()));
    fixture.admin(&["--database", "sqlite:copy.db", "verify"]).success();
    assert_eq!(fixture.files(), 2);
}

#[test]
fn backup_never_overwrites_a_store_in_use() {
    let fixture = Fixture::new();
    let org = fixture.create("a", "1").org_id;
    let message = fixture.admin(&["backup", "metering-data/metering.db", "--force"]).failure(5);
    assert!(message.contains("the store itself"), "{message}");
    // A log left next to the name would be replayed into the copy.
    fs::write(fixture.path("copy.db-wal"), "log").unwrap();
    let message = fixture.admin(&["backup", "copy.db", "--force"]).failure(5);
    assert!(message.contains("copy.db-wal"), "{message}");
    assert!(!fixture.path("copy.db").exists());
    fixture.admin(&["account", "show", &org]).success();
}

#[test]
fn failed_backup_leaves_no_file() {
    let fixture = Fixture::new();
    fixture.create("a", "1");
    fixture.admin(&["backup", "missing/copy.db"]).failure(1);
    fixture.admin(&["backup", "metering-data"]).failure(5);
    fixture.admin(&["backup", "metering-data", "--force"]).failure(5);
    fixture.admin(&["backup", ".."]).failure(2);
    assert_eq!(fixture.files(), 1);
}
