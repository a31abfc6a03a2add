//! How source and target are named.

use metering_tests::postgres::is_skipped;

use super::filling::grant;
use super::{MIGRATE, Move, customer};
use crate::store::block_on;

#[test]
fn only_sqlite_moves_and_only_to_postgres() {
    let moving = Move::to(String::new());
    block_on(async { customer(&moving.sqlite(), 1, grant(1)).await });
    moving.program.call("elsewhere", "postgres://u:hunter2@127.0.0.1:1/d");
    // arguments, exit code, what the message contains
    for (line, code, expected) in [
        ("--from postgres://u:hunter2@h/d --to postgres://u:hunter2@h/e", 2, "only SQLite stores can be moved"),
        ("--from $from --to sqlite:other.db", 2, "stores can only be moved to PostgreSQL"),
        ("--from $from", 2, "METERING_MIGRATE_TO"),
        ("--from mysql://u:hunter2@h/d --to postgres://h/d", 2, "supported: sqlite:PATH"),
        ("--from $from --to $elsewhere", 1, "refused"),
        ("--from sqlite:missing.db --to $elsewhere", 1, "there is no store at"),
        ("--from $from --to postgres://h/d --data x", 2, "--from and --to"),
        ("--from $from --to postgres://h/d --database sqlite:x", 2, "--from and --to"),
        ("--from $from --go-back --to postgres://h/d", 2, ""),
        ("--from $from --yes", 2, ""),
    ] {
        let ran = moving.program.run(&format!("migrate {line}")).expect(code).says(expected);
        assert!(!ran.shows("hunter2"), "{line}: {ran:?}");
    }
    assert!(!moving.program.path("missing.db").exists());
}

#[test]
fn the_target_can_be_named_in_the_environment_and_its_password_is_never_shown() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    let to = moving.url.replace("metering@", "metering:hunter2@");
    for options in ["--dry-run", "--help", "", "--json"] {
        let line = format!("migrate --from $from {options}");
        let ran = moving.program.run_with(&[("METERING_MIGRATE_TO", &to)], &line).expect(0);
        assert!(!ran.shows("hunter2"), "{ran:?}");
    }
    assert!(!moving.program.run("--database $from verify").expect(1).shows("hunter2"));
}

#[test]
fn a_dry_run_leaves_both_ends_as_they_were() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    let from =
        r#"{"amounts":{"balance":0.0009722222,"granted":0.0009722222,"held":0,"purchased":0,"used":0},"records":1}"#;
    let would = [("/ending", "\"would_move\""), ("/sections/0/from", from), ("/sections/0/to", "")];
    moving.program.documents(&[(&format!("{MIGRATE} --dry-run"), &would)]);
    assert_eq!(moving.tables(), "0");
    drop(moving.sqlite());
}
