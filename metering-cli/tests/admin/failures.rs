//! Errors around the commands: the location of the store, and readers of their output that go away.

use std::fs;

use serde_json::Value;

use crate::desk::{Desk, NOBODY, text_of};

#[test]
fn a_store_that_does_not_exist_is_not_made_by_looking_at_it() {
    let desk = Desk::new();
    for args in [
        &["account", "list"][..],
        &["account", "show", NOBODY],
        &["account", "limits", NOBODY, "--rpm", "1"],
        &["account", "grant", NOBODY, "--credits", "1"],
        &["account", "adjust", NOBODY, "--credits", "1", "--note", "x"],
        &["account", "revoke", NOBODY, "--yes"],
        &["account", "rotate-key", NOBODY],
        &["payments", "records"],
        &["plan", "list"],
        &["plan", "remove", "a", "--chain-id", "1"],
        &["plan", "activate", "a", "--chain-id", "1"],
        &["usage"],
        &["verify", "--json"],
        &["backup", "copy.db"],
        &["export", "ledger", "--output", "ledger.csv"],
    ] {
        let ran = desk.admin(args);
        assert_eq!(ran.stdout, "", "{args:?}");
        let message = ran.failure(1);
        assert!(message.contains("no store at sqlite:./metering-data/metering.db"), "{args:?}: {message}");
        assert!(message.contains("--data"), "{args:?}: {message}");
        assert_eq!(desk.files(), 0, "{args:?}");
    }
}

#[test]
fn the_store_is_where_options_and_environment_say() {
    let desk = Desk::new();
    let create = ["account", "create", "--agent-name", "a"];
    let url = format!("sqlite:{}", text_of(&desk.path("url/a.db")));
    desk.admin(&[&["--database", &url], &create[..]].concat()).success();
    // Global options also work after the command.
    desk.admin(&[&create[..], &["--data", "dir/below"]].concat()).success();
    let with_variable = |name: &str, value: &str| {
        let mut command = desk.command(&[&["admin"], &create[..]].concat());
        assert!(command.env(name, value).output().unwrap().status.success());
    };
    with_variable("METERING_DATABASE", "sqlite:variable.db");
    with_variable("METERING_DATA", "variable");
    for made in ["url/a.db", "dir/below/metering.db", "variable.db", "variable/metering.db"] {
        let url = format!("sqlite:{made}");
        let list: Value = desk.json(&["--database", &url, "account", "list"]);
        assert_eq!(list["accounts"].as_array().unwrap().len(), 1, "{made}");
    }
    desk.admin(&["--data", "x", "--database", "sqlite:x", "verify"]).misuse();
}

#[test]
fn a_backend_that_is_not_known_is_refused_with_those_that_are() {
    let desk = Desk::new();
    for url in ["mysql://root:hunter2@db.example.com/metering", "metering.db", "sqlite:", "sqlite::memory:"] {
        let message = desk.admin(&["--database", url, "account", "create", "--agent-name", "a"]).failure(2);
        assert!(message.contains("supported: sqlite:PATH"), "{url}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let mut help = desk.command(&["admin", "verify", "--help"]);
    let output = help.env("METERING_DATABASE", "postgres://root:hunter2@db.example.com/x").output().unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("hunter2"));
    assert_eq!(desk.files(), 0);
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let desk = Desk::new();
    // Nothing listens on that port.
    let mut command = desk.command(&["admin", "verify"]);
    let output = command.env("METERING_DATABASE", "postgres://root:hunter2@127.0.0.1:1/x").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("127.0.0.1:1/x") && message.contains("refused"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    let desk = Desk::new();
    let garbage = vec![b'x'; 8192];
    fs::write(desk.path("garbage.db"), &garbage).unwrap();
    let message = desk.admin(&["--database", "sqlite:garbage.db", "account", "list"]).failure(1);
    assert!(message.contains("sqlite:garbage.db"), "{message}");
    assert_eq!(fs::read(desk.path("garbage.db")).unwrap(), garbage);
    let foreign = rusqlite::Connection::open(desk.path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE song (title TEXT)").unwrap();
    drop(foreign);
    let message = desk.admin(&["--database", "sqlite:foreign.db", "account", "list"]).failure(1);
    assert!(message.contains("another program"), "{message}");
    fs::write(desk.path("file"), "").unwrap();
    let message = desk.admin(&["--data", "file", "account", "create", "--agent-name", "a"]).failure(1);
    assert!(message.contains("cannot create the directory file"), "{message}");
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let desk = Desk::new();
    desk.create("a", "1");
    let connection = rusqlite::Connection::open(desk.database()).unwrap();
    connection.pragma_update(None, "user_version", 1_000).unwrap();
    drop(connection);
    let message = desk.admin(&["verify"]).failure(1);
    assert!(message.contains("schema version 1000") && message.contains("newer program"), "{message}");
}

#[test]
fn output_that_nobody_reads_is_no_failure() {
    let desk = Desk::new();
    desk.create("a", "1");
    for args in [
        &["account", "list"][..],
        &["account", "list", "--json"],
        &["verify"],
        &["usage"],
        &["payments", "records"],
        &["export", "ledger"],
        &["export", "ledger", "--format", "jsonl"],
    ] {
        let ran = desk.admin_unread(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let desk = Desk::new();
    desk.create("a", "1");
    for args in [&["account", "list"][..], &["export", "accounts"], &["verify", "--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = desk.command(&[&["admin"], args].concat()).stdout(full).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.starts_with("error: cannot write the output"), "{message}");
    }
}

#[test]
fn shells_get_their_completions() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = desk.metering(&["completions", shell]).success().stdout;
        for word in ["metering", "completions", "rotate-key", "database"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    desk.metering(&["completions", "cmd"]).misuse();
}

#[test]
fn help_lists_the_exit_codes() {
    let desk = Desk::new();
    let help = desk.metering(&["--help"]).success().stdout;
    for code in ["0  done", "1  failed", "2  usage", "3  discrepancies", "4  not found", "5  conflict"] {
        assert!(help.contains(code), "{code}");
    }
    for args in [&["frobnicate"][..], &["admin", "frobnicate"], &["admin", "account", "list", "--yaml"]] {
        desk.metering(args).misuse();
    }
    assert!(desk.metering(&["--version"]).success().stdout.starts_with("metering "));
}
