//! Moves that are refused, and what they leave unchanged.

use metering_core::store::Posted;
use metering_core::{PaymentStore, Store};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::is_skipped;

use crate::filling::{fill, fill_at_random, grant};
use crate::fixture::{Fixture, NOON, account_id, block_on, customer, records};

fn with_one_account() -> Fixture {
    let fixture = Fixture::new();
    block_on(async { customer(&fixture.sqlite(), 1, grant(7)).await });
    fixture
}

#[test]
fn file_in_use_is_not_moved() {
    if is_skipped() {
        return;
    }
    let fixture = with_one_account();
    // Idle, like a server at night.
    let server = fixture.sqlite();
    block_on(server.accounts(None, 1)).unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let message = fixture.migrate(more).failure(1);
        assert!(message.contains("open in another process; stop every server"), "{message}");
    }
    assert_eq!(fixture.psql("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), "0");
    drop(server);
    fixture.migrate(&[]).success();
}

#[test]
fn file_being_moved_cannot_be_opened() {
    let fixture = with_one_account();
    let alone = SqliteStore::open_alone(&fixture.file()).unwrap();
    assert_eq!(block_on(alone.verify()).unwrap().accounts, 1);
    assert!(SqliteStore::open_alone(&fixture.file()).is_err());
    let other = rusqlite::Connection::open(fixture.file()).unwrap();
    assert!(other.execute("UPDATE meter SET balance = 0", []).is_err());
    drop(alone);
    drop(fixture.sqlite());
}

#[test]
fn inconsistent_books_are_not_moved() {
    if is_skipped() {
        return;
    }
    let fixture = with_one_account();
    fixture.tamper("UPDATE meter SET balance = balance + 1");
    let message = fixture.migrate(&[]).failure(3);
    assert!(message.contains("1 amount differs") && message.contains("nothing was moved"), "{message}");
    fixture.tamper("UPDATE meter SET balance = balance - 1; INSERT INTO usage_daily VALUES (1, 99, 1, 0, 1, 1)");
    assert!(fixture.migrate(&[]).failure(1).contains("belong to no account"));
    fixture.tamper("DELETE FROM usage_daily");
    fixture.migrate(&[]).success();
}

#[test]
fn non_empty_target_is_left_unchanged() {
    if is_skipped() {
        return;
    }
    let fixture = with_one_account();
    // The rows that are already there, and the table that the message names.
    let connect = |fixture: &Fixture| block_on(PostgresStore::connect(&fixture.url.parse().unwrap())).unwrap();
    let store = connect(&fixture);
    block_on(async { customer(&store, 9, grant(1)).await });
    let before = block_on(records(&store));
    for more in [&[][..], &["--dry-run"]] {
        let message = fixture.migrate(more).failure(5);
        assert!(message.contains("its table account has rows"), "{message}");
    }
    assert_eq!(block_on(records(&store)), before);
    let again = Fixture { url: Fixture::new().url, ..with_one_account() };
    let store = connect(&again);
    block_on(store.set_scan_mark(1, 2)).unwrap();
    let message = again.migrate(&[]).failure(5);
    assert!(message.contains("its table scan_mark has rows"), "{message}");
    assert!(matches!(
        block_on(fixture.sqlite().post_entry(&account_id(1), grant(1), NOON)).unwrap(),
        Posted::Account(_)
    ));
}

#[test]
fn running_node_writes_nothing_during_a_move() {
    if is_skipped() {
        return;
    }
    let fixture = with_one_account();
    let node = block_on(PostgresStore::connect(&fixture.url.parse().unwrap())).unwrap();
    fixture.psql("UPDATE turn SET import_owner = '\\x00' WHERE id = 1");
    let problem = block_on(node.put_plans(Vec::new())).unwrap_err().to_string();
    assert!(problem.contains("has not finished"), "{problem}");
    fixture.psql("UPDATE turn SET import_owner = NULL WHERE id = 1");
    block_on(node.put_plans(Vec::new())).unwrap();
}

#[test]
fn moved_store_cannot_be_opened_until_go_back() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(fill_at_random(&fixture));
    let back = ["admin", "migrate", "--go-back", "--yes", "--from", &fixture.from()];
    let go_back = || fixture.admin(&back[1..]);
    assert!(go_back().failure(5).contains("is not marked as moved"));
    fixture.migrate(&[]).success();
    let shown = fixture.url.split('?').next().unwrap().to_owned();
    let problem = SqliteStore::open(&fixture.file()).unwrap_err().to_string();
    assert!(problem.contains("was moved to") && problem.contains(&shown), "{problem}");
    for command in [&["verify"][..], &["account", "list"], &["account", "create", "--agent-name", "a"]] {
        let message = fixture.admin(&[&["--database", &fixture.from()], command].concat()).failure(1);
        assert!(message.contains("was moved to"), "{message}");
    }
    // It can be moved elsewhere only after going back.
    let elsewhere = Fixture::new().url;
    assert!(fixture.migrate_by(&elsewhere).failure(5).contains("first run with --go-back"));
    let ran = fixture.command(&back[..2]).args(["--go-back", "--from", &fixture.from()]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "there is no terminal to confirm on");
    assert!(go_back().success().contains("can be used again"));
    drop(fixture.sqlite());
    fixture.migrate_by(&elsewhere).success();
}

#[test]
fn target_written_to_since_is_not_taken_for_a_copy() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(fill(&fixture));
    fixture.migrate(&[]).success();
    for _ in 0..2 {
        assert!(fixture.migrate(&[]).success().contains("Already moved to"));
    }
    assert!(fixture.migrate(&["--dry-run"]).success().contains("Already moved to"));
    block_on(async {
        let store = fixture.postgres().await;
        store.post_entry(&account_id(1), grant(1), NOON).await.unwrap();
    });
    let message = fixture.migrate(&[]).failure(5);
    assert!(message.contains("written to since"), "{message}");
    // If the file is used again by mistake, the stores differ too.
    fixture.admin(&["migrate", "--go-back", "--yes", "--from", &fixture.from()]).success();
    block_on(async { fixture.sqlite().post_entry(&account_id(1), grant(2), NOON).await.unwrap() });
    assert!(fixture.migrate(&[]).failure(5).contains("written to since"));
    drop(fixture.sqlite());
}

#[test]
fn dry_run_on_an_earlier_schema_reports_the_upgrade() {
    if is_skipped() {
        return;
    }
    let fixture = with_one_account();
    let scripts = [
        include_str!("../../../metering-postgres/src/migrations/0001_initial.sql"),
        include_str!("../../../metering-postgres/src/migrations/0002_import.sql"),
    ];
    let version = "CREATE TABLE metering_schema (id SMALLINT PRIMARY KEY, version BIGINT NOT NULL); \
                   INSERT INTO metering_schema VALUES (1, 2);";
    fixture.psql(&format!("{version} {}", scripts.join("\n")));
    let output = fixture.migrate(&["--dry-run"]).success();
    assert!(output.contains("has version 2 and would first be upgraded to version 16"), "{output}");
    let document = fixture.migrate(&["--dry-run", "--json"]).json();
    assert_eq!(document["schema_upgrade"], serde_json::json!({"from": 2, "to": 16}));
    assert_eq!(fixture.psql("SELECT version FROM metering_schema"), "2");
    // A refused move changes nothing either.
    fixture.psql("INSERT INTO scan_mark VALUES (1, 2)");
    fixture.migrate(&[]).failure(5);
    assert_eq!(fixture.psql("SELECT version FROM metering_schema"), "2");
    fixture.psql("DELETE FROM scan_mark");
    fixture.migrate(&[]).success();
    assert_eq!(fixture.psql("SELECT version FROM metering_schema"), "16");
}
