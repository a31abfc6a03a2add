use metering_core::access::{Email, Key, KeyHash};
use metering_core::backend::decision::{self, CreateChanges, CreateFacts, Decided, KeyWrite, MeterWrite, OldSecrets};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::Address;
use metering_core::money::NewLedgerEntry;
use metering_core::store::{Created, Cursor, Page, Posted};
use metering_core::{Account, AccountId, Credits, Day, NewAccount, RateLimits, StoreError, Timestamp};
use rusqlite::{Connection, Params, params};

use crate::access::{keys, owners};
use crate::error::{Result, corrupt, store_error};
use crate::events::outbox;
use crate::journal::Snapshot;
use crate::journal::sequence::record_settings;
use crate::money::ledger;
use crate::rows::{ACCOUNT_COLUMN_COUNT, ACCOUNT_COLUMNS, account, all, email_columns, first, parse};

/// The row number of an account, the account, and the day it was last processed for a refill.
pub(crate) type Turn = (i64, (Account, Option<Day>));

fn select(condition: &str) -> String {
    format!("SELECT {ACCOUNT_COLUMNS} FROM account a JOIN meter m ON m.account = a.id WHERE {condition}")
}

/// The account with this id, and its row number.
pub(crate) fn by_id(snapshot: &Snapshot<'_>, id: &AccountId) -> Result<Option<(i64, Account)>> {
    one(snapshot, "a.org_id = ?1", [id.as_str()])
}

/// The public id of the account with this row number.
pub(crate) fn id_of(connection: &Connection, row: i64) -> Result<AccountId> {
    let mut statement = connection.prepare_cached("SELECT org_id FROM account WHERE id = ?1").map_err(store_error)?;
    let found = first(&mut statement, [row], |row| Ok(parse(&row.get::<_, String>(0)?)))?;
    found.ok_or_else(|| missing(row))
}

/// The account with this row number, which another row names.
pub(crate) fn by_row(snapshot: &Snapshot<'_>, row: i64) -> Result<Account> {
    let found = one(snapshot, "a.id = ?1", [row])?;
    found.map(|(_, account)| account).ok_or_else(|| missing(row))
}

fn missing(row: i64) -> StoreError {
    corrupt(format_args!("account {row} is missing"))
}

/// The account that this wallet paid for, unless it is revoked.
pub(crate) fn by_payer(snapshot: &Snapshot<'_>, payer: &Address) -> Result<Option<Account>> {
    let condition = "a.payer_address = ?1 AND a.revoked_at IS NULL";
    Ok(one(snapshot, condition, [payer.as_bytes()])?.map(|(_, account)| account))
}

/// The account that holds this email address, unless it is revoked.
pub(crate) fn by_email(snapshot: &Snapshot<'_>, email: &Email) -> Result<Option<Account>> {
    let condition = "a.email_folded = ?1 AND a.revoked_at IS NULL";
    Ok(one(snapshot, condition, [email.folded()])?.map(|(_, account)| account))
}

fn one(snapshot: &Snapshot<'_>, condition: &str, params: impl Params) -> Result<Option<(i64, Account)>> {
    let mut statement = snapshot.prepare_cached(&select(condition)).map_err(store_error)?;
    first(&mut statement, params, account)?.map(|stored| with_unfolded(snapshot, stored)).transpose()
}

/// Adds what is not in the account's row yet.
fn with_unfolded(snapshot: &Snapshot<'_>, (row, account): (i64, Account)) -> Result<(i64, Account)> {
    let totals = snapshot.unfolded()?.totals(row, account.totals)?;
    Ok((row, Account { totals, ..account }))
}

/// What is read before an account is created.
pub(crate) fn create_facts(connection: &Connection, new: &NewAccount) -> Result<CreateFacts> {
    let sql = "SELECT 1 FROM account WHERE org_id = ?1 UNION ALL SELECT 1 FROM key_secret WHERE hash = ?2";
    let values = params![new.id.as_str(), new.key.as_bytes()];
    let in_use = connection.prepare_cached(sql).and_then(|mut s| s.exists(values)).map_err(store_error)?;
    let payer = new.payer.as_ref().map(|payer| &payer.address);
    Ok(CreateFacts { id_or_key_in_use: in_use, owner: owners::owner_facts(connection, new.email.as_ref(), payer)? })
}

/// Accounts after a row number, at most `limit`.
pub(crate) fn list(snapshot: &Snapshot<'_>, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
    let after = row_of_cursor(after)?;
    let mut statement = snapshot.prepare_cached(&select("a.id > ?1 ORDER BY a.id LIMIT ?2")).map_err(store_error)?;
    let rows = all(&mut statement, [after, one_more_than(limit)], account)?;
    let rows = rows.into_iter().map(|stored| with_unfolded(snapshot, stored)).collect::<Result<_>>()?;
    Ok(page_of_rows(rows, limit))
}

/// Accounts after a row number, at most `limit`, with the day each was last processed for a refill.
pub(crate) fn turns_after(snapshot: &Snapshot<'_>, after: i64, limit: i64) -> Result<Vec<Turn>> {
    let sql = format!(
        "SELECT {ACCOUNT_COLUMNS}, a.refilled_on FROM account a JOIN meter m ON m.account = a.id WHERE a.id > ?1 \
         ORDER BY a.id LIMIT ?2"
    );
    let mut statement = snapshot.prepare_cached(&sql).map_err(store_error)?;
    let rows = all(&mut statement, [after, limit], |row| {
        let day = row.get::<_, Option<i64>>(ACCOUNT_COLUMN_COUNT)?.map(Day::from_unix_days);
        Ok(account(row)?.map(|stored| (stored, day)))
    })?;
    let unfolded = |(stored, day)| with_unfolded(snapshot, stored).map(|(row, account)| (row, (account, day)));
    rows.into_iter().map(unfolded).collect()
}

/// Creates an account with its key and first ledger entries.
pub(crate) fn create(connection: &Connection, new: NewAccount) -> Result<Created> {
    let facts = create_facts(connection, &new)?;
    match decision::create_account(new, facts)? {
        Decided::Accepted(changes) => insert(connection, &changes).map(|_| Created::Account(changes.account)),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Posts an entry to an account that is not revoked.
pub(crate) fn post_entry(
    connection: &Snapshot<'_>,
    id: &AccountId,
    entry: NewLedgerEntry,
    now: Timestamp,
) -> Result<Posted> {
    match decision::post_entry(by_id(connection, id)?, entry, now) {
        Decided::Accepted(changes) => ledger::write(connection, &changes).map(|()| Posted::Account(changes.account)),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Inserts an account with its key and first ledger entries, and returns its row number.
pub(crate) fn insert(connection: &Connection, changes: &CreateChanges) -> Result<i64> {
    let CreateChanges { account, key, entries, events } = changes;
    insert_account(connection, account).map_err(store_error)?;
    let row = connection.last_insert_rowid();
    keys::write_key(connection, &first_key(row, account, key))?;
    insert_meter(connection, row, account).map_err(store_error)?;
    for entry in entries {
        ledger::append(connection, row, entry, account.created_at)?;
    }
    events.iter().try_for_each(|event| outbox::write(connection, Some(row), event))?;
    Ok(row)
}

fn first_key(row: i64, account: &Account, secret: &KeyHash) -> KeyWrite<i64> {
    let key = Key::first(account.id.clone(), secret, account.created_at);
    let (old_secrets, meter) = (OldSecrets::Keep, MeterWrite::Keep);
    // Its event is among those of the account.
    KeyWrite { row, key, old_secrets, secret: Some(*secret), meter, written_at: account.created_at, event: None }
}

pub(crate) fn insert_account(connection: &Connection, account: &Account) -> rusqlite::Result<()> {
    let sql = "INSERT INTO account \
               (org_id, agent_name, email, email_folded, payer_address, payer_chain_id, created_at, email_credits, \
               email_verified_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let (email, folded) = (account.email.as_ref().map(Email::as_str), account.held_email().map(Email::folded));
    let (credits, verified_at) = email_columns(account.email_status);
    let payer = account.payer.as_ref().map(|payer| payer.address.as_bytes());
    let chain_id = account.payer.map(|payer| payer.chain_id.cast_signed());
    let created_at = account.created_at.unix_millis();
    let (id, name) = (account.id.as_str(), account.agent_name.as_str());
    let revoked_at = account.revoked_at.map(Timestamp::unix_millis);
    let values = params![id, name, email, folded, payer, chain_id, created_at, credits, verified_at, revoked_at];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

pub(crate) fn insert_meter(connection: &Connection, row: i64, account: &Account) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, \
               alert_below, alert_raised) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let Account { limits, totals, alert, .. } = account;
    connection
        .prepare_cached(sql)?
        .execute((
            row,
            totals.balance.atoms(),
            totals.purchased.atoms(),
            totals.granted.atoms(),
            totals.used.atoms(),
            limits.requests_per_minute,
            limits.requests_per_day,
            alert.threshold.map(Credits::atoms),
            alert.raised.number(),
        ))
        .map(drop)
}

pub(crate) fn set_limits(snapshot: &Snapshot<'_>, id: &AccountId, limits: RateLimits) -> Result<Option<Account>> {
    let Some((row, account)) = by_id(snapshot, id)? else { return Ok(None) };
    let sql = "UPDATE meter SET requests_per_minute = ?2, requests_per_day = ?3 WHERE account = ?1";
    snapshot.execute(sql, params![row, limits.requests_per_minute, limits.requests_per_day]).map_err(store_error)?;
    record_settings(snapshot, row)?;
    Ok(Some(Account { limits, ..account }))
}

/// Sets the threshold of the balance alert.
pub(crate) fn set_balance_alert(
    snapshot: &Snapshot<'_>,
    id: &AccountId,
    threshold: Option<Credits>,
) -> Result<Option<Account>> {
    let Some((row, account)) = by_id(snapshot, id)? else { return Ok(None) };
    let alert = account.alert.with_threshold(threshold, account.totals.unspent());
    let sql = "UPDATE meter SET alert_below = ?2, alert_raised = ?3 WHERE account = ?1";
    let values = params![row, threshold.map(Credits::atoms), alert.raised.number()];
    snapshot.execute(sql, values).map_err(store_error)?;
    record_settings(snapshot, row)?;
    Ok(Some(Account { alert, ..account }))
}

pub(crate) fn revoke(snapshot: &Snapshot<'_>, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
    let (row, account) = match decision::revoke_account(by_id(snapshot, id)?, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    let sql = "UPDATE account SET revoked_at = ?2 WHERE id = ?1";
    snapshot.execute(sql, [row, now.unix_millis()]).map_err(store_error)?;
    let sql = "UPDATE key_secret SET revoked_at = ?2 WHERE account = ?1 AND revoked_at IS NULL";
    snapshot.execute(sql, [row, now.unix_millis()]).map_err(store_error)?;
    record_settings(snapshot, row)?;
    Ok(Some(account))
}
