use std::collections::HashSet;

use metering_core::access::{Email, KeyHash, Totals};
use metering_core::backend::decision::{self, CreateChanges, CreateFacts, Decided, KeyChanges, KeyFacts};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::Address;
use metering_core::money::NewLedgerEntry;
use metering_core::store::{Created, Cursor, Page, Posted};
use metering_core::{Account, AccountId, NewAccount, RateLimits, Timestamp};

use crate::access::owners;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::ledger;
use crate::payments::quotes;
use crate::rows::{ACCOUNT_COLUMNS, Values, account, all, bytes, email_columns, execute, exists, first};
use crate::transactions::serialized::{SerializedWrite, lock_meter};

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

/// The account that holds this email address, unless it is revoked.
pub(crate) async fn by_email<C: GenericClient>(client: &C, email: &Email) -> Result<Option<Account>> {
    let condition = "a.email_folded = $1 AND a.revoked_at IS NULL";
    let row = first(client, &select(condition), &[&email.folded()]).await?;
    Ok(row.as_ref().map(account).transpose()?.map(|(_, account)| account))
}

/// What is read before an account is created.
pub(crate) async fn create_facts<C: GenericClient>(client: &C, new: &NewAccount) -> Result<CreateFacts> {
    let sql = "SELECT 1 FROM account WHERE org_id = $1 UNION ALL SELECT 1 FROM api_key WHERE hash = $2";
    let values: Values<'_> = &[&new.id.as_str(), &new.key.as_bytes().as_slice()];
    let id_or_key_in_use = exists(client, sql, values).await?;
    let payer = new.payer.as_ref().map(|payer| &payer.address);
    Ok(CreateFacts { id_or_key_in_use, owner: owners::owner_facts(client, new.email.as_ref(), payer).await? })
}

/// What is read before an account's key is replaced. Locks the account's meter.
pub(crate) async fn key_facts<C: GenericClient>(client: &C, id: &AccountId, key: &KeyHash) -> Result<KeyFacts<i64>> {
    let account = locked(client, id).await?;
    let key_in_use = exists(client, "SELECT 1 FROM api_key WHERE hash = $1", &[&key.as_bytes().as_slice()]).await?;
    Ok(KeyFacts { account, key_in_use })
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
pub(crate) async fn create(write: &SerializedWrite<'_>, new: NewAccount) -> Result<Created> {
    let facts = create_facts(write.client(), &new).await?;
    match decision::create_account(new, facts)? {
        Decided::Accepted(changes) => insert(write, &changes).await.map(|_| Created::Account(changes.account)),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Posts an entry to an account that is not revoked.
pub(crate) async fn post_entry(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    entry: NewLedgerEntry,
    now: Timestamp,
) -> Result<Posted> {
    match decision::post_entry(locked(write.client(), id).await?, entry, now) {
        Decided::Accepted(changes) => ledger::write(write, &changes).await.map(|()| Posted::Account(changes.account)),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Inserts an account with its key and first ledger entries, and returns its row number.
pub(crate) async fn insert(write: &SerializedWrite<'_>, changes: &CreateChanges) -> Result<i64> {
    let CreateChanges { account, key, entries } = changes;
    let (client, row) = (write.client(), write.next_id().await?);
    insert_account(client, row, account).await?;
    insert_meter(client, row, account.limits, account.totals).await?;
    give_key(client, row, key, account.created_at).await?;
    for entry in entries {
        ledger::append(write, row, entry, account.created_at).await?;
    }
    Ok(row)
}

async fn insert_account<C: GenericClient>(client: &C, row: i64, account: &Account) -> Result<()> {
    let sql = "INSERT INTO account \
               (id, org_id, agent_name, email, email_folded, payer_address, payer_chain_id, created_at, email_credits, \
               email_verified_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let (email, folded) = (account.email.as_ref().map(Email::as_str), account.held_email().map(Email::folded));
    let (credits, verified_at) = email_columns(account.email_status);
    let payer = account.payer.as_ref().map(|payer| payer.address.as_bytes().as_slice());
    let chain_id = account.payer.map(|payer| payer.chain_id.cast_signed());
    let (id, name, created_at) = (account.id.as_str(), account.agent_name.as_str(), account.created_at.unix_millis());
    let values: Values<'_> =
        &[&row, &id, &name, &email, &folded, &payer, &chain_id, &created_at, &credits, &verified_at];
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
    let values: Values<'_> = &[&account, &amounts[0], &amounts[1], &amounts[2], &amounts[3], &limits[0], &limits[1]];
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
    let (row, account) = match decision::revoke_account(locked(client, id).await?, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    execute(client, "UPDATE account SET revoked_at = $2 WHERE id = $1", &[&row, &now.unix_millis()]).await?;
    revoke_keys(client, row, now).await?;
    Ok(Some(account))
}

async fn revoke_keys<C: GenericClient>(client: &C, account: i64, now: Timestamp) -> Result<()> {
    let sql = "UPDATE api_key SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";
    execute(client, sql, &[&account, &now.unix_millis()]).await?;
    execute(client, "UPDATE meter SET key = NULL WHERE account = $1", &[&account]).await.map(drop)
}

/// Replaces an account's key.
pub(crate) async fn replace_key(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let facts = key_facts(write.client(), id, &key).await?;
    match decision::replace_key(facts, key, now)? {
        Some(changes) => write_key(write, changes).await.map(Some),
        None => Ok(None),
    }
}

/// Replaces a key that is live. Other writes wait, so it stays live until then.
pub(crate) async fn replace_live_key(
    write: &SerializedWrite<'_>,
    old: &KeyHash,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    match by_key(write.client(), old).await? {
        Some(account) => replace_key(write, &account.id, key, now).await,
        None => Ok(None),
    }
}

/// Writes an account's new key. It also counts as delivery of the key that the account's quote promised.
pub(crate) async fn write_key(write: &SerializedWrite<'_>, changes: KeyChanges<i64>) -> Result<Account> {
    let (client, KeyChanges { row, account, key, replaced_at }) = (write.client(), changes);
    revoke_keys(client, row, replaced_at).await?;
    quotes::key_given_out(client, row).await?;
    give_key(client, row, &key, replaced_at).await?;
    Ok(account)
}
