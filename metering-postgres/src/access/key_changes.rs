//! Creates and changes keys. Each write locks the meter of the account before it reads anything of it.

use metering_core::access::{Key, KeyHash, KeyId, KeyNumber};
use metering_core::backend::credits;
use metering_core::backend::decision::{self, Decided, KeyChangeFacts, NewKeyFacts};
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, NewKey};
use metering_core::{AccountId, Credits, Day, Timestamp};

use crate::access::accounts;
use crate::access::key_writes::{write_change, write_key};
use crate::access::keys::{self, Lineage};
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{KEY_METER_COLUMNS, all, exists, first, one, optional_key_meter};
use crate::transactions::serialized::{SerializedWrite, lock_meter};

pub(crate) async fn create(write: &SerializedWrite<'_>, new: NewKey) -> Result<KeyCreated> {
    let client = write.client();
    let account = accounts::locked(client, &new.account).await?;
    let keys = match &account {
        Some((row, account)) => keys::of_account(client, *row, &account.id).await?,
        None => Vec::new(),
    };
    let parent = match &new.parent {
        Some(id) => keys.iter().find(|key| key.id == *id).map(|key| key.number),
        None => Some(KeyNumber::FIRST),
    };
    let counts = |key: &Key| key.revoked_at.is_none() && key.terms.expires_at.is_none_or(|at| new.created_at < at);
    let facts = NewKeyFacts {
        account,
        parents: parent.map_or_else(Vec::new, |parent| chain(&keys, parent)),
        owner_of_secret: keys::of_secret(client, &new.secret).await?,
        count: count(keys.iter().filter(|key| counts(key)).count()),
        next: KeyNumber::new(keys.last().map_or(0, |last| last.number.get().saturating_add(1))),
    };
    match decision::create_key(new, facts) {
        Decided::Accepted(change) => write_key(write, change).await.map(KeyCreated::Key),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

pub(crate) async fn change(
    write: &SerializedWrite<'_>,
    account: &AccountId,
    id: &KeyId,
    actor: Option<&KeyId>,
    change: KeyChange,
    now: Timestamp,
) -> Result<KeyChanged> {
    let facts = change_facts(write, account, id, &change, now).await?;
    match decision::change_key(facts, actor, change, now) {
        Decided::Accepted(changes) => write_change(write, changes).await.map(KeyChanged::Key),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

pub(crate) async fn report_leaked(
    write: &SerializedWrite<'_>,
    secret: &KeyHash,
    now: Timestamp,
) -> Result<Option<Key>> {
    // Other writes wait, so the secret works until this one has written.
    let client = write.client();
    let Some((row, key)) = keys::of_working_secret(client, secret, now).await? else { return Ok(None) };
    lock_meter(client, row).await?;
    let sql = "SELECT 1 FROM key_secret WHERE hash = $1 AND expires_at IS NOT NULL";
    let is_replaced = exists(client, sql, &[&secret.as_bytes().as_slice()]).await?;
    write_key(write, decision::report_leaked(row, key, is_replaced, now)).await.map(Some)
}

async fn change_facts(
    write: &SerializedWrite<'_>,
    id: &AccountId,
    key: &KeyId,
    change: &KeyChange,
    now: Timestamp,
) -> Result<KeyChangeFacts<i64>> {
    let client = write.client();
    let secret_in_use = match change {
        KeyChange::Rotate { secret, .. } => keys::is_used(client, secret).await?,
        KeyChange::Terms(_) | KeyChange::Revoke => false,
    };
    let account = accounts::locked(client, id).await?;
    let (chain_of_key, keys) = (Vec::new(), Vec::new());
    let mut facts =
        KeyChangeFacts { account, chain: chain_of_key, meter: None, spent: Credits::ZERO, keys, secret_in_use };
    let Some((row, account)) = &facts.account else { return Ok(facts) };
    let keys = keys::of_account(client, *row, &account.id).await?;
    let Some(key) = keys.iter().find(|of_account| of_account.id == *key) else { return Ok(facts) };
    let sql = format!("SELECT {KEY_METER_COLUMNS} FROM key_meter c WHERE c.account = $1 AND c.key = $2");
    let meter = first(client, &sql, &[row, &i64::from(key.number.get())]).await?;
    facts.meter = meter.as_ref().map(|row| optional_key_meter(row, 0)).transpose()?.flatten();
    if let Some(since) = decision::budget_period(&key.terms, change, now) {
        facts.spent = spent_since(client, *row, &Lineage::of(&keys).below(key.number), since).await?;
    }
    facts.chain = chain(&keys, key.number);
    if decision::revokes_below(key, change) {
        facts.keys = keys.iter().filter(|key| key.revoked_at.is_none()).cloned().collect();
    }
    Ok(facts)
}

/// A key and the keys above it. `keys` are all of an account, by number.
fn chain(keys: &[Key], number: KeyNumber) -> Vec<Key> {
    let at = |number| keys.binary_search_by_key(&number, |key| key.number).ok().map(|place| keys[place].clone());
    std::iter::successors(at(number), |key| key.parent.and_then(at)).collect()
}

/// What was charged with these keys of an account since a day, including its tail, and what they hold since that day. The
/// account's meter is locked.
async fn spent_since<C: GenericClient>(client: &C, account: i64, keys: &[KeyNumber], since: Day) -> Result<Credits> {
    let numbers: Vec<i64> = keys.iter().map(|key| key.get().into()).collect();
    let sql = format!("SELECT {SUM} FROM usage_daily WHERE account = $1 AND day >= $2 AND key = ANY($3)");
    let rows = all(client, &sql, &[&account, &since.unix_days(), &numbers]).await?;
    let mut atoms = rows.iter().map(|row| wide_sum(row, 0)).sum::<Result<i128>>()?;
    let tail = one(client, "SELECT tail_day, tail FROM meter WHERE account = $1", &[&account]).await?;
    let tail = Tail::of_row(&tail, 0)?;
    if tail.day.is_some_and(|day| day >= since.unix_days()) {
        let totals = tail.totals()?;
        atoms += totals.iter().filter(|((_, key), _)| keys.contains(key)).map(|(_, (_, atoms))| atoms).sum::<i128>();
    }
    let held = format!(
        "SELECT {SUM} FROM hold WHERE account = $1 AND created_at >= $2 AND key = ANY($3) AND settled_at IS NULL"
    );
    atoms += wide_sum(&one(client, &held, &[&account, &since.start().unix_millis(), &numbers]).await?, 0)?;
    Ok(credits(atoms)?)
}

fn count(keys: usize) -> u32 {
    u32::try_from(keys).unwrap_or(u32::MAX)
}
