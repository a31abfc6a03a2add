//! Errors around the commands: the location of the store, and readers of their output that go away.

use std::fs;

use serde_json::Value;

use crate::fixture::{Fixture, UNKNOWN_ACCOUNT, text_of};

#[test]
fn reading_a_missing_store_does_not_create_it() {
    let fixture = Fixture::new();
    for args in [
        &["account", "list"][..],
        &["account", "show", UNKNOWN_ACCOUNT],
        &["account", "limits", UNKNOWN_ACCOUNT, "--rpm", "1"],
        &["account", "grant", UNKNOWN_ACCOUNT, "--credits", "1"],
        &["account", "adjust", UNKNOWN_ACCOUNT, "--credits", "1", "--note", "x"],
        &["account", "revoke", UNKNOWN_ACCOUNT, "--yes"],
        &["account", "rotate-key", UNKNOWN_ACCOUNT],
        &["payments", "records"],
        &["plan", "list"],
        &["plan", "remove", "a", "--chain-id", "1"],
        &["plan", "activate", "a", "--chain-id", "1"],
        &["usage"],
        &["verify", "--json"],
        &["backup", "copy.db"],
        &["export", "ledger", "--output", "ledger.csv"],
    ] {
        let ran = fixture.admin(args);
        assert_eq!(ran.stdout, "", "{args:?}");
        let message = ran.failure(1);
        assert!(message.contains("no store at sqlite:./metering-data/metering.db"), "{args:?}: {message}");
        assert!(message.contains("--data"), "{args:?}: {message}");
        assert_eq!(fixture.files(), 0, "{args:?}");
    }
}

#[test]
fn store_location_follows_options_and_environment() {
    let fixture = Fixture::new();
    let create = ["account", "create", "--agent-name", "a"];
    let url = format!("sqlite:{}", text_of(&fixture.path("url/a.db")));
    fixture.admin(&[&["--database", &url], &create[..]].concat()).success();
    // Global options also work after the command.
    fixture.admin(&[&create[..], &["--data", "dir/below"]].concat()).success();
    let with_variable = |name: &str, value: &str| {
        let mut command = fixture.command(&[&["admin"], &create[..]].concat());
        assert!(command.env(name, value).output().unwrap().status.success());
    };
    with_variable("METERING_DATABASE", "sqlite:variable.db");
    with_variable("METERING_DATA", "variable");
    for made in ["url/a.db", "dir/below/metering.db", "variable.db", "variable/metering.db"] {
        let url = format!("sqlite:{made}");
        let list: Value = fixture.json(&["--database", &url, "account", "list"]);
        assert_eq!(list["accounts"].as_array().unwrap().len(), 1, "{made}");
    }
    fixture.admin(&["--data", "x", "--database", "sqlite:x", "verify"]).misuse();
}

#[test]
fn unknown_backend_is_rejected_and_known_ones_listed() {
    let fixture = Fixture::new();
    for url in ["mysql://root:hunter2@db.example.com/metering", "metering.db", "sqlite:", "sqlite::memory:"] {
        let message = fixture.admin(&["--database", url, "account", "create", "--agent-name", "a"]).failure(2);
        assert!(message.contains("supported: sqlite:PATH"), "{url}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let mut help = fixture.command(&["admin", "verify", "--help"]);
    let output = help.env("METERING_DATABASE", "postgres://root:hunter2@db.example.com/x").output().unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("hunter2"));
    assert_eq!(fixture.files(), 0);
}

#[test]
fn unreachable_database_is_named_without_its_password() {
    let fixture = Fixture::new();
    // Nothing listens on that port.
    let mut command = fixture.command(&["admin", "verify"]);
    let output = command.env("METERING_DATABASE", "postgres://root:hunter2@127.0.0.1:1/x").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("127.0.0.1:1/x") && message.contains("refused"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn file_that_is_not_a_store_is_left_unchanged() {
    let fixture = Fixture::new();
    let garbage = vec![b'x'; 8192];
    fs::write(fixture.path("garbage.db"), &garbage).unwrap();
    let message = fixture.admin(&["--database", "sqlite:garbage.db", "account", "list"]).failure(1);
    assert!(message.contains("sqlite:garbage.db"), "{message}");
    assert_eq!(fs::read(fixture.path("garbage.db")).unwrap(), garbage);
    let foreign = rusqlite::Connection::open(fixture.path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE song (title TEXT)").unwrap();
    drop(foreign);
    let message = fixture.admin(&["--database", "sqlite:foreign.db", "account", "list"]).failure(1);
    assert!(message.contains("another program"), "{message}");
    fs::write(fixture.path("file"), "").unwrap();
    let message = fixture.admin(&["--data", "file", "account", "create", "--agent-name", "a"]).failure(1);
    assert!(message.contains("cannot create the directory file"), "{message}");
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let fixture = Fixture::new();
    fixture.create("a", "1");
    let connection = rusqlite::Connection::open(fixture.database()).unwrap();
    connection.pragma_update(None, "user_version", 1_000).unwrap();
    drop(connection);
    let message = fixture.admin(&["verify"]).failure(1);
    assert!(message.contains("schema version 1000") && message.contains("newer program"), "{message}");
}

#[test]
fn closed_stdout_is_not_a_failure() {
    let fixture = Fixture::new();
    fixture.create("a", "1");
    for args in [
        &["account", "list"][..],
        &["account", "list", "--json"],
        &["verify"],
        &["usage"],
        &["payments", "records"],
        &["export", "ledger"],
        &["export", "ledger", "--format", "jsonl"],
    ] {
        let ran = fixture.admin_unread(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let fixture = Fixture::new();
    fixture.create("a", "1");
    for args in [&["account", "list"][..], &["export", "accounts"], &["verify", "--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = fixture.command(&[&["admin"], args].concat()).stdout(full).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.starts_with("error: cannot write the output"), "{message}");
    }
}

#[test]
fn shells_get_their_completions() {
    let fixture = Fixture::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fixture.metering(&["completions", shell]).success().stdout;
        for word in ["metering", "completions", "rotate-key", "database"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    fixture.metering(&["completions", "cmd"]).misuse();
}

#[test]
fn help_lists_the_exit_codes() {
    let fixture = Fixture::new();
    let help = fixture.metering(&["--help"]).success().stdout;
    for code in ["0  done", "1  failed", "2  usage", "3  discrepancies", "4  not found", "5  conflict"] {
        assert!(help.contains(code), "{code}");
    }
    for args in [&["frobnicate"][..], &["admin", "frobnicate"], &["admin", "account", "list", "--yaml"]] {
        fixture.metering(args).misuse();
    }
    assert!(fixture.metering(&["--version"]).success().stdout.starts_with("metering "));
}
