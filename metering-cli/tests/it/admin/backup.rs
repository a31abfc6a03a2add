//! Backups: complete, of one moment, and never over another store.

use metering_core::{AccountId, Store};
use metering_sqlite::SqliteStore;

use crate::program::{Program, mode};
use crate::store::block_on;

#[test]
fn backup_is_one_file_that_opens_as_a_store() {
    let program = Program::without_store();
    let org = program.create("a", "123456789.12345678").org_id;
    let open = program.store();
    let text = program.run("backup copy.db").success();
    assert!(text.starts_with("copy.db is a complete copy, ") && text.contains("KiB"), "{text}");
    assert!(text.ends_with("iB. Accounts: 1; discrepancies: 0.\n"), "{text}");
    assert_eq!(program.files(), 2, "the data directory and the copy, nothing half made");
    drop(open);
    for name in ["copy.db", "metering-data/metering.db"] {
        assert_eq!(mode(&program.path(name)), 0o600, "readable by its owner only");
    }
    assert_eq!(mode(&program.path("metering-data")), 0o700);
    // The copy is not the store: changes to one do not show in the other.
    program.run("account grant $org --credits 1").success();
    program.prints(&[
        ("--database sqlite:copy.db account show $org --json", &["\"credit_balance\":123456789.12345678,"]),
        ("--database sqlite:copy.db verify", &[]),
    ]);
    let id: AccountId = org.parse().unwrap();
    let store = SqliteStore::open(&program.path("copy.db")).unwrap();
    assert!(block_on(store.account(&id)).unwrap().is_some());
}

#[test]
fn existing_file_is_replaced_only_with_force() {
    let (program, _) = Program::with_account();
    program.write("copy.db", "precious");
    program.refuses(&[("backup copy.db", 5, "--force")]);
    assert_eq!(program.read("copy.db"), "precious");
    program.documents(&[("backup copy.db --force", &[("/accounts", "1"), ("/discrepancies", "0")])]);
    program.run("--database sqlite:copy.db verify").success();
    assert_eq!(program.files(), 2);
}

#[test]
fn backup_never_overwrites_a_store_in_use() {
    let (program, _) = Program::with_account();
    // A log left next to the name would be replayed into the copy.
    program.write("copy.db-wal", "log");
    program.refuses(&[
        ("backup metering-data/metering.db --force", 5, "the store itself"),
        ("backup copy.db --force", 5, "copy.db-wal"),
    ]);
    assert!(!program.path("copy.db").exists());
    program.run("account show $org").success();
}

#[test]
fn failed_backup_leaves_no_file() {
    let (program, _) = Program::with_account();
    program.refuses(&[
        ("backup missing/copy.db", 1, ""),
        ("backup metering-data", 5, ""),
        ("backup metering-data --force", 5, ""),
        ("backup ..", 2, ""),
    ]);
    assert_eq!(program.files(), 1);
}
