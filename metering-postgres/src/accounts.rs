use std::collections::HashSet;

use metering_core::{
    Account, AccountId, Address, Created, Cursor, Email, KeyHash, NewAccount, Page, RateLimits, Timestamp, Totals,
};

use crate::error::{Result, corrupt};
use crate::rows::{ACCOUNT_COLUMNS, account, all, bytes, execute, exists, first};
use crate::serialized::{SerializedWrite, lock_meter};
use crate::session::GenericClient;
use crate::{ledger, quotes};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};

fn select(condition: &str) -> String {
    format!("SELECT {ACCOUNT_COLUMNS} FROM account a JOIN meter m ON m.account = a.id WHERE {condition}")
}

/// The account with this id, and its row number.
pub(crate) async fn by_id<C: GenericClient>(client: &C, id: &AccountId) -> Result<Option<(i64, Account)>> {
    first(client, &select("a.org_id = $1"), &[&id.as_str()]).await?.as_ref().map(account).transpose()
}

/// Like [`by_id`], but also locks the account's meter until the transaction ends, so no charge can come in between.
pub(crate) async fn locked<C: GenericClient>(client: &C, id: &AccountId) -> Result<Option<(i64, Account)>> {
    let Some(row) = first(client, "SELECT id FROM account WHERE org_id = $1", &[&id.as_str()]).await? else {
        return Ok(None);
    };
    lock_meter(client, row.try_get(0)?).await?;
    by_id(client, id).await
}

/// The account that a live key belongs to.
pub(crate) async fn by_key<C: GenericClient>(client: &C, key: &KeyHash) -> Result<Option<Account>> {
    let condition = "a.id = (SELECT account FROM api_key WHERE hash = $1 AND revoked_at IS NULL)";
    let row = first(client, &select(condition), &[&key.as_bytes().as_slice()]).await?;
    Ok(row.as_ref().map(account).transpose()?.map(|(_, account)| account))
}

/// The account that this wallet paid for, unless it is revoked.
pub(crate) async fn by_payer<C: GenericClient>(client: &C, payer: &Address) -> Result<Option<Account>> {
    let condition = "a.payer_address = $1 AND a.revoked_at IS NULL";
    let row = first(client, &select(condition), &[&payer.as_bytes().as_slice()]).await?;
    Ok(row.as_ref().map(account).transpose()?.map(|(_, account)| account))
}

/// Whether an account that is not revoked has this email address. `false` without an address.
pub(crate) async fn email_is_taken<C: GenericClient>(client: &C, email: Option<&Email>) -> Result<bool> {
    let Some(folded) = email.map(Email::folded) else { return Ok(false) };
    exists(client, "SELECT 1 FROM account WHERE email_folded = $1 AND revoked_at IS NULL", &[&folded]).await
}

/// Whether any account has, or ever had, this key.
async fn key_is_known<C: GenericClient>(client: &C, key: &KeyHash) -> Result<bool> {
    exists(client, "SELECT 1 FROM api_key WHERE hash = $1", &[&key.as_bytes().as_slice()]).await
}

/// Which of `keys` are live, in their order.
pub(crate) async fn live_keys<C: GenericClient>(client: &C, keys: &[KeyHash]) -> Result<Vec<bool>> {
    let hashes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes().as_slice()).collect();
    let sql = "SELECT hash FROM api_key WHERE hash = ANY($1) AND revoked_at IS NULL";
    let rows = all(client, sql, &[&hashes]).await?;
    let live: HashSet<[u8; 32]> = rows.iter().map(|row| bytes(row, 0)).collect::<Result<_>>()?;
    Ok(keys.iter().map(|key| live.contains(key.as_bytes())).collect())
}

/// Accounts after a row number, at most `limit`.
pub(crate) async fn list<C: GenericClient>(client: &C, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
    let values: [i64; 2] = [row_of_cursor(after)?, one_more_than(limit)];
    let rows = all(client, &select("a.id > $1 ORDER BY a.id LIMIT $2"), &[&values[0], &values[1]]).await?;
    Ok(page_of_rows(rows.iter().map(account).collect::<Result<_>>()?, limit))
}

/// Creates an account with its key and first ledger entries.
pub(crate) async fn create(write: &SerializedWrite<'_>, new: &NewAccount) -> Result<Created> {
    let client = write.client();
    if by_id(client, &new.id).await?.is_some() || key_is_known(client, &new.key).await? {
        return Err(corrupt("the id or key of a new account is already in use"));
    }
    if email_is_taken(client, new.email.as_ref()).await? {
        return Ok(Created::EmailTaken);
    }
    if let Some(payer) = &new.payer
        && by_payer(client, &payer.address).await?.is_some()
    {
        return Ok(Created::PayerTaken);
    }
    let Some(totals) = ledger::totals_of(&new.entries) else { return Ok(Created::OutOfRange) };
    let row = write.next_id().await?;
    insert(client, row, new).await?;
    insert_meter(client, row, new.limits, totals).await?;
    give_key(client, row, &new.key, new.created_at).await?;
    for entry in &new.entries {
        ledger::append(write, row, entry, new.created_at).await?;
    }
    let made = by_id(client, &new.id).await?;
    made.map(|(_, account)| Created::Account(account)).ok_or_else(|| corrupt("an account just created is missing"))
}

async fn insert<C: GenericClient>(client: &C, row: i64, new: &NewAccount) -> Result<()> {
    let sql = "INSERT INTO account \
               (id, org_id, agent_name, email, email_folded, payer_address, payer_chain_id, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let (email, folded) = (new.email.as_ref().map(Email::as_str), new.email.as_ref().map(Email::folded));
    let payer = new.payer.as_ref().map(|payer| payer.address.as_bytes().as_slice());
    let chain_id = new.payer.map(|payer| payer.chain_id.cast_signed());
    let (name, created_at) = (new.agent_name.as_str(), new.created_at.unix_millis());
    let values: crate::rows::Values<'_> =
        &[&row, &new.id.as_str(), &name, &email, &folded, &payer, &chain_id, &created_at];
    execute(client, sql, values).await.map(drop)
}

/// Gives a key to an account that has no live one.
async fn give_key<C: GenericClient>(client: &C, account: i64, key: &KeyHash, now: Timestamp) -> Result<()> {
    let key = key.as_bytes().as_slice();
    let sql = "INSERT INTO api_key (hash, account, created_at) VALUES ($1, $2, $3)";
    execute(client, sql, &[&key, &account, &now.unix_millis()]).await?;
    execute(client, "UPDATE meter SET key = $2 WHERE account = $1", &[&account, &key]).await.map(drop)
}

async fn insert_meter<C: GenericClient>(client: &C, account: i64, limits: RateLimits, totals: Totals) -> Result<()> {
    let sql = "INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let amounts = [totals.balance, totals.purchased, totals.granted, totals.used].map(metering_core::Credits::atoms);
    let limits = [i64::from(limits.requests_per_minute), i64::from(limits.requests_per_day)];
    let values: crate::rows::Values<'_> =
        &[&account, &amounts[0], &amounts[1], &amounts[2], &amounts[3], &limits[0], &limits[1]];
    execute(client, sql, values).await.map(drop)
}

pub(crate) async fn set_limits(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    limits: RateLimits,
) -> Result<Option<Account>> {
    let client = write.client();
    let Some((row, account)) = locked(client, id).await? else { return Ok(None) };
    let sql = "UPDATE meter SET requests_per_minute = $2, requests_per_day = $3 WHERE account = $1";
    let per = [i64::from(limits.requests_per_minute), i64::from(limits.requests_per_day)];
    execute(client, sql, &[&row, &per[0], &per[1]]).await?;
    Ok(Some(Account { limits, ..account }))
}

pub(crate) async fn revoke(write: &SerializedWrite<'_>, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
    let client = write.client();
    let Some((row, account)) = locked(client, id).await? else { return Ok(None) };
    if account.revoked_at.is_some() {
        return Ok(Some(account));
    }
    execute(client, "UPDATE account SET revoked_at = $2 WHERE id = $1", &[&row, &now.unix_millis()]).await?;
    revoke_keys(client, row, now).await?;
    Ok(Some(Account { revoked_at: Some(now), ..account }))
}

async fn revoke_keys<C: GenericClient>(client: &C, account: i64, now: Timestamp) -> Result<()> {
    let sql = "UPDATE api_key SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";
    execute(client, sql, &[&account, &now.unix_millis()]).await?;
    execute(client, "UPDATE meter SET key = NULL WHERE account = $1", &[&account]).await.map(drop)
}

/// Replaces an account's key. The new key also counts as delivery of the key that the account's quote promised.
pub(crate) async fn replace_key(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    key: &KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let client = write.client();
    match locked(client, id).await? {
        Some((row, account)) if account.revoked_at.is_none() => {
            if key_is_known(client, key).await? {
                return Err(corrupt("a new key is already in use"));
            }
            revoke_keys(client, row, now).await?;
            quotes::key_given_out(client, row).await?;
            give_key(client, row, key, now).await?;
            Ok(Some(account))
        }
        _ => Ok(None),
    }
}
