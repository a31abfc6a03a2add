//! The scripts for accounts, for writes that are not scripts yet.

use metering_core::{Account, AccountId};
use metering_sql::{accounts, now};
use rusqlite::Connection;

use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::rows::{first, parse};
use crate::script::Statements;

/// The account with this id, and its row number.
pub(crate) fn by_id(snapshot: &Snapshot<'_>, id: &AccountId) -> Result<Option<(i64, Account)>> {
    now(accounts::by_id(&mut Statements::new(snapshot), id))
}

/// The public id of the account with this row number.
pub(crate) fn id_of(connection: &Connection, row: i64) -> Result<AccountId> {
    let mut statement = connection.prepare_cached("SELECT org_id FROM account WHERE id = ?1").map_err(store_error)?;
    let found = first(&mut statement, [row], |row| Ok(parse(&row.get::<_, String>(0)?)))?;
    found.ok_or_else(|| corrupt(format_args!("account {row} is missing")))
}
