//! How to write a backend: the shortest one that passes the conformance suite.
//!
//! The macros of `metering-sql` turn its scripts into the storage traits, which is most of a backend. You write the rest:
//!
//! 1. `statements`: an [`Executor`](metering_sql::Executor), which runs a script's statements. It translates parameters, rows
//!    and the words in braces, and writes what charges also write: ledger entries, events and usage lines.
//! 2. `store`: a [`Backend`](metering_sql::Backend), which runs a script in a transaction, and the few methods of the
//!    storage traits that are not scripts.
//! 3. `commit`: the [`Facts`](metering_core::charging::Facts) that a batch of charges is decided with, and writing what it
//!    changes. This is where a real backend earns its speed.
//! 4. `history`: each account's recent usage.
//! 5. Tables. These are SQLite's, with one more; a real backend has migrations, and [`Export`](metering_sql::transfer::Export)
//!    and [`Import`](metering_sql::transfer::Import) for moves to and from other backends.
//!
//! It has one connection, used by one transaction at a time, so nothing needs to be locked and nothing can change
//! between two statements. It caches nothing, so no process has to be notified of a change. `metering-sqlite` and
//! `metering-postgres` are faster and survive more, and otherwise the same.

mod commit;
mod history;
mod statements;
mod store;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use metering_conformance::agrees_on_random_operations;
use metering_core::FullStore;
use metering_sqlite::SqliteStore;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::store::ToyStore;

/// A file with SQLite's tables.
static TABLES: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("tables.db");
    drop(SqliteStore::open(&path).expect("SQLite makes its tables"));
    (folder, path)
});

async fn fresh() -> (Arc<dyn FullStore>, ()) {
    let mut connection = Connection::open_in_memory().expect("there is memory");
    connection.restore("main", &TABLES.1, None::<fn(_)>).expect("SQLite's tables can be copied");
    connection.execute_batch(history::TABLE).expect("the table of recent usage can be made");
    (Arc::new(ToyStore::new(connection)), ())
}

metering_conformance::store_conformance!(fresh);

#[test]
fn random_operations_agree_with_the_model() {
    agrees_on_random_operations(64, fresh);
}
