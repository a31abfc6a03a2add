//! Links that were sent by email, and what following them does.

use metering_core::access::{Email, KeyHash};
use metering_core::backend::decision::{self, Decided, VerifyFacts};
use metering_core::signups::{EmailLink, LinkHash};
use metering_core::store::EmailVerified;
use metering_core::{Account, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::access::{accounts, key_changes, owners};
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::journal::sequence::record_settings;
use crate::money::alert;
use crate::money::ledger;
use crate::rows::{email_columns, first, parse, timestamp};

/// The columns that [`link`] reads from `email_link l JOIN account a`.
pub(crate) const COLUMNS: &str = "l.token, l.purpose, a.org_id, l.expires_at";

/// The link with this token.
fn by_token(connection: &Connection, token: &LinkHash) -> Result<Option<EmailLink>> {
    let sql = format!("SELECT {COLUMNS} FROM email_link l JOIN account a ON a.id = l.account WHERE l.token = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [token.as_bytes()], link)
}

/// Stores a link in place of the account's older one for the same purpose.
pub(crate) fn open(connection: &Snapshot<'_>, new: EmailLink) -> Result<bool> {
    let token_in_use = by_token(connection, &new.token)?.is_some();
    let found = accounts::by_id(connection, &new.account)?;
    let account = found.as_ref().map(|(_, account)| account);
    let Some(link) = decision::open_email_link(new, account, token_in_use)? else { return Ok(false) };
    let Some((row, _)) = found else { return Ok(false) };
    let sql = "INSERT INTO email_link (token, account, purpose, expires_at) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (account, purpose) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at";
    let values = params![link.token.as_bytes(), row, link.purpose.as_str(), link.expires_at.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(true)
}

/// Uses up a link and marks the address of its account as verified.
pub(crate) fn verify(connection: &Snapshot<'_>, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
    let link = by_token(connection, token)?;
    let account = match &link {
        Some(link) => accounts::by_id(connection, &link.account)?,
        None => None,
    };
    let email = account.as_ref().and_then(|(_, account)| account.email.as_ref());
    let email_held = owners::owner_facts(connection, email, None)?.email_taken;
    let changes = match decision::verify_email(VerifyFacts { link, account, email_held }, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    delete(connection, &changes.token)?;
    if let Some(entry) = changes.entry_changes() {
        ledger::write(connection, &entry)?;
    } else if alert::write_level(connection, changes.row, changes.account.alert.raised)? {
        record_settings(connection, changes.row)?;
    }
    let (credits, verified_at) = email_columns(changes.account.email_status);
    let folded = changes.account.held_email().map(Email::folded);
    let sql = "UPDATE account SET email_folded = ?2, email_credits = ?3, email_verified_at = ?4 WHERE id = ?1";
    connection.execute(sql, params![changes.row, folded, credits, verified_at]).map_err(store_error)?;
    Ok(changes.into_outcome())
}

/// Uses up a link and replaces the key of its account.
pub(crate) fn recover(
    connection: &Snapshot<'_>,
    token: &LinkHash,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some(link) = by_token(connection, token)? else { return Ok(None) };
    let facts = key_changes::replace_facts(connection, &link.account, &key)?;
    match decision::recover_key(&link, facts, key, now)? {
        Some(changes) => {
            delete(connection, token)?;
            key_changes::write_all(connection, changes).map(Some)
        }
        None => Ok(None),
    }
}

fn delete(connection: &Connection, token: &LinkHash) -> Result<()> {
    let sql = "DELETE FROM email_link WHERE token = ?1";
    connection.execute(sql, [token.as_bytes()]).map(drop).map_err(store_error)
}

pub(crate) fn link(row: &Row<'_>) -> rusqlite::Result<Result<EmailLink>> {
    let token = LinkHash::from_bytes(row.get(0)?);
    let (purpose, account): (String, String) = (row.get(1)?, row.get(2)?);
    let expires_at = timestamp(row, 3)?;
    let read = || Ok(EmailLink { token, purpose: parse(&purpose)?, account: parse(&account)?, expires_at });
    Ok(read())
}
