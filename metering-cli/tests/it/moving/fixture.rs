//! A file to move, a schema to move it to, and ways to run the program and to look at the result.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use metering_core::access::KeyHash;
use metering_core::money::NewLedgerEntry;
use metering_core::transfer::Export;
use metering_core::{Account, AccountId, NewAccount, Store, Timestamp};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, schema_of};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

/// A directory used by this test only.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    /// The target.
    pub(crate) url: String,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { folder: folder(), url: Cluster::shared().fresh_schema() }
    }

    /// A fixture that needs no database server.
    pub(crate) fn without_target() -> Self {
        Self { folder: folder(), url: String::new() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("metering.db")
    }

    pub(crate) fn from(&self) -> String {
        format!("sqlite:{}", self.file().display())
    }

    pub(crate) fn sqlite(&self) -> SqliteStore {
        SqliteStore::open(&self.file()).unwrap()
    }

    pub(crate) async fn postgres(&self) -> PostgresStore {
        PostgresStore::connect_existing(&format!("{}&pool_size=4", self.url).parse().unwrap()).await.unwrap()
    }

    /// The program, without settings from the test's own environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metering"));
        command.current_dir(self.folder.path()).args(args).stdin(Stdio::null());
        for variable in ["METERING_DATABASE", "METERING_DATA", "METERING_MIGRATE_TO"] {
            command.env_remove(variable);
        }
        command
    }

    fn migration(&self, to: &str, more: &[&str]) -> Command {
        let from = self.from();
        self.command(&[&["admin", "migrate", "--from", &from, "--to", to], more].concat())
    }

    /// Moves the file to the schema.
    pub(crate) fn migrate(&self, more: &[&str]) -> RunOutput {
        RunOutput::of(self.migration(&self.url, more).output().unwrap())
    }

    /// Moves the file to the same place through another URL.
    pub(crate) fn migrate_by(&self, to: &str) -> RunOutput {
        RunOutput::of(self.migration(to, &[]).output().unwrap())
    }

    /// Starts a move without waiting for its end.
    pub(crate) fn start(&self, to: &str) -> Running {
        let mut command = self.migration(to, &[]);
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn admin(&self, args: &[&str]) -> RunOutput {
        RunOutput::of(self.command(&[&["admin"], args].concat()).output().unwrap())
    }

    /// Runs SQL in the target, behind the program's back.
    pub(crate) fn psql(&self, sql: &str) -> String {
        Cluster::shared().run(&format!("SET search_path = {}; {sql}", schema_of(&self.url)))
    }

    /// Runs SQL in the file.
    pub(crate) fn tamper(&self, sql: &str) {
        rusqlite::Connection::open(self.file()).unwrap().execute_batch(sql).unwrap();
    }

    /// The target's URL through another port that leads to the same server.
    pub(crate) fn url_by(&self, port: u16) -> String {
        self.url.replace(&format!(":{}/", Cluster::shared().address().port()), &format!(":{port}/"))
    }
}

/// A run in progress. Dropping it kills it.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Kills it immediately, as a power cut would.
    pub(crate) fn kill(mut self) {
        assert!(!self.has_ended(), "it ended by itself");
        self.0.kill().unwrap();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl RunOutput {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.success()).unwrap()
    }

    /// Asserts that the run failed with one line on stderr, and returns it.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stderr.matches('\n').count(), 1, "{self:?}");
        self.stderr.strip_prefix("error: ").expect("errors start with `error: `").to_owned()
    }
}

/// In memory if there is such a folder: thousands of commits that wait for a disk would make the tests slow.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Runs `future` on the runtime that a store needs.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// An account with an entry.
pub(crate) async fn customer(store: &dyn Store, number: u8, entry: NewLedgerEntry) -> (AccountId, KeyHash) {
    let (id, key) = (account_id(number), KeyHash::from_bytes([number; 32]));
    let mut new = NewAccount::new(id.clone(), "agent".parse().unwrap(), key, NOON);
    new.entries = vec![entry];
    store.create_account(new).await.unwrap();
    (id, key)
}

pub(crate) fn account_id(number: u8) -> AccountId {
    format!("org_x{number:019}").parse().unwrap()
}

pub(crate) async fn account(store: &dyn Store, id: &AccountId) -> Account {
    store.account(id).await.unwrap().unwrap()
}

/// All records of a store, as text.
pub(crate) async fn records(store: &dyn Export) -> Vec<String> {
    let mut records = Vec::new();
    for section in metering_core::transfer::Section::ALL {
        let mut after = None;
        loop {
            // Small pages, because records get lost at page borders.
            let page = store.export(section, after.as_ref(), 7).await.unwrap();
            records.extend(page.items.iter().map(|record| format!("{record:?}")));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    records
}
