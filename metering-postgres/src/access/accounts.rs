use metering_core::access::{Email, Key, KeyHash, KeyHolder, Totals};
use metering_core::backend::decision::{
    self, CreateChanges, CreateFacts, Decided, KeyChangeFacts, KeyChanges, KeyFacts, KeyWrite, MeterWrite, OldSecrets,
};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::Address;
use metering_core::money::{BalanceAlert, NewLedgerEntry};
use metering_core::store::{Created, Cursor, KeyChange, Page, Posted};
use metering_core::{Account, AccountId, Credits, Day, NewAccount, RateLimits, Timestamp};
use tokio_postgres::Row;

use crate::access::{key_writes, keys, owners};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::outbox;
use crate::money::ledger;
use crate::payments::quotes;
use crate::rows::{ACCOUNT_COLUMN_COUNT, ACCOUNT_COLUMNS, Values, account, all, email_columns, execute, exists, first};
use crate::transactions::serialized::{SerializedWrite, lock_meter};

/// The row number of an account, the account, and the day it was last processed for a refill.
pub(crate) type Turn = (i64, (Account, Option<Day>));

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
    let sql = "SELECT 1 FROM account WHERE org_id = $1 UNION ALL SELECT 1 FROM key_secret WHERE hash = $2";
    let values: Values<'_> = &[&new.id.as_str(), &new.key.as_bytes().as_slice()];
    let id_or_key_in_use = exists(client, sql, values).await?;
    let payer = new.payer.as_ref().map(|payer| &payer.address);
    Ok(CreateFacts { id_or_key_in_use, owner: owners::owner_facts(client, new.email.as_ref(), payer).await? })
}

/// What is read before the keys of an account are replaced. Locks the account's meter.
pub(crate) async fn key_facts<C: GenericClient>(client: &C, id: &AccountId, key: &KeyHash) -> Result<KeyFacts<i64>> {
    let account = locked(client, id).await?;
    let keys = match &account {
        Some((row, account)) => keys::of_account(client, *row, &account.id).await?,
        None => Vec::new(),
    };
    let keys = keys.into_iter().filter(|key| key.revoked_at.is_none()).collect();
    Ok(KeyFacts { account, keys, key_in_use: keys::is_used(client, key).await? })
}

/// Accounts after a row number, at most `limit`.
pub(crate) async fn list<C: GenericClient>(client: &C, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
    let values: [i64; 2] = [row_of_cursor(after)?, one_more_than(limit)];
    let rows = all(client, &select("a.id > $1 ORDER BY a.id LIMIT $2"), &[&values[0], &values[1]]).await?;
    Ok(page_of_rows(rows.iter().map(account).collect::<Result<_>>()?, limit))
}

/// Accounts after a row number, at most `limit`, with the day each was last processed for a refill.
pub(crate) async fn turns_after<C: GenericClient>(client: &C, after: i64, limit: i64) -> Result<Vec<Turn>> {
    let sql = format!(
        "SELECT {ACCOUNT_COLUMNS}, a.refilled_on FROM account a JOIN meter m ON m.account = a.id WHERE a.id > $1 \
         ORDER BY a.id LIMIT $2"
    );
    let read = |row: &Row| {
        let day = row.try_get::<_, Option<i64>>(ACCOUNT_COLUMN_COUNT)?.map(Day::from_unix_days);
        account(row).map(|(id, account)| (id, (account, day)))
    };
    all(client, &sql, &[&after, &limit]).await?.iter().map(read).collect()
}

/// The accounts with these row numbers, in their order. Locks their meters, in the order in which charges lock them.
pub(crate) async fn all_locked<C: GenericClient>(client: &C, rows: &[i64]) -> Result<Vec<(i64, Account)>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT account FROM meter WHERE account = ANY($1) ORDER BY account FOR UPDATE";
    all(client, sql, &[&rows]).await?;
    let rows = all(client, &select("a.id = ANY($1) ORDER BY a.id"), &[&rows]).await?;
    rows.iter().map(account).collect()
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
    let CreateChanges { account, key, entries, events } = changes;
    let (client, row) = (write.client(), write.next_id().await?);
    insert_account(client, row, account).await?;
    insert_meter(client, row, account.limits, account.totals).await?;
    let first = KeyWrite {
        row,
        key: Key::first(account.id.clone(), key, account.created_at),
        old_secrets: OldSecrets::Keep,
        secret: Some(*key),
        meter: MeterWrite::Keep,
        written_at: account.created_at,
        // It is among the events of the account.
        event: None,
    };
    key_writes::write_key(write, first).await?;
    for entry in entries {
        ledger::append(write, row, entry, account.created_at).await?;
    }
    outbox::write(client, row, events).await?;
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

async fn insert_meter<C: GenericClient>(client: &C, account: i64, limits: RateLimits, totals: Totals) -> Result<()> {
    let sql = "INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let amounts = [totals.balance, totals.purchased, totals.granted, totals.used].map(Credits::atoms);
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

/// Sets the threshold of the balance alert.
pub(crate) async fn set_alert(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    threshold: Option<Credits>,
) -> Result<Option<Account>> {
    let client = write.client();
    let Some((row, account)) = locked(client, id).await? else { return Ok(None) };
    let alert = account.alert.with_threshold(threshold, account.totals.unspent());
    write_alert(client, row, alert).await?;
    Ok(Some(Account { alert, ..account }))
}

/// Writes the balance alert. The account's meter is locked.
pub(crate) async fn write_alert<C: GenericClient>(client: &C, row: i64, alert: BalanceAlert) -> Result<()> {
    let sql = "UPDATE meter SET alert_below = $2::BIGINT, alert_raised = $3::BIGINT WHERE account = $1";
    let (threshold, raised) = (alert.threshold.map(Credits::atoms), i64::from(alert.raised.number()));
    execute(client, sql, &[&row, &threshold, &raised]).await.map(drop)
}

pub(crate) async fn revoke(write: &SerializedWrite<'_>, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
    let client = write.client();
    let (row, account) = match decision::revoke_account(locked(client, id).await?, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    execute(client, "UPDATE account SET revoked_at = $2 WHERE id = $1", &[&row, &now.unix_millis()]).await?;
    let sql = "UPDATE key_secret SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";
    execute(client, sql, &[&row, &now.unix_millis()]).await?;
    key_writes::draw_access(client, row).await?;
    Ok(Some(account))
}

/// Replaces the keys of an account that can manage keys.
pub(crate) async fn replace_key(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let facts = key_facts(write.client(), id, &key).await?;
    match decision::replace_key(facts, key, now)? {
        Some(changes) => write_keys(write, changes).await.map(Some),
        None => Ok(None),
    }
}

/// Rotates the key that has a secret, if that is live. Other writes wait, so it stays live until then.
pub(crate) async fn replace_live_key(
    write: &SerializedWrite<'_>,
    old: &KeyHash,
    secret: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let client = write.client();
    let holder = keys::holder(client, old).await?.filter(|holder| holder.is_live(now));
    let Some(KeyHolder { account: Account { id, .. }, chain, .. }) = holder else { return Ok(None) };
    let secret_in_use = keys::is_used(client, &secret).await?;
    let account = locked(client, &id).await?;
    let (meter, spent, keys) = (None, Credits::ZERO, Vec::new());
    let facts = KeyChangeFacts { account: account.clone(), chain, meter, spent, keys, secret_in_use };
    match decision::change_key(facts, None, KeyChange::Rotate { secret, old_until: None }, now) {
        Decided::Accepted(changes) => {
            quotes::key_given_out(client, changes.key.row).await?;
            key_writes::write_change(write, changes).await?;
            Ok(account.map(|(_, account)| account))
        }
        Decided::Refused(_) => Ok(None),
    }
}

/// Writes an account's new keys. This also counts as delivery of the key that the account's quote promised.
pub(crate) async fn write_keys(write: &SerializedWrite<'_>, changes: KeyChanges<i64>) -> Result<Account> {
    let KeyChanges { row, account, keys, replaced_at: _ } = changes;
    quotes::key_given_out(write.client(), row).await?;
    for change in keys {
        key_writes::write_key(write, change).await?;
    }
    Ok(account)
}
