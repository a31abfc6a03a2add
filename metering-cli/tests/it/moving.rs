//! `metering admin migrate`: from real files to a real PostgreSQL. What each kind of record does after a move is tested
//! in `metering-postgres`.

mod afterwards;
mod alike;
mod arguments;
mod authorizations;
mod equality;
mod events;
mod filling;
mod holds;
mod interruptions;
mod keys;
mod link;
mod log;
mod organisations;
mod out;
mod programs;
mod refusals;
mod snapshot;
mod volumes;

use std::path::PathBuf;
use std::process::{Child, Stdio};

use metering_core::access::KeyHash;
use metering_core::money::NewLedgerEntry;
use metering_core::{Account, AccountId, NewAccount, Store, Timestamp};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, run_in};

use crate::program::Program;
use crate::store::block_on;

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
/// Moves the file to the schema.
const MIGRATE: &str = "migrate --from $from --to $to";

/// The program with a file to move, `$from`, and a schema to move it to, `$to`.
struct Move {
    program: Program,
    /// The target.
    url: String,
}

impl Move {
    fn new() -> Self {
        Self::to(Cluster::shared().fresh_schema())
    }

    /// A move that needs no database server, if this is empty.
    fn to(url: String) -> Self {
        let program = Program::admin_in_memory();
        program.call("from", format!("sqlite:{}", program.path("metering.db").display()));
        program.call("to", &url);
        Self { program, url }
    }

    /// A file with one account, number 1.
    fn with_one_account() -> Self {
        let moving = Self::new();
        block_on(async { customer(&moving.sqlite(), 1, filling::grant(7)).await });
        moving
    }

    /// A file with something of every kind.
    fn full() -> Self {
        let moving = Self::new();
        block_on(filling::fill(&moving));
        moving
    }

    fn file(&self) -> PathBuf {
        self.program.path("metering.db")
    }

    fn sqlite(&self) -> SqliteStore {
        SqliteStore::open(&self.file()).unwrap()
    }

    async fn postgres(&self) -> PostgresStore {
        PostgresStore::connect_existing(&format!("{}&pool_size=4", self.url).parse().unwrap()).await.unwrap()
    }

    /// The target as a server opens it: an empty database becomes a store.
    fn connect(&self) -> Result<PostgresStore, metering_core::StoreError> {
        block_on(PostgresStore::connect(&self.url.parse().unwrap()))
    }

    /// Moves the file, and returns what is printed.
    #[track_caller]
    fn migrate(&self) -> String {
        self.program.run(MIGRATE).success()
    }

    /// The move is refused with this code, and the message contains this.
    #[track_caller]
    fn refuses(&self, code: i32, expected: &str) {
        self.program.refuses(&[(MIGRATE, code, expected)]);
    }

    /// Starts a move through another URL of the target, without waiting for its end.
    fn start(&self, to: &str) -> Child {
        let mut command = self.program.command(&format!("migrate --from $from --to {to}"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs SQL in the target, behind the program's back.
    fn psql(&self, sql: &str) -> String {
        run_in(&self.url, sql)
    }

    /// How many tables the target has.
    fn tables(&self) -> String {
        self.psql("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
    }

    /// Runs SQL in the file.
    fn tamper_file(&self, sql: &str) {
        rusqlite::Connection::open(self.file()).unwrap().execute_batch(sql).unwrap();
    }

    /// The target's URL through another port that leads to the same server.
    fn url_by(&self, port: u16) -> String {
        self.url.replace(&format!(":{}/", Cluster::shared().address().port()), &format!(":{port}/"))
    }
}

/// An account with an entry.
async fn customer(store: &dyn Store, number: u8, entry: NewLedgerEntry) -> (AccountId, KeyHash) {
    let (id, key) = (account_id(number), KeyHash::from_bytes([number; 32]));
    let mut new = NewAccount::new(id.clone(), "agent".parse().unwrap(), key, NOON);
    new.entries = vec![entry];
    store.create_account(new).await.unwrap();
    (id, key)
}

fn account_id(number: u8) -> AccountId {
    format!("org_x{number:019}").parse().unwrap()
}

async fn account(store: &dyn Store, id: &AccountId) -> Account {
    store.account(id).await.unwrap().unwrap()
}
