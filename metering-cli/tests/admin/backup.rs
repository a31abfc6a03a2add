//! Backups: complete, of one moment, and never over another store.

use std::fs;

use metering_core::{AccountId, Store};
use metering_sqlite::SqliteStore;
use serde_json::Value;

use crate::desk::{Desk, block_on};

#[test]
fn a_backup_is_one_file_that_opens_as_a_store_of_its_own() {
    let desk = Desk::new();
    let org = desk.create("a", "123456789.12345678").org_id;
    let open = desk.store();
    let text = desk.admin(&["backup", "copy.db"]).success().stdout;
    assert_eq!(text, "copy.db is a complete copy. Accounts: 1; discrepancies: 0.\n");
    assert_eq!(desk.files(), 2, "the data directory and the copy, nothing half made");
    drop(open);
    // The copy is not the store: changes to one do not show in the other.
    desk.admin(&["account", "grant", &org, "--credits", "1"]).success();
    let copy = desk.admin(&["--database", "sqlite:copy.db", "account", "show", &org, "--json"]).success();
    assert!(copy.stdout.contains("\"credit_balance\":123456789.12345678,"), "{}", copy.stdout);
    desk.admin(&["--database", "sqlite:copy.db", "verify"]).success();
    let id: AccountId = org.parse().unwrap();
    let store = SqliteStore::open(&desk.path("copy.db")).unwrap();
    assert!(block_on(store.account(&id)).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn a_backup_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.create("a", "1");
    desk.admin(&["backup", "copy.db"]).success();
    desk.admin(&["export", "accounts", "--output", "accounts.csv"]).success();
    for name in ["copy.db", "accounts.csv", "metering-data/metering.db"] {
        assert_eq!(fs::metadata(desk.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::metadata(desk.path("metering-data")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let desk = Desk::new();
    desk.create("a", "1");
    fs::write(desk.path("copy.db"), "precious").unwrap();
    let message = desk.admin(&["backup", "copy.db"]).failure(5);
    assert!(message.contains("--force"), "{message}");
    assert_eq!(fs::read(desk.path("copy.db")).unwrap(), b"precious");
    let document: Value = desk.json(&["backup", "copy.db", "--force"]);
    assert_eq!((&document["accounts"], &document["discrepancies"]), (&1.into(), &0.into()));
    desk.admin(&["--database", "sqlite:copy.db", "verify"]).success();
    assert_eq!(desk.files(), 2);
}

#[test]
fn a_backup_never_lands_on_a_store_in_use() {
    let desk = Desk::new();
    let org = desk.create("a", "1").org_id;
    let message = desk.admin(&["backup", "metering-data/metering.db", "--force"]).failure(5);
    assert!(message.contains("the store itself"), "{message}");
    // A log left next to the name would be replayed into the copy.
    fs::write(desk.path("copy.db-wal"), "log").unwrap();
    let message = desk.admin(&["backup", "copy.db", "--force"]).failure(5);
    assert!(message.contains("copy.db-wal"), "{message}");
    assert!(!desk.path("copy.db").exists());
    desk.admin(&["account", "show", &org]).success();
}

#[test]
fn a_backup_that_cannot_be_written_leaves_nothing() {
    let desk = Desk::new();
    desk.create("a", "1");
    desk.admin(&["backup", "missing/copy.db"]).failure(1);
    desk.admin(&["backup", "metering-data"]).failure(5);
    desk.admin(&["backup", "metering-data", "--force"]).failure(5);
    desk.admin(&["backup", ".."]).failure(2);
    assert_eq!(desk.files(), 1);
}
