use metering_core::{
    Account, AccountId, Address, Created, Cursor, Email, KeyHash, NewAccount, Page, RateLimits, Timestamp, Totals,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::{ACCOUNT_COLUMNS, account, all, first};
use crate::{ledger, quotes};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};

fn select(condition: &str) -> String {
    format!("SELECT {ACCOUNT_COLUMNS} FROM account a JOIN meter m ON m.account = a.id WHERE {condition}")
}

/// The account with this id, and its row number.
pub(crate) fn by_id(connection: &Connection, id: &AccountId) -> Result<Option<(i64, Account)>> {
    let mut statement = connection.prepare_cached(&select("a.org_id = ?1")).map_err(store_error)?;
    first(&mut statement, [id.as_str()], account)
}

/// The account that a live key belongs to.
pub(crate) fn by_key(connection: &Connection, key: &KeyHash) -> Result<Option<Account>> {
    let condition = "a.id = (SELECT account FROM api_key WHERE hash = ?1 AND revoked_at IS NULL)";
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    Ok(first(&mut statement, [key.as_bytes()], account)?.map(|(_, account)| account))
}

/// The account that this wallet paid for, unless it is revoked.
pub(crate) fn by_payer(connection: &Connection, payer: &Address) -> Result<Option<Account>> {
    let condition = "a.payer_address = ?1 AND a.revoked_at IS NULL";
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    Ok(first(&mut statement, [payer.as_bytes()], account)?.map(|(_, account)| account))
}

/// Whether an account that is not revoked has this email address. `false` without an address.
pub(crate) fn email_is_taken(connection: &Connection, email: Option<&Email>) -> Result<bool> {
    let Some(folded) = email.map(Email::folded) else { return Ok(false) };
    let sql = "SELECT 1 FROM account WHERE email_folded = ?1 AND revoked_at IS NULL";
    connection.prepare_cached(sql).and_then(|mut s| s.exists([folded])).map_err(store_error)
}

/// Whether any account has, or ever had, this key.
fn key_is_known(connection: &Connection, key: &KeyHash) -> Result<bool> {
    let sql = "SELECT 1 FROM api_key WHERE hash = ?1";
    connection.prepare_cached(sql).and_then(|mut s| s.exists([key.as_bytes()])).map_err(store_error)
}

pub(crate) fn live_keys(connection: &Connection, keys: &[KeyHash]) -> Result<Vec<bool>> {
    let sql = "SELECT 1 FROM api_key WHERE hash = ?1 AND revoked_at IS NULL";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    keys.iter().map(|key| statement.exists([key.as_bytes()]).map_err(store_error)).collect()
}

/// Accounts after a row number, at most `limit`.
pub(crate) fn list(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
    let after = row_of_cursor(after)?;
    let mut statement = connection.prepare_cached(&select("a.id > ?1 ORDER BY a.id LIMIT ?2")).map_err(store_error)?;
    let rows = all(&mut statement, [after, one_more_than(limit)], account)?;
    Ok(page_of_rows(rows, limit))
}

/// Creates an account with its key and first ledger entries.
pub(crate) fn create(connection: &Connection, new: &NewAccount) -> Result<Created> {
    if by_id(connection, &new.id)?.is_some() || key_is_known(connection, &new.key)? {
        return Err(corrupt("the id or key of a new account is already in use"));
    }
    if email_is_taken(connection, new.email.as_ref())? {
        return Ok(Created::EmailTaken);
    }
    if let Some(payer) = &new.payer
        && by_payer(connection, &payer.address)?.is_some()
    {
        return Ok(Created::PayerTaken);
    }
    let Some(totals) = ledger::totals_of(&new.entries) else { return Ok(Created::OutOfRange) };
    insert(connection, new).map_err(store_error)?;
    let row = connection.last_insert_rowid();
    insert_key(connection, row, &new.key, new.created_at).map_err(store_error)?;
    insert_meter(connection, row, new.limits, totals).map_err(store_error)?;
    for entry in &new.entries {
        ledger::append(connection, row, entry, new.created_at)?;
    }
    let (_, account) = by_id(connection, &new.id)?.ok_or_else(|| corrupt("an account just created is missing"))?;
    Ok(Created::Account(account))
}

fn insert(connection: &Connection, new: &NewAccount) -> rusqlite::Result<()> {
    let sql = "INSERT INTO account \
               (org_id, agent_name, email, email_folded, payer_address, payer_chain_id, created_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let (email, folded) = (new.email.as_ref().map(Email::as_str), new.email.as_ref().map(Email::folded));
    let payer = new.payer.as_ref().map(|payer| payer.address.as_bytes());
    let chain_id = new.payer.map(|payer| payer.chain_id.cast_signed());
    let created_at = new.created_at.unix_millis();
    let values = params![new.id.as_str(), new.agent_name.as_str(), email, folded, payer, chain_id, created_at];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn insert_key(connection: &Connection, account: i64, key: &KeyHash, now: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO api_key (hash, account, created_at) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![key.as_bytes(), account, now.unix_millis()]).map(drop)
}

fn insert_meter(connection: &Connection, account: i64, limits: RateLimits, totals: Totals) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection
        .prepare_cached(sql)?
        .execute((
            account,
            totals.balance.atoms(),
            totals.purchased.atoms(),
            totals.granted.atoms(),
            totals.used.atoms(),
            limits.requests_per_minute,
            limits.requests_per_day,
        ))
        .map(drop)
}

pub(crate) fn set_limits(connection: &Connection, id: &AccountId, limits: RateLimits) -> Result<Option<Account>> {
    let sql = "UPDATE meter SET requests_per_minute = ?2, requests_per_day = ?3 \
               WHERE account = (SELECT id FROM account WHERE org_id = ?1)";
    let values = params![id.as_str(), limits.requests_per_minute, limits.requests_per_day];
    connection.execute(sql, values).map_err(store_error)?;
    Ok(by_id(connection, id)?.map(|(_, account)| account))
}

pub(crate) fn revoke(connection: &Connection, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
    let sql = "UPDATE account SET revoked_at = ?2 WHERE org_id = ?1 AND revoked_at IS NULL RETURNING id";
    let values = params![id.as_str(), now.unix_millis()];
    let row: Option<i64> = connection.query_row(sql, values, |row| row.get(0)).optional().map_err(store_error)?;
    if let Some(row) = row {
        revoke_keys(connection, row, now)?;
    }
    Ok(by_id(connection, id)?.map(|(_, account)| account))
}

fn revoke_keys(connection: &Connection, account: i64, now: Timestamp) -> Result<()> {
    let sql = "UPDATE api_key SET revoked_at = ?2 WHERE account = ?1 AND revoked_at IS NULL";
    connection.execute(sql, [account, now.unix_millis()]).map(drop).map_err(store_error)
}

/// Replaces an account's key. The new key also counts as delivery of the key that the account's quote promised.
pub(crate) fn replace_key(
    connection: &Connection,
    id: &AccountId,
    key: &KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    match by_id(connection, id)? {
        Some((row, account)) if account.revoked_at.is_none() => {
            if key_is_known(connection, key)? {
                return Err(corrupt("a new key is already in use"));
            }
            revoke_keys(connection, row, now)?;
            quotes::key_given_out(connection, row)?;
            insert_key(connection, row, key, now).map_err(store_error)?;
            Ok(Some(account))
        }
        _ => Ok(None),
    }
}
