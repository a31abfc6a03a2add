//! `metering admin` on a store.

mod account;
mod backup;
mod catalogue;
mod doctor;
mod export;
mod failures;
mod import;
mod key;
mod log;
mod payments;
mod plan;
mod price_matrix;
mod refill;
mod request;
mod running_server;
mod usage;
mod verify;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::{Outcome, Posting};
use metering_core::{ApiKey, Charge, ClientSource, Clock, Credits, Decision, Store, SystemClock, Timestamp};
use metering_sqlite::SqliteStore;
use serde_json::Value;

use crate::program::{Program, RunOutput};
use crate::store::block_on;

/// An account as `account create` printed it.
struct Issued {
    org_id: String,
    api_key: String,
}

impl Program {
    /// `metering admin` in an empty directory. `$nobody` is a well-formed id that belongs to no account.
    fn without_store() -> Self {
        let program = Self::admin();
        program.call("nobody", "org_00000000000000000000");
        program
    }

    /// `metering admin` with a store and an account of 10 credits, `$org`.
    fn with_account() -> (Self, Issued) {
        let program = Self::without_store();
        let account = program.create("my-agent", "10");
        (program, account)
    }

    /// The default database.
    fn database(&self) -> PathBuf {
        self.path("metering-data/metering.db")
    }

    /// Creates an account, and calls it `$org`.
    fn create(&self, name: &str, credits: &str) -> Issued {
        let account: Value = self.json(&format!("account create --agent-name={name} --credits {credits}"));
        let text = |field: &str| account[field].as_str().unwrap().to_owned();
        self.call("org", text("org_id"));
        Issued { org_id: text("org_id"), api_key: text("api_key") }
    }

    /// The store, opened by this process as a server would open it.
    fn store(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(&self.database()).unwrap())
    }

    /// Charges a key through the store, as a server does.
    fn charge(&self, key: &str, price: &str) -> Decision {
        block_on(charge(&*self.store(), key, "/a", price.parse().unwrap(), now()))
    }

    /// Whether a key can be used. That costs a little.
    fn works(&self, key: &str) -> bool {
        matches!(self.charge(key, "0.001"), Decision::Accepted(_))
    }

    /// Changes one row of the database behind the program's back.
    fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
    }

    /// How many entries a list in a document has.
    fn count(&self, line: &str, list: &str) -> usize {
        self.json::<Value>(line)[list].as_array().unwrap().len()
    }

    /// The rows of a table, after its headings, with one space between cells.
    fn rows(&self, line: &str) -> Vec<String> {
        self.run(line).success().lines().skip(1).map(crate::program::one_space).collect()
    }
}

/// Charges `key` through an open store, as a server does.
async fn charge(store: &dyn Store, key: &str, route: &str, price: Credits, now: Timestamp) -> Decision {
    let mut charge = Charge::new(&ApiKey::parse(key).unwrap(), price, "GET", route);
    charge.line.source = ClientSource::Cli;
    match store.commit(vec![Posting::Charge(charge)], now).await.unwrap().pop() {
        Some(Outcome::Decided(decision)) => decision,
        other => panic!("{other:?}"),
    }
}

/// The current time, never so close to midnight that a test would end on the next day.
fn now() -> Timestamp {
    const MARGIN: Duration = Duration::from_secs(90);
    let now = SystemClock.now();
    if now.saturating_add(MARGIN).day() == now.day() {
        return now;
    }
    std::thread::sleep(MARGIN);
    SystemClock.now()
}

/// Asserts that a run failed in one line, and returns it.
#[track_caller]
fn failed(ran: RunOutput, code: i32) -> String {
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    ran.failure(code)
}
