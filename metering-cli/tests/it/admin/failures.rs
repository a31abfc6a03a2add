//! Errors around the commands: the location of the store, and readers of their output that go away.

use super::failed;
use crate::program::Program;

#[test]
fn reading_a_missing_store_does_not_create_it() {
    let program = Program::without_store();
    for line in [
        "account list",
        "account show $nobody",
        "account limits $nobody --rpm 1",
        "account grant $nobody --credits 1",
        "account adjust $nobody --credits 1 --note x",
        "account revoke $nobody --yes",
        "account rotate-key $nobody",
        "payments records",
        "plan list",
        "plan remove a --chain-id 1",
        "plan activate a --chain-id 1",
        "usage",
        "verify --json",
        "backup copy.db",
        "export ledger --output ledger.csv",
    ] {
        let ran = program.run(line);
        assert_eq!(ran.stdout, "", "{line}");
        let message = failed(ran, 1);
        assert!(message.contains("no store at sqlite:./metering-data/metering.db"), "{line}: {message}");
        assert!(message.contains("--data"), "{line}: {message}");
        assert_eq!(program.files(), 0, "{line}");
    }
}

#[test]
fn store_location_follows_options_and_environment() {
    let program = Program::without_store();
    let create = "account create --agent-name a";
    let url = format!("sqlite:{}", program.path("url/a.db").display());
    // variables, command, the file that is made; global options also work after the command
    for (variables, line, made) in [
        (&[][..], format!("--database {url} {create}"), "url/a.db"),
        (&[], format!("{create} --data dir/below"), "dir/below/metering.db"),
        (&[("METERING_DATABASE", "sqlite:variable.db")], create.to_owned(), "variable.db"),
        (&[("METERING_DATA", "variable")], create.to_owned(), "variable/metering.db"),
    ] {
        program.run_with(variables, &line).success();
        assert_eq!(program.count(&format!("--database sqlite:{made} account list"), "accounts"), 1, "{made}");
    }
    program.refuses(&[("--data x --database sqlite:x verify", 2, "")]);
}

#[test]
fn unknown_or_unreachable_databases_are_named_without_their_passwords() {
    let program = Program::without_store();
    for url in ["mysql://root:hunter2@db.example.com/metering", "metering.db", "sqlite:", "sqlite::memory:"] {
        let message = failed(program.run(&format!("--database {url} account create --agent-name a")), 2);
        assert!(message.contains("supported: sqlite:PATH") && !message.contains("hunter2"), "{url}: {message}");
    }
    // Nothing listens on that port.
    let database = [("METERING_DATABASE", "postgres://root:hunter2@127.0.0.1:1/x")];
    let message = program.run_with(&database, "verify").failure(1);
    assert!(message.contains("127.0.0.1:1/x") && message.contains("refused"), "{message}");
    assert!(
        !message.contains("hunter2") && !program.run_with(&database, "verify --help").shows("hunter2"),
        "{message}"
    );
    assert_eq!(program.files(), 0);
}

#[test]
fn file_that_is_not_a_store_of_this_program_is_left_unchanged() {
    let (program, _) = Program::with_account();
    let garbage = "x".repeat(8192);
    program.write("garbage.db", &garbage);
    program.write("file", "");
    let sql =
        |file: &str, sql: &str| rusqlite::Connection::open(program.path(file)).unwrap().execute_batch(sql).unwrap();
    sql("foreign.db", "CREATE TABLE song (title TEXT)");
    sql("metering-data/metering.db", "PRAGMA user_version = 1000");
    program.refuses(&[
        ("--database sqlite:garbage.db account list", 1, "sqlite:garbage.db"),
        ("--database sqlite:foreign.db account list", 1, "another program"),
        ("--data file account create --agent-name a", 1, "cannot create the directory file"),
        ("verify", 1, "schema version 1000"),
        ("verify", 1, "newer program"),
    ]);
    assert_eq!(program.read("garbage.db"), garbage);
}

#[test]
fn closed_stdout_is_not_a_failure_and_a_full_disk_is() {
    let (program, _) = Program::with_account();
    for line in [
        "account list",
        "account list --json",
        "verify",
        "usage",
        "payments records",
        "export ledger",
        "export ledger --format jsonl",
    ] {
        program.unread(line).success();
    }
    for line in ["account list", "export accounts", "verify --json"] {
        let message = program.on_full_disk(line).failure(1);
        assert!(message.starts_with("cannot write the output"), "{line}: {message}");
    }
}

#[test]
fn help_and_completions_name_commands_and_exit_codes() {
    let program = Program::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let line = format!("completions {shell}");
        program.prints(&[(&line, &["metering", "completions", "rotate-key", "database"])]);
    }
    let codes = ["0  done", "1  failed", "2  usage", "3  discrepancies", "4  not found", "5  conflict"];
    program.prints(&[("--help", &codes)]);
    program.refuses(&[
        ("completions cmd", 2, "cmd"),
        ("frobnicate", 2, "frobnicate"),
        ("admin frobnicate", 2, "frobnicate"),
        ("admin account list --yaml", 2, "--yaml"),
    ]);
    assert!(program.run("--version").success().starts_with("metering "));
}
