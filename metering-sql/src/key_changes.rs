//! Creates and changes keys. Each write locks the meter of the account before it reads anything of it.

use metering_core::access::{Key, KeyHash, KeyHolder, KeyId, KeyNumber};
use metering_core::backend::credits;
use metering_core::backend::decision::{self, Decided, KeyChangeFacts, KeyChangeWrites, KeyWrite, NewKeyFacts};
use metering_core::charging::RateWindows;
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, NewKey};
use metering_core::{Account, AccountId, Credits, Day, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::lineage::Lineage;
use crate::{accounts, keys, quotes, usage, values};

/// Creates a key.
pub async fn create(db: &mut dyn Executor, new: &NewKey) -> Result<KeyCreated> {
    let facts = new_key_facts(db, new).await?;
    match decision::create_key(new.clone(), facts) {
        Decided::Accepted(change) => write_one(db, change).await.map(KeyCreated::Key),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

async fn new_key_facts(db: &mut dyn Executor, new: &NewKey) -> Result<NewKeyFacts<i64>> {
    let owner_of_secret = keys::of_secret(db, &new.secret).await?;
    let Some((row, account)) = accounts::locked(db, &new.account).await? else {
        let (parents, next) = (Vec::new(), KeyNumber::FIRST);
        return Ok(NewKeyFacts { account: None, parents, owner_of_secret, count: 0, next });
    };
    let parent = match &new.parent {
        Some(id) => keys::by_id(db, row, id).await?.map(|(key, _)| key.number),
        None => Some(KeyNumber::FIRST),
    };
    let parents = match parent {
        Some(parent) => keys::chain(db, row, parent).await?,
        None => Vec::new(),
    };
    let (count, next) = keys::count_and_next(db, row, new.created_at).await?;
    Ok(NewKeyFacts { account: Some((row, account)), parents, owner_of_secret, count, next })
}

/// Changes a key.
pub async fn change(
    db: &mut dyn Executor,
    account: &AccountId,
    id: &KeyId,
    actor: Option<&KeyId>,
    change: &KeyChange,
    now: Timestamp,
) -> Result<KeyChanged> {
    let facts = change_facts(db, account, id, change, now).await?;
    match decision::change_key(facts, actor, change.clone(), now) {
        Decided::Accepted(writes) => write_change(db, writes).await.map(KeyChanged::Key),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

async fn change_facts(
    db: &mut dyn Executor,
    id: &AccountId,
    key: &KeyId,
    change: &KeyChange,
    now: Timestamp,
) -> Result<KeyChangeFacts<i64>> {
    let secret_in_use = match change {
        KeyChange::Rotate { secret, .. } => keys::is_secret_in_use(db, secret).await?,
        KeyChange::Terms(_) | KeyChange::Revoke => false,
    };
    let account = accounts::locked(db, id).await?;
    let (chain, children) = (Vec::new(), Vec::new());
    let mut facts = KeyChangeFacts { account, chain, meter: None, spent: Credits::ZERO, keys: children, secret_in_use };
    let Some((row, _)) = facts.account else { return Ok(facts) };
    let Some((key, meter)) = keys::by_id(db, row, key).await? else { return Ok(facts) };
    facts.chain = keys::chain(db, row, key.number).await?;
    facts.meter = meter;
    if let Some(since) = decision::budget_period(&key.terms, change, now) {
        facts.spent = spent_since(db, row, key.number, since).await?;
    }
    if decision::revokes_below(&key, change) {
        facts.keys = keys::all_unrevoked(db, row).await?;
    }
    Ok(facts)
}

/// Makes the key of a secret that works unusable until it is rotated.
pub async fn report_leaked(db: &mut dyn Executor, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
    let Some((row, number, ends_at)) = keys::working_secret(db, secret, now).await? else { return Ok(None) };
    let account = accounts::locked_row(db, row).await?;
    if account.revoked_at.is_some() {
        return Ok(None);
    }
    let key = keys::by_number(db, row, number).await?;
    write_one(db, decision::report_leaked(row, key, ends_at.is_some(), now)).await.map(Some)
}

/// Rotates the key that has the secret `old`, if that works.
pub async fn replace_live(
    db: &mut dyn Executor,
    old: &KeyHash,
    secret: &KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some((row, number, secret_expires_at)) = keys::working_secret(db, old, now).await? else { return Ok(None) };
    let account = accounts::locked_row(db, row).await?;
    if account.revoked_at.is_some() {
        return Ok(None);
    }
    let chain = keys::chain(db, row, number).await?;
    let key_windows = vec![RateWindows::default(); chain.len()];
    // Rate limits do not matter here.
    let holder = KeyHolder { account, chain, secret_expires_at, windows: RateWindows::default(), key_windows };
    if !holder.is_live(now) {
        return Ok(None);
    }
    let KeyHolder { account, chain, .. } = holder;
    let secret_in_use = keys::is_secret_in_use(db, secret).await?;
    let (found, spent, children) = (Some((row, account.clone())), Credits::ZERO, Vec::new());
    let facts = KeyChangeFacts { account: found, chain, meter: None, spent, keys: children, secret_in_use };
    let rotate = KeyChange::Rotate { secret: *secret, old_until: None };
    match decision::change_key(facts, None, rotate, now) {
        Decided::Accepted(writes) => {
            quotes::key_given_out(db, row).await?;
            write_change(db, writes).await?;
            Ok(Some(account))
        }
        Decided::Refused(_) => Ok(None),
    }
}

/// Writes a changed key, and those that are revoked with it.
async fn write_change(db: &mut dyn Executor, writes: KeyChangeWrites<i64>) -> Result<Key> {
    for below in &writes.below {
        keys::write(db, below).await?;
    }
    write_one(db, writes.key).await
}

async fn write_one(db: &mut dyn Executor, write: KeyWrite<i64>) -> Result<Key> {
    keys::write(db, &write).await?;
    db.settings_changed(write.row).await?;
    Ok(write.key)
}

/// The amounts and keys of an account's open holds since a given time.
pub const OPEN_HOLDS: &str =
    "SELECT key, amount FROM hold WHERE account = ?1 AND created_at >= ?2 AND settled_at IS NULL";

/// The charges of a key and its children since a day, minus refunds, and the credits that their requests since then
/// hold.
async fn spent_since(db: &mut dyn Executor, account: i64, key: KeyNumber, since: Day) -> Result<Credits> {
    let below = Lineage::read(db, account).await?.below(key);
    let charged = usage::of_keys(db, account, &below, since).await?;
    let charged: i128 = charged.iter().filter(|part| below.contains(&part.key)).map(|part| part.atoms).sum();
    let mut held = 0;
    for row in db.query(OPEN_HOLDS, &values![account, since.start()]).await? {
        if below.contains(&row.get(0)?) {
            held += i128::from(row.get::<i64>(1)?);
        }
    }
    Ok(credits(charged + held)?)
}
