//! Accounts.
//!
//! An account is a row of `account` and one of `meter`. The columns that charges change are read through
//! [`Executor::totals`].

use std::collections::HashMap;

use metering_core::access::{AgentName, Email, EmailStatus, Payer, Totals};
use metering_core::backend::decision::{self, CreateChanges, CreateFacts, Decided, KeyWrite, MeterWrite, OldSecrets};
use metering_core::backend::{credits, one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::Address;
use metering_core::charging::Window;
use metering_core::money::{AlertLevel, BalanceAlert, NewLedgerEntry};
use metering_core::store::{Created, Cursor, Page, Posted};
use metering_core::{Account, AccountId, Credits, Day, NewAccount, RateLimits, Timestamp};

use crate::alert::alert_level;
use crate::executor::Executor;
use crate::fault::{Fault, Result, corrupt};
use crate::owners::owner_facts;
use crate::record::table;
use crate::row::{Row, only};
use crate::table::Table;
use crate::transfer::AccountRecord;
use crate::value::Value;
use crate::{keys, values};

/// The columns of the alert are `NUMERIC` on PostgreSQL.
pub(crate) const COLUMNS: &str = "a.id, a.org_id, a.agent_name, a.email, a.email_credits, a.email_verified_at, \
     a.payer_address, a.payer_chain_id, a.created_at, a.revoked_at, m.requests_per_minute, m.requests_per_day, \
     m.balance, m.purchased, m.granted, m.used, CAST(m.alert_below AS BIGINT), CAST(m.alert_raised AS BIGINT), \
     m.tokens_per_minute, a.erased_at";
/// How many there are.
const COLUMN_COUNT: usize = 20;
/// The account's own row.
pub(crate) const TABLE: Table = table!("account" by ["id"] {
    Own(id), Own(org_id), Own(agent_name), Own(email), Own(email_folded), Own(email_credits), Own(email_verified_at),
    Own(payer_address), Own(payer_chain_id), Own(created_at), Own(revoked_at), Own(refilled_on), Own(erased_at)
});

pub(crate) const TABLES: &str = "account a JOIN meter m ON m.account = a.id";

/// An account and its row number.
pub type AccountRow = (i64, Account);

/// The accounts that match.
pub(crate) async fn select(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Vec<AccountRow>> {
    let rows = db.query(&format!("SELECT {COLUMNS} FROM {TABLES} WHERE {condition}"), values).await?;
    rows.iter().map(|row| account(db, row)).collect()
}

async fn one(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Option<AccountRow>> {
    Ok(select(db, condition, values).await?.into_iter().next())
}

/// The account with this id, and its row number.
pub async fn by_id(db: &mut dyn Executor, id: &AccountId) -> Result<Option<AccountRow>> {
    one(db, "a.org_id = ?1", &values![id]).await
}

/// Like [`by_id`], and keeps charges from changing the account until the transaction ends.
pub async fn locked(db: &mut dyn Executor, id: &AccountId) -> Result<Option<AccountRow>> {
    one(db, "a.org_id = ?1 {lock m}", &values![id]).await
}

/// The account with this row number, which another row names.
pub async fn by_row(db: &mut dyn Executor, row: i64) -> Result<Account> {
    let found = one(db, "a.id = ?1", &values![row]).await?;
    found.map(|(_, account)| account).ok_or_else(|| corrupt(format_args!("account {row} is missing")))
}

/// Like [`by_row`], and keeps charges from changing the account until the transaction ends.
pub async fn locked_row(db: &mut dyn Executor, row: i64) -> Result<Account> {
    let found = one(db, "a.id = ?1 {lock m}", &values![row]).await?;
    found.map(|(_, account)| account).ok_or_else(|| corrupt(format_args!("account {row} is missing")))
}

/// The account that this wallet paid for, unless it is revoked.
pub async fn by_payer(db: &mut dyn Executor, payer: &Address) -> Result<Option<Account>> {
    let found = one(db, "a.payer_address = ?1 AND a.revoked_at IS NULL", &values![payer]).await?;
    Ok(found.map(|(_, account)| account))
}

/// The account that holds this email address, unless it is revoked.
pub async fn by_email(db: &mut dyn Executor, email: &Email) -> Result<Option<Account>> {
    let found = one(db, "a.email_folded = ?1 AND a.revoked_at IS NULL", &values![email.folded()]).await?;
    Ok(found.map(|(_, account)| account))
}

/// The ids and names of the accounts with these row numbers.
pub(crate) async fn names(db: &mut dyn Executor, rows: Vec<i64>) -> Result<HashMap<i64, (AccountId, AgentName)>> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let found = db.query("SELECT id, org_id, agent_name FROM account WHERE id {in ?1}", &values![rows]).await?;
    found.iter().map(|row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).collect()
}

/// Accounts after a cursor, at most `limit`.
pub async fn list(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
    let values = values![row_of_cursor(after)?, one_more_than(limit)];
    Ok(page_of_rows(select(db, "a.id > ?1 ORDER BY a.id LIMIT ?2", &values).await?, limit))
}

/// The row number of an account, the account, and the day it was last processed for a refill.
pub type Turn = (i64, (Account, Option<Day>));

/// Accounts after a row number, at most `limit`, with the day each was last processed for a refill. Charges do not change
/// them until the transaction ends.
pub async fn turns_after(db: &mut dyn Executor, after: i64, limit: i64) -> Result<Vec<Turn>> {
    // Children get credits from their parents. With recurring credits, every child would multiply them.
    let rest =
        "WHERE a.id > ?1 AND a.id NOT IN (SELECT c.account FROM child_account c) ORDER BY a.id LIMIT ?2 {lock m}";
    let sql = format!("SELECT {COLUMNS}, a.refilled_on FROM {TABLES} {rest}");
    let rows = db.query(&sql, &values![after, limit]).await?;
    let turn = |row| account(db, row).and_then(|(id, account)| Ok((id, (account, row.get(COLUMN_COUNT)?))));
    rows.iter().map(turn).collect()
}

/// The data that is read before an account is created.
pub async fn create_facts(db: &mut dyn Executor, new: &NewAccount) -> Result<CreateFacts> {
    let sql = "SELECT 1 FROM account WHERE org_id = ?1 UNION ALL SELECT 1 FROM key_secret WHERE hash = ?2";
    let in_use = db.query(sql, &values![new.id, new.key]).await?;
    let payer = new.payer.as_ref().map(|payer| &payer.address);
    let owner = owner_facts(db, new.email.as_ref(), payer).await?;
    Ok(CreateFacts { id_or_key_in_use: !in_use.is_empty(), owner })
}

/// Creates an account with its key and first ledger entries.
pub async fn create(db: &mut dyn Executor, new: &NewAccount) -> Result<Created> {
    let facts = create_facts(db, new).await?;
    match decision::create_account(new.clone(), facts)? {
        Decided::Accepted(changes) => insert(db, &changes).await.map(|_| Created::Account(changes.account)),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Inserts an account with its key and first ledger entries, and returns its row number.
pub async fn insert(db: &mut dyn Executor, changes: &CreateChanges) -> Result<i64> {
    let CreateChanges { account, key, entries, events } = changes;
    let row = insert_unused(db, account).await?;
    let first = KeyWrite {
        row,
        key: metering_core::access::Key::first(account.id.clone(), key, account.created_at),
        old_secrets: OldSecrets::Keep,
        secret: Some(*key),
        meter: MeterWrite::Keep,
        written_at: account.created_at,
        // It is among the events of the account.
        event: None,
    };
    keys::write(db, &first).await?;
    let entries: Vec<_> = entries.iter().map(|entry| (entry.clone(), account.created_at)).collect();
    db.append_entries(row, &entries).await?;
    db.write_events(Some(row), events).await?;
    Ok(row)
}

/// Inserts only the accounts' own rows, and returns their row numbers.
pub async fn insert_rows(db: &mut dyn Executor, records: &[AccountRecord]) -> Result<Vec<i64>> {
    let ids = db.next_ids(records.len()).await?;
    let values = |(AccountRecord { account, refilled_on, .. }, id): (&AccountRecord, &Option<i64>)| {
        let Account { id: org_id, agent_name, email, email_status, payer, created_at, revoked_at, erased_at, .. } =
            account;
        let folded = account.held_email().map(Email::folded);
        let (credits, verified_at) = email_columns(*email_status);
        let (address, chain) = (payer.map(|payer| payer.address), payer.map(|payer| payer.chain_id));
        let mut values = values![id, org_id, agent_name, email, folded, credits, verified_at, address, chain];
        values.extend(values![created_at, revoked_at, refilled_on, erased_at]);
        values
    };
    db.execute(&TABLE.insert(), &records.iter().zip(&ids).map(values).collect::<Vec<_>>()).await?;
    let mut rows = Vec::with_capacity(records.len());
    for (record, id) in records.iter().zip(ids) {
        rows.push(match id {
            Some(id) => id,
            None => only(&db.query(ROW_OF, &values![record.account.id]).await?)?.get(0)?,
        });
    }
    let sql = "INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, \
               minute, minute_count, day, day_count, alert_below, alert_raised, tokens_per_minute) VALUES \
               (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, CAST(?12 AS BIGINT), CAST(?13 AS BIGINT), ?14)";
    let values = |(AccountRecord { account, minute, day, .. }, row): (&AccountRecord, &i64)| {
        let Account { limits, totals: Totals { balance, purchased, granted, used, .. }, alert, .. } = account;
        let RateLimits { requests_per_minute, requests_per_day } = limits;
        let mut values = values![row, balance, purchased, granted, used, requests_per_minute, requests_per_day];
        values.extend(values![minute.index, minute.count, day.index, day.count]);
        values.extend(values![alert.threshold, alert.raised.number(), account.tokens_per_minute]);
        values
    };
    db.execute(sql, &records.iter().zip(&rows).map(values).collect::<Vec<_>>()).await?;
    Ok(rows)
}

/// Like [`insert_rows`], for an account that was not used yet.
pub async fn insert_unused(db: &mut dyn Executor, account: &Account) -> Result<i64> {
    let (minute, day) = (Window::default(), Window::default());
    let record = AccountRecord { account: account.clone(), minute, day, entries: 0, refilled_on: None };
    let rows = insert_rows(db, &[record]).await?;
    rows.first().copied().ok_or_else(|| corrupt("a row that was just inserted is missing"))
}

/// The query for the row number of an account.
pub const ROW_OF: &str = "SELECT id FROM account WHERE org_id = ?1";

/// Posts an entry to an account that is not revoked.
pub async fn post_entry(
    db: &mut dyn Executor,
    id: &AccountId,
    entry: &NewLedgerEntry,
    now: Timestamp,
) -> Result<Posted> {
    match decision::post_entry(locked(db, id).await?, entry.clone(), now) {
        Decided::Accepted(changes) => {
            db.post_entries(std::slice::from_ref(&changes)).await?;
            Ok(Posted::Account(changes.account))
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Sets the rate limits of an account.
pub async fn set_limits(db: &mut dyn Executor, id: &AccountId, limits: RateLimits) -> Result<Option<Account>> {
    let Some((row, mut account)) = locked(db, id).await? else { return Ok(None) };
    let sql = "UPDATE meter SET requests_per_minute = ?2, requests_per_day = ?3 WHERE account = ?1";
    db.execute(sql, &[values![row, limits.requests_per_minute, limits.requests_per_day]]).await?;
    db.settings_changed(row).await?;
    account.limits = limits;
    Ok(Some(account))
}

/// Sets the limit on tokens per minute of an account; 0 removes it.
pub async fn set_token_limit(db: &mut dyn Executor, id: &AccountId, tokens_per_minute: u32) -> Result<Option<Account>> {
    let Some((row, mut account)) = locked(db, id).await? else { return Ok(None) };
    let sql = "UPDATE meter SET tokens_per_minute = ?2 WHERE account = ?1";
    db.execute(sql, &[values![row, tokens_per_minute]]).await?;
    db.settings_changed(row).await?;
    account.tokens_per_minute = tokens_per_minute;
    Ok(Some(account))
}

/// Sets the threshold of the balance alert.
pub async fn set_alert(db: &mut dyn Executor, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
    let Some((row, mut account)) = locked(db, id).await? else { return Ok(None) };
    let alert = account.alert.with_threshold(threshold, account.totals.unspent());
    let sql = "UPDATE meter SET alert_below = CAST(?2 AS BIGINT), alert_raised = CAST(?3 AS BIGINT) WHERE account = ?1";
    db.execute(sql, &[values![row, threshold, alert.raised.number()]]).await?;
    db.settings_changed(row).await?;
    account.alert = alert;
    Ok(Some(account))
}

/// Writes the level of the balance alert, if it changed. The account's meter is locked.
pub async fn write_alert_level(db: &mut dyn Executor, row: i64, level: AlertLevel) -> Result<()> {
    if change_alert_level(db, row, level).await? { db.settings_changed(row).await } else { Ok(()) }
}

/// Like [`write_alert_level`], for a write that names the account anyway. Returns whether the level changed.
pub async fn change_alert_level(db: &mut dyn Executor, row: i64, level: AlertLevel) -> Result<bool> {
    let sql =
        "UPDATE meter SET alert_raised = CAST(?2 AS BIGINT) WHERE account = ?1 AND alert_raised <> CAST(?2 AS BIGINT)";
    Ok(db.execute(sql, &[values![row, level.number()]]).await? > 0)
}

/// Revokes an account and its secrets.
pub async fn revoke(db: &mut dyn Executor, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
    let (row, account) = match decision::revoke_account(locked(db, id).await?, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    db.execute(&TABLE.update(&["revoked_at"]), &[values![row, now]]).await?;
    let sql = "UPDATE key_secret SET revoked_at = ?2 WHERE account = ?1 AND revoked_at IS NULL";
    db.execute(sql, &[values![row, now]]).await?;
    db.settings_changed(row).await?;
    Ok(Some(account))
}

/// The columns of an email status: the credits that come with the verification, and the time of the verification.
pub(crate) const fn email_columns(status: EmailStatus) -> (Option<Credits>, Option<Timestamp>) {
    match status {
        EmailStatus::Unchecked => (None, None),
        EmailStatus::Pending { free_credits } => (Some(free_credits), None),
        EmailStatus::Verified { at } => (None, Some(at)),
    }
}

/// The columns that [`record`] reads from [`TABLES`].
pub(crate) fn record_columns() -> String {
    format!("{COLUMNS}, m.minute, m.minute_count, m.day, m.day_count, a.refilled_on, {{entries}}")
}

/// Reads an account with all its data for deciding charges.
pub(crate) fn record(db: &mut dyn Executor, row: &Row) -> Result<AccountRecord> {
    let window = |first| Ok::<_, Fault>(Window { index: row.get(first)?, count: row.get(first + 1)? });
    let (minute, day) = (window(COLUMN_COUNT)?, window(COLUMN_COUNT + 2)?);
    let (refilled_on, entries) = (row.get(COLUMN_COUNT + 4)?, row.get(COLUMN_COUNT + 5)?);
    Ok(AccountRecord { account: account(db, row)?.1, minute, day, entries, refilled_on })
}

/// Reads the columns of [`COLUMNS`].
pub(crate) fn account(db: &mut dyn Executor, row: &Row) -> Result<AccountRow> {
    let email_status = match (row.get(4)?, row.get(5)?) {
        (None, None) => EmailStatus::Unchecked,
        (Some(free_credits), _) => EmailStatus::Pending { free_credits },
        (None, Some(at)) => EmailStatus::Verified { at },
    };
    // The schema ensures that both are set or neither is.
    let payer = match (row.get(6)?, row.get(7)?) {
        (Some(address), Some(chain_id)) => Some(Payer { address, chain_id }),
        _ => None,
    };
    let (id, stored) = (row.get(0)?, totals(row, 12)?);
    let mut account = Account::new(row.get(1)?, row.get(2)?, row.get(8)?);
    account.email = row.get(3)?;
    account.email_status = email_status;
    account.payer = payer;
    account.limits = RateLimits { requests_per_minute: row.get(10)?, requests_per_day: row.get(11)? };
    account.totals = db.totals(id, stored)?;
    account.alert = BalanceAlert { threshold: row.get(16)?, raised: alert_level(row, 17, "meter.alert_raised")? };
    account.tokens_per_minute = row.get(18)?;
    account.revoked_at = row.get(9)?;
    account.erased_at = row.get(19)?;
    Ok((id, account))
}

/// Reads balance, purchased, granted and used. The held amount follows from the balance.
fn totals(row: &Row, first: usize) -> Result<Totals> {
    let (balance, purchased): (Credits, Credits) = (row.get(first)?, row.get(first + 1)?);
    let (granted, used): (Credits, Credits) = (row.get(first + 2)?, row.get(first + 3)?);
    let [added, taken] =
        [(purchased, granted), (used, balance)].map(|(one, other)| i128::from(one.atoms()) + i128::from(other.atoms()));
    Ok(Totals { balance, purchased, granted, used, held: credits(added - taken)? })
}
