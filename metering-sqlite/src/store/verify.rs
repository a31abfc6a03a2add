//! Verifies that the file is sound, and the books.

use metering_core::store::Verification;
use metering_sql::now;
use rusqlite::Connection;

use crate::connection::integrity::{self, Depth};
use crate::error::Result;
use crate::journal::{Snapshot, Unfolded};
use crate::script::Statements;
use crate::usage::activity;

/// Reads the journal again: a connection's cached copy may hide damage.
pub(crate) fn verify(connection: &Connection) -> Result<Verification> {
    let mut unfolded = Unfolded::default();
    let snapshot = &Snapshot::new(connection, &mut unfolded);
    integrity::check(snapshot, Depth::Full)?;
    activity::verify(snapshot)?;
    now(metering_sql::verify::verify(&mut Statements::new(snapshot)))
}
