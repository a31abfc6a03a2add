//! A temporary directory, and ways to run the program there and to look at the result.

use std::io::{PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::{Outcome, Posting};
use metering_core::{ApiKey, Charge, ClientSource, Clock, Credits, Decision, Store, SystemClock, Timestamp, UsageLine};
use metering_sqlite::SqliteStore;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

/// A well-formed id that belongs to no account.
pub(crate) const UNKNOWN_ACCOUNT: &str = "org_00000000000000000000";

/// A directory used by this test only.
pub(crate) struct Fixture {
    directory: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// An account as `account create` printed it.
pub(crate) struct Issued {
    pub(crate) org_id: String,
    pub(crate) api_key: String,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The default database.
    pub(crate) fn database(&self) -> PathBuf {
        self.path("metering-data/metering.db")
    }

    /// The program, without settings from the test's own environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metering"));
        command.current_dir(self.directory.path()).args(args).stdin(Stdio::null());
        command.env_remove("METERING_DATABASE").env_remove("METERING_DATA");
        command
    }

    /// Runs `metering ARGS`.
    pub(crate) fn metering(&self, args: &[&str]) -> RunOutput {
        finish(&mut self.command(args))
    }

    /// Runs `metering admin ARGS`.
    pub(crate) fn admin(&self, args: &[&str]) -> RunOutput {
        self.metering(&[&["admin"], args].concat())
    }

    /// Runs `metering admin ARGS` with `input` on standard input.
    pub(crate) fn admin_reading(&self, args: &[&str], input: &str) -> RunOutput {
        let mut command = self.command(&[&["admin"], args].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        ran(child.wait_with_output().unwrap())
    }

    /// Runs `metering admin ARGS` without reading its output, as with `| true`.
    pub(crate) fn admin_unread(&self, args: &[&str]) -> RunOutput {
        let writer = pipe_without_reader();
        finish(self.command(&[&["admin"], args].concat()).stdout(writer))
    }

    /// The JSON output of a command that succeeds.
    pub(crate) fn json<T: DeserializeOwned>(&self, args: &[&str]) -> T {
        self.admin(&[args, &["--json"]].concat()).success().json()
    }

    /// Creates an account.
    pub(crate) fn create(&self, name: &str, credits: &str) -> Issued {
        let account: Value = self.json(&["account", "create", "--agent-name", name, "--credits", credits]);
        Issued {
            org_id: account["org_id"].as_str().unwrap().to_owned(),
            api_key: account["api_key"].as_str().unwrap().to_owned(),
        }
    }

    /// The store, opened by this process as a server would open it.
    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(&self.database()).unwrap())
    }

    /// How many files there are, whatever their names.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(self.directory.path()).unwrap().count()
    }

    /// Changes the database behind the program's back.
    pub(crate) fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
    }
}

impl RunOutput {
    /// Asserts that the run succeeded silently.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self
    }

    /// Asserts that the run failed with one line on stderr, and returns it.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        let line = self.stderr.strip_suffix('\n').expect("stderr ends with a line break");
        assert!(!line.contains('\n'), "{line}");
        line.strip_prefix("error: ").expect("errors start with `error: `").to_owned()
    }

    /// Asserts that the run was rejected for its arguments, and returns the message.
    #[track_caller]
    pub(crate) fn misuse(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        self.stderr
    }

    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Charges `key` through an open store, as a server does.
pub(crate) async fn charge(store: &dyn Store, key: &str, route: &str, price: Credits, now: Timestamp) -> Decision {
    let charge = Charge::of(
        ApiKey::parse(key).unwrap().hash(),
        price,
        UsageLine { route_template: route.into(), http_method: "GET".into(), source: ClientSource::Cli },
    );
    let mut outcomes = store.commit(vec![Posting::Charge(charge)], now).await.unwrap();
    match outcomes.pop() {
        Some(Outcome::Decided(decision)) => decision,
        other => panic!("{other:?}"),
    }
}

/// The current time, never so close to midnight that a test would end on the next day.
pub(crate) fn now() -> Timestamp {
    const MARGIN: Duration = Duration::from_secs(20);
    let now = SystemClock.now();
    if now.saturating_add(MARGIN).day() == now.day() {
        return now;
    }
    std::thread::sleep(MARGIN);
    SystemClock.now()
}

/// A number as it was printed, compared as text so that no parser is involved: an amount rounded to ten decimal places
/// stands for exactly one number of atoms, but is not itself a whole number of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Printed(String);

impl<'de> Deserialize<'de> for Printed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|number| Self(number.get().to_owned()))
    }
}

impl PartialEq<Credits> for Printed {
    fn eq(&self, amount: &Credits) -> bool {
        self.0 == amount.to_string()
    }
}

/// Runs `future` on the runtime that a store needs.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn pipe_without_reader() -> PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

fn finish(command: &mut Command) -> RunOutput {
    // `output` would replace a pipe that is already set.
    let child = command.stderr(Stdio::piped());
    ran(child.output().unwrap())
}

fn ran(output: std::process::Output) -> RunOutput {
    RunOutput {
        code: output.status.code().expect("the program ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
