//! How source and target are named.

use metering_tests::postgres::is_skipped;

use crate::filling::grant;
use crate::fixture::{Fixture, block_on, customer};

#[test]
fn only_sqlite_moves_and_only_to_postgres() {
    let fixture = offline();
    let from = fixture.from();
    // arguments, exit code, what the message contains
    let table: [(&[&str], i32, &str); 8] = [
        (
            &["--from", "postgres://u:hunter2@h/d", "--to", "postgres://u:hunter2@h/e"],
            2,
            "only SQLite stores can be moved",
        ),
        (&["--from", &from, "--to", "sqlite:other.db"], 2, "stores can only be moved to PostgreSQL"),
        (&["--from", &from], 2, "METERING_MIGRATE_TO"),
        (&["--from", "mysql://u:hunter2@h/d", "--to", "postgres://h/d"], 2, "supported: sqlite:PATH"),
        (&["--from", &from, "--to", "postgres://u:hunter2@127.0.0.1:1/d"], 1, "refused"),
        (&["--from", "sqlite:missing.db", "--to", "postgres://u:hunter2@127.0.0.1:1/d"], 1, "there is no store at"),
        (&["--from", &from, "--to", "postgres://h/d", "--data", "x"], 2, "--from and --to"),
        (&["--from", &from, "--to", "postgres://h/d", "--database", "sqlite:x"], 2, "--from and --to"),
    ];
    for (args, code, expected) in table {
        let ran = fixture.admin(&[&["migrate"], args].concat());
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected) && !ran.stderr.contains("hunter2"), "{args:?}: {ran:?}");
    }
    assert!(!fixture.file().with_file_name("missing.db").exists());
    for misuse in [&["--go-back", "--to", "postgres://h/d"][..], &["--yes"]] {
        assert_eq!(fixture.admin(&[&["migrate", "--from", &from], misuse].concat()).code, Some(2), "{misuse:?}");
    }
}

/// A fixture that needs no database server.
fn offline() -> Fixture {
    let fixture = Fixture::without_target();
    block_on(async { customer(&fixture.sqlite(), 1, grant(1)).await });
    fixture
}

#[test]
fn the_target_can_be_named_in_the_environment_and_its_password_is_never_shown() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(async { customer(&fixture.sqlite(), 1, grant(1)).await });
    let to = fixture.url.replace("metering@", "metering:hunter2@");
    let run = |more: &[&str]| {
        let mut command = fixture.command(&[&["admin", "migrate", "--from", &fixture.from()], more].concat());
        let output = command.env("METERING_MIGRATE_TO", &to).output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    for more in [&["--dry-run"][..], &["--help"], &[], &["--json"]] {
        let (code, text) = run(more);
        assert_eq!(code, Some(0), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(!fixture.admin(&["--database", &fixture.from(), "verify"]).failure(1).contains("hunter2"));
}

#[test]
fn a_dry_run_leaves_both_ends_as_they_were() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(async { customer(&fixture.sqlite(), 1, grant(72)).await });
    let looked = fixture.migrate(&["--dry-run", "--json"]).json();
    assert_eq!(looked["ending"], "would_move");
    assert_eq!(
        looked["sections"][0]["from"].to_string(),
        r#"{"amounts":{"balance":0.01,"granted":0.01,"held":0,"purchased":0,"used":0},"records":1}"#
    );
    assert!(looked["sections"][0].get("to").is_none());
    assert_eq!(fixture.psql("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), "0");
    drop(fixture.sqlite());
}
