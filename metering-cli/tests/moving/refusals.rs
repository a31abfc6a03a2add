//! Moves that are refused, and what they leave unchanged.

use metering_core::{Posted, Store};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::is_skipped;

use crate::desk::{Desk, NOON, account_id, block_on, customer, records};
use crate::filling::{fill, fill_at_random, grant};

fn with_one_account() -> Desk {
    let desk = Desk::new();
    block_on(async { customer(&desk.sqlite(), 1, grant(7)).await });
    desk
}

#[test]
fn a_file_that_is_in_use_is_not_moved() {
    if is_skipped() {
        return;
    }
    let desk = with_one_account();
    // Idle, like a server at night.
    let server = desk.sqlite();
    block_on(server.accounts(None, 1)).unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let message = desk.migrate(more).failure(1);
        assert!(message.contains("open in another process; stop every server"), "{message}");
    }
    assert_eq!(desk.psql("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), "0");
    drop(server);
    desk.migrate(&[]).success();
}

#[test]
fn nobody_opens_a_file_that_is_being_moved() {
    let desk = with_one_account();
    let alone = SqliteStore::open_alone(&desk.file()).unwrap();
    assert_eq!(block_on(alone.verify()).unwrap().accounts, 1);
    assert!(SqliteStore::open_alone(&desk.file()).is_err());
    let other = rusqlite::Connection::open(desk.file()).unwrap();
    assert!(other.execute("UPDATE meter SET balance = 0", []).is_err());
    drop(alone);
    drop(desk.sqlite());
}

#[test]
fn books_that_do_not_add_up_are_not_moved() {
    if is_skipped() {
        return;
    }
    let desk = with_one_account();
    desk.tamper("UPDATE meter SET balance = balance + 1");
    let message = desk.migrate(&[]).failure(3);
    assert!(message.contains("1 amount differs") && message.contains("nothing was moved"), "{message}");
    desk.tamper("UPDATE meter SET balance = balance - 1; INSERT INTO usage_daily VALUES (1, 99, 1, 1, 1)");
    assert!(desk.migrate(&[]).failure(1).contains("belong to no account"));
    desk.tamper("DELETE FROM usage_daily");
    desk.migrate(&[]).success();
}

#[test]
fn a_target_that_holds_anything_is_left_as_it_is() {
    if is_skipped() {
        return;
    }
    let desk = with_one_account();
    // The rows that are already there, and the table that the message names.
    let connect = |desk: &Desk| block_on(PostgresStore::connect(&desk.url.parse().unwrap())).unwrap();
    let store = connect(&desk);
    block_on(async { customer(&store, 9, grant(1)).await });
    let before = block_on(records(&store));
    for more in [&[][..], &["--dry-run"]] {
        let message = desk.migrate(more).failure(5);
        assert!(message.contains("its table account has rows"), "{message}");
    }
    assert_eq!(block_on(records(&store)), before);
    let again = Desk { url: Desk::new().url, ..with_one_account() };
    let store = connect(&again);
    block_on(metering_core::PaymentStore::set_scan_mark(&store, 1, 2)).unwrap();
    let message = again.migrate(&[]).failure(5);
    assert!(message.contains("its table scan_mark has rows"), "{message}");
    assert!(matches!(block_on(desk.sqlite().post_entry(&account_id(1), grant(1), NOON)).unwrap(), Posted::Account(_)));
}

#[test]
fn a_node_that_was_there_before_writes_nothing_while_a_store_is_moved() {
    if is_skipped() {
        return;
    }
    let desk = with_one_account();
    let node = block_on(PostgresStore::connect(&desk.url.parse().unwrap())).unwrap();
    desk.psql("UPDATE turn SET import_owner = '\\x00' WHERE id = 1");
    let problem = block_on(node.put_plans(Vec::new())).unwrap_err().to_string();
    assert!(problem.contains("has not finished"), "{problem}");
    desk.psql("UPDATE turn SET import_owner = NULL WHERE id = 1");
    block_on(node.put_plans(Vec::new())).unwrap();
}

#[test]
fn a_store_that_was_moved_is_opened_by_nothing_until_somebody_goes_back() {
    if is_skipped() {
        return;
    }
    let desk = Desk::new();
    block_on(fill_at_random(&desk));
    let back = ["admin", "migrate", "--go-back", "--yes", "--from", &desk.from()];
    let go_back = || desk.admin(&back[1..]);
    assert!(go_back().failure(5).contains("is not marked as moved"));
    desk.migrate(&[]).success();
    let shown = desk.url.split('?').next().unwrap().to_owned();
    let problem = SqliteStore::open(&desk.file()).unwrap_err().to_string();
    assert!(problem.contains("was moved to") && problem.contains(&shown), "{problem}");
    for command in [&["verify"][..], &["account", "list"], &["account", "create", "--agent-name", "a"]] {
        let message = desk.admin(&[&["--database", &desk.from()], command].concat()).failure(1);
        assert!(message.contains("was moved to"), "{message}");
    }
    // It can be moved elsewhere only after going back.
    let elsewhere = Desk::new().url;
    assert!(desk.migrate_by(&elsewhere).failure(5).contains("first run with --go-back"));
    let ran = desk.command(&back[..2]).args(["--go-back", "--from", &desk.from()]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "there is no terminal to confirm on");
    assert!(go_back().success().contains("can be used again"));
    drop(desk.sqlite());
    desk.migrate_by(&elsewhere).success();
}

#[test]
fn a_target_that_was_written_to_since_is_not_taken_for_a_copy() {
    if is_skipped() {
        return;
    }
    let desk = Desk::new();
    block_on(fill(&desk));
    desk.migrate(&[]).success();
    for _ in 0..2 {
        assert!(desk.migrate(&[]).success().contains("Already moved to"));
    }
    assert!(desk.migrate(&["--dry-run"]).success().contains("Already moved to"));
    block_on(async {
        let store = desk.postgres().await;
        store.post_entry(&account_id(1), grant(1), NOON).await.unwrap();
    });
    let message = desk.migrate(&[]).failure(5);
    assert!(message.contains("written to since"), "{message}");
    // If the file is used again by mistake, the stores differ too.
    desk.admin(&["migrate", "--go-back", "--yes", "--from", &desk.from()]).success();
    block_on(async { desk.sqlite().post_entry(&account_id(1), grant(2), NOON).await.unwrap() });
    assert!(desk.migrate(&[]).failure(5).contains("written to since"));
    drop(desk.sqlite());
}

#[test]
fn a_look_at_an_earlier_schema_changes_nothing_and_says_what_would_be() {
    if is_skipped() {
        return;
    }
    let desk = with_one_account();
    let scripts = [
        include_str!("../../../metering-postgres/src/migrations/0001_initial.sql"),
        include_str!("../../../metering-postgres/src/migrations/0002_import.sql"),
    ];
    let version = "CREATE TABLE metering_schema (id SMALLINT PRIMARY KEY, version BIGINT NOT NULL); \
                   INSERT INTO metering_schema VALUES (1, 2);";
    desk.psql(&format!("{version} {}", scripts.join("\n")));
    let said = desk.migrate(&["--dry-run"]).success();
    assert!(said.contains("has version 2 and would first be upgraded to version 4"), "{said}");
    let document = desk.migrate(&["--dry-run", "--json"]).json();
    assert_eq!(document["schema_upgrade"], serde_json::json!({"from": 2, "to": 4}));
    assert_eq!(desk.psql("SELECT version FROM metering_schema"), "2");
    // A refused move changes nothing either.
    desk.psql("INSERT INTO scan_mark VALUES (1, 2)");
    desk.migrate(&[]).failure(5);
    assert_eq!(desk.psql("SELECT version FROM metering_schema"), "2");
    desk.psql("DELETE FROM scan_mark");
    desk.migrate(&[]).success();
    assert_eq!(desk.psql("SELECT version FROM metering_schema"), "4");
}
