//! Which email addresses and wallets belong to accounts.

use metering_core::access::Email;
use metering_core::backend::decision::OwnerFacts;
use metering_core::chains::Address;
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};

/// Whether an email address and a wallet are free for a new owner.
pub(crate) fn owner_facts(
    connection: &Connection,
    email: Option<&Email>,
    payer: Option<&Address>,
) -> Result<OwnerFacts> {
    let sql = "SELECT EXISTS (SELECT 1 FROM account WHERE email_folded = ?1 AND revoked_at IS NULL), \
               EXISTS (SELECT 1 FROM account WHERE payer_address = ?2 AND revoked_at IS NULL)";
    let values = params![email.map(Email::folded), payer.map(Address::as_bytes)];
    let read = |row: &Row<'_>| Ok(OwnerFacts { email_taken: row.get(0)?, payer_taken: row.get(1)? });
    connection.prepare_cached(sql).and_then(|mut s| s.query_row(values, read)).map_err(store_error)
}
