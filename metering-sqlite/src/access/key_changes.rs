//! Creates and changes keys, and reports how far they are used up.

use std::collections::HashMap;

use metering_core::access::{Key, KeyHash, KeyId, KeyNumber, KeyStatus};
use metering_core::backend::decision::{self, Decided, KeyChangeFacts, KeyChangeWrites, KeyWrite, NewKeyFacts};
use metering_core::backend::{KeyUsageSums, one_more_than, page_of_rows, row_of_cursor};
use metering_core::store::{Cursor, KeyChange, KeyChanged, KeyCreated, NewKey, Page};
use metering_core::usage::KeyLabel;
use metering_core::{Account, AccountId, Credits, Day, Timestamp};
use metering_sql::quotes;
use rusqlite::Connection;

use crate::access::keys::{self, Metered, Secret};
use crate::access::{accounts, key_holders, key_tree};
use crate::error::Result;
use crate::journal::Snapshot;
use crate::journal::sequence::record_settings;
use crate::script::Statements;
use crate::usage::daily_totals::parts;

/// The keys of an account that are not revoked, after a cursor.
pub(crate) fn list(
    snapshot: &Snapshot<'_>,
    id: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
    today: Day,
) -> Result<Page<KeyStatus>> {
    let after = row_of_cursor(after)?;
    let Some((row, _)) = accounts::by_id(snapshot, id)? else { return Ok(page_of_rows(Vec::new(), limit)) };
    let found = keys::unrevoked(snapshot, row, id, after, one_more_than(limit))?;
    let numbers: Vec<_> = found.iter().map(|(key, _)| i64::from(key.number.get()) + 1).collect();
    Ok(page_of_rows(numbers.into_iter().zip(statuses(snapshot, row, found, today)?).collect(), limit))
}

/// One key of an account.
pub(crate) fn by_id(snapshot: &Snapshot<'_>, id: &AccountId, key: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
    let Some((row, _)) = accounts::by_id(snapshot, id)? else { return Ok(None) };
    let found = keys::by_id(snapshot, row, id, key)?;
    Ok(statuses(snapshot, row, found.into_iter().collect(), today)?.pop())
}

/// The names of all keys of an account.
pub(crate) fn labels(snapshot: &Snapshot<'_>, id: &AccountId) -> Result<Vec<KeyLabel>> {
    match accounts::by_id(snapshot, id)? {
        Some((row, _)) => keys::labels(snapshot, row),
        None => Ok(Vec::new()),
    }
}

/// Adds to keys of one account how far they are used up, in one pass over the account's usage.
fn statuses(snapshot: &Snapshot<'_>, row: i64, found: Vec<Metered>, today: Day) -> Result<Vec<KeyStatus>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut sums: HashMap<KeyNumber, KeyUsageSums> =
        found.iter().map(|(key, _)| (key.number, KeyUsageSums::new(today))).collect();
    for part in parts(snapshot, row, key_tree::ALL_DAYS)? {
        if let Some(sums) = sums.get_mut(&part.key) {
            sums.add(part.day, part.calls, part.atoms);
        }
    }
    let status = |(key, meter): Metered| {
        let above = match key.parent {
            Some(parent) => keys::chain(snapshot, row, &key.account, parent)?,
            None => Vec::new(),
        };
        let parents_are_live = above.iter().all(Key::is_live);
        let spent = key.terms.budget.and(meter).map(|meter| meter.spent);
        let usage = sums.get(&key.number).map(KeyUsageSums::usage).transpose()?.unwrap_or_default();
        Ok(KeyStatus { key, parents_are_live, spent, usage })
    };
    found.into_iter().map(status).collect()
}

/// Creates a key.
pub(crate) fn create(snapshot: &Snapshot<'_>, new: NewKey) -> Result<KeyCreated> {
    let facts = new_key_facts(snapshot, &new)?;
    match decision::create_key(new, facts) {
        Decided::Accepted(write) => change_one(snapshot, write).map(KeyCreated::Key),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

fn new_key_facts(snapshot: &Snapshot<'_>, new: &NewKey) -> Result<NewKeyFacts<i64>> {
    let owner_of_secret = key_holders::owner_of_secret(snapshot, &new.secret)?;
    let Some((row, account)) = accounts::by_id(snapshot, &new.account)? else {
        return Ok(NewKeyFacts {
            account: None,
            parents: Vec::new(),
            owner_of_secret,
            count: 0,
            next: KeyNumber::FIRST,
        });
    };
    let parent = match &new.parent {
        Some(id) => keys::by_id(snapshot, row, &account.id, id)?.map(|(key, _)| key.number),
        None => Some(KeyNumber::FIRST),
    };
    let parents = match parent {
        Some(parent) => keys::chain(snapshot, row, &account.id, parent)?,
        None => Vec::new(),
    };
    let (count, next) = keys::count_and_next(snapshot, row, new.created_at)?;
    Ok(NewKeyFacts { account: Some((row, account)), parents, owner_of_secret, count, next })
}

/// Changes a key.
pub(crate) fn change(
    snapshot: &Snapshot<'_>,
    account: &AccountId,
    id: &KeyId,
    actor: Option<&KeyId>,
    change: KeyChange,
    now: Timestamp,
) -> Result<KeyChanged> {
    let facts = key_change_facts(snapshot, account, id, &change, now)?;
    match decision::change_key(facts, actor, change, now) {
        Decided::Accepted(writes) => write_change(snapshot, writes).map(KeyChanged::Key),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

fn key_change_facts(
    snapshot: &Snapshot<'_>,
    account: &AccountId,
    id: &KeyId,
    change: &KeyChange,
    now: Timestamp,
) -> Result<KeyChangeFacts<i64>> {
    let secret_in_use = match change {
        KeyChange::Rotate { secret, .. } => keys::is_secret_in_use(snapshot, secret)?,
        KeyChange::Terms(_) | KeyChange::Revoke => false,
    };
    let (mut chain, mut meter, mut spent, mut below) = (Vec::new(), None, Credits::ZERO, Vec::new());
    let account = accounts::by_id(snapshot, account)?;
    if let Some((row, account)) = &account
        && let Some((key, counted)) = keys::by_id(snapshot, *row, &account.id, id)?
    {
        chain = keys::chain(snapshot, *row, &account.id, key.number)?;
        meter = counted;
        if let Some(first_day) = decision::budget_period(&key.terms, change, now) {
            spent = key_tree::spent_since(snapshot, *row, key.number, first_day)?;
        }
        if decision::revokes_below(&key, change) {
            below = unrevoked(snapshot, *row, &account.id)?;
        }
    }
    Ok(KeyChangeFacts { account, chain, meter, spent, keys: below, secret_in_use })
}

/// Makes the key of a secret that works unusable until it is rotated.
pub(crate) fn report_leaked(snapshot: &Snapshot<'_>, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
    let Some(Secret { account: row, key, expires_at, .. }) =
        keys::secret(snapshot, secret)?.filter(|found| found.works(now))
    else {
        return Ok(None);
    };
    let account = accounts::by_row(snapshot, row)?;
    if account.revoked_at.is_some() {
        return Ok(None);
    }
    let (key, _) = keys::by_number(snapshot, row, &account.id, key)?;
    change_one(snapshot, decision::report_leaked(row, key, expires_at.is_some(), now)).map(Some)
}

fn change_one(connection: &Connection, write: KeyWrite<i64>) -> Result<Key> {
    keys::write_key(connection, &write)?;
    record_settings(connection, write.row)?;
    Ok(write.key)
}

fn unrevoked(snapshot: &Snapshot<'_>, row: i64, account: &AccountId) -> Result<Vec<Key>> {
    Ok(keys::unrevoked(snapshot, row, account, 0, i64::MAX)?.into_iter().map(|(key, _)| key).collect())
}

fn write_change(connection: &Connection, writes: KeyChangeWrites<i64>) -> Result<Key> {
    writes.below.iter().try_for_each(|write| keys::write_key(connection, write))?;
    change_one(connection, writes.key)
}

/// Rotates the key that has the secret `old`, if that works.
pub(crate) fn replace_live(
    snapshot: &Snapshot<'_>,
    old: &KeyHash,
    secret: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some(holder) = key_holders::holder(snapshot, old)?.filter(|holder| holder.is_live(now)) else {
        return Ok(None);
    };
    let facts = KeyChangeFacts {
        account: accounts::by_id(snapshot, &holder.account.id)?,
        chain: holder.chain,
        meter: None,
        spent: Credits::ZERO,
        keys: Vec::new(),
        secret_in_use: keys::is_secret_in_use(snapshot, &secret)?,
    };
    match decision::change_key(facts, None, KeyChange::Rotate { secret, old_until: None }, now) {
        Decided::Accepted(writes) => {
            let row = writes.key.row;
            write_change(snapshot, writes)?;
            metering_sql::now(quotes::key_given_out(&mut Statements::new(snapshot), row))?;
            Ok(Some(holder.account))
        }
        Decided::Refused(_) => Ok(None),
    }
}
