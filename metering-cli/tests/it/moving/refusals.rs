//! Moves that are refused, and what they leave unchanged.

use metering_core::store::Posted;
use metering_core::{PaymentStore, Store};
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, is_skipped};

use super::filling::{fill_at_random, grant};
use super::{MIGRATE, Move, NOON, account_id, customer};
use crate::store::{block_on, records};

const DRY_RUN: &str = "migrate --from $from --to $to --dry-run";
const GO_BACK: &str = "migrate --from $from --go-back --yes";

#[test]
fn file_in_use_is_not_moved() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    // Idle, like a server at night.
    let server = moving.sqlite();
    block_on(server.accounts(None, 1)).unwrap();
    let expected = "open in another process; stop every server";
    moving.program.refuses(&[(MIGRATE, 1, expected), (DRY_RUN, 1, expected)]);
    assert_eq!(moving.tables(), "0");
    drop(server);
    moving.migrate();
}

#[test]
fn file_being_moved_cannot_be_opened() {
    let moving = Move::to(String::new());
    block_on(async { customer(&moving.sqlite(), 1, grant(7)).await });
    let alone = SqliteStore::open_alone(&moving.file()).unwrap();
    assert_eq!(block_on(alone.verify()).unwrap().accounts, 1);
    assert!(SqliteStore::open_alone(&moving.file()).is_err());
    let other = rusqlite::Connection::open(moving.file()).unwrap();
    assert!(other.execute("UPDATE meter SET balance = 0", []).is_err());
    drop(alone);
    drop(moving.sqlite());
}

#[test]
fn inconsistent_books_are_not_moved() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    moving.tamper_file("UPDATE meter SET balance = balance + 1");
    moving.program.refuses(&[(MIGRATE, 3, "1 amount differs"), (MIGRATE, 3, "nothing was moved")]);
    moving.tamper_file("UPDATE meter SET balance = balance - 1; INSERT INTO usage_daily VALUES (1, 99, 1, 0, 1, 1)");
    moving.refuses(1, "belong to no account");
    moving.tamper_file("DELETE FROM usage_daily");
    moving.migrate();
}

#[test]
fn non_empty_target_is_left_unchanged() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    let store = moving.connect().unwrap();
    block_on(async { customer(&store, 9, grant(1)).await });
    let before = block_on(records(&store));
    let expected = "its table account has rows";
    moving.program.refuses(&[(MIGRATE, 5, expected), (DRY_RUN, 5, expected)]);
    assert_eq!(block_on(records(&store)), before);
    let posted = block_on(moving.sqlite().post_entry(&account_id(1), grant(1), NOON)).unwrap();
    assert!(matches!(posted, Posted::Account(_)));
    let again = Move::with_one_account();
    block_on(again.connect().unwrap().set_scan_mark(1, 2)).unwrap();
    again.refuses(5, "its table scan_mark has rows");
}

#[test]
fn running_node_writes_nothing_during_a_move() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::new();
    let node = moving.connect().unwrap();
    moving.psql("UPDATE turn SET import_owner = '\\x00' WHERE id = 1");
    let problem = block_on(node.put_plans(Vec::new())).unwrap_err().to_string();
    assert!(problem.contains("has not finished"), "{problem}");
    moving.psql("UPDATE turn SET import_owner = NULL WHERE id = 1");
    block_on(node.put_plans(Vec::new())).unwrap();
}

#[test]
fn moved_store_cannot_be_opened_until_go_back() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::new();
    block_on(fill_at_random(&moving));
    moving.program.refuses(&[(GO_BACK, 5, "is not marked as moved")]);
    moving.migrate();
    let shown = moving.url.split('?').next().unwrap().to_owned();
    let problem = SqliteStore::open(&moving.file()).unwrap_err().to_string();
    assert!(problem.contains("was moved to") && problem.contains(&shown), "{problem}");
    moving.program.call("elsewhere", Cluster::shared().fresh_schema());
    moving.program.refuses(&[
        ("--database $from verify", 1, "was moved to"),
        ("--database $from account list", 1, "was moved to"),
        ("--database $from account create --agent-name a", 1, "was moved to"),
        // It can be moved elsewhere only after going back.
        ("migrate --from $from --to $elsewhere", 5, "first run with --go-back"),
        // There is no terminal to confirm on.
        ("migrate --from $from --go-back", 2, ""),
    ]);
    moving.program.prints(&[(GO_BACK, &["can be used again"])]);
    drop(moving.sqlite());
    moving.program.run("migrate --from $from --to $elsewhere").success();
}

#[test]
fn target_written_to_since_is_not_taken_for_a_copy() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    moving.migrate();
    let already = &["Already moved to"][..];
    moving.program.prints(&[(MIGRATE, already), (MIGRATE, already), (DRY_RUN, already)]);
    block_on(async { moving.postgres().await.post_entry(&account_id(1), grant(1), NOON).await.unwrap() });
    moving.refuses(5, "written to since");
    // If the file is used again by mistake, the stores differ too.
    moving.program.run(GO_BACK).success();
    block_on(async { moving.sqlite().post_entry(&account_id(1), grant(2), NOON).await.unwrap() });
    moving.refuses(5, "written to since");
    drop(moving.sqlite());
}

#[test]
fn dry_run_on_an_earlier_schema_reports_the_upgrade() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    let version = || moving.psql("SELECT version FROM metering_schema");
    moving.psql(concat!(
        "CREATE TABLE metering_schema (id SMALLINT PRIMARY KEY, version BIGINT NOT NULL); ",
        "INSERT INTO metering_schema VALUES (1, 2); ",
        include_str!("../../../../metering-postgres/src/migrations/0001_initial.sql"),
        include_str!("../../../../metering-postgres/src/migrations/0002_import.sql"),
    ));
    let output = moving.program.run(DRY_RUN).success();
    let (_, rest) = output.split_once("has version 2 and would first be upgraded to version ").unwrap();
    let newest: String = rest.chars().take_while(char::is_ascii_digit).collect();
    moving.program.documents(&[(DRY_RUN, &[("/schema_upgrade", &format!("{{\"from\":2,\"to\":{newest}}}"))])]);
    assert_eq!(version(), "2");
    // A refused move changes nothing either.
    moving.psql("INSERT INTO scan_mark VALUES (1, 2)");
    moving.refuses(5, "its table scan_mark has rows");
    assert_eq!(version(), "2");
    moving.psql("DELETE FROM scan_mark");
    moving.migrate();
    assert_eq!(version(), newest);
}
