//! Creates, changes, rotates and revokes keys.

use std::collections::BTreeMap;

use super::{Decided, active};
use crate::access::account::Account;
use crate::access::budget::{Budget, Spent};
use crate::access::issued_key::Key;
use crate::access::key::KeyHash;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_terms::KeyTerms;
use crate::access::scope::Scope;
use crate::charging::key_meter::{KeyMeter, remaining};
use crate::clock::{Day, Timestamp};
use crate::events::event::NewEvent;
use crate::events::event_data::{EventData, KeyEvent};
use crate::money::alert::AlertLevel;
use crate::money::credits::Credits;
use crate::store::{KeyChange, KeyChanged, KeyCreated, NewKey, TermsChange};

/// A key to insert or to update, with its related rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyWrite<K> {
    /// The account's row.
    pub row: K,
    /// The key after the change. If it was just created, it is not stored yet.
    pub key: Key,
    /// The change to its existing secrets. Applied before the new one is inserted.
    pub old_secrets: OldSecrets,
    /// The hash of a new secret to insert.
    pub secret: Option<KeyHash>,
    /// The key's meter.
    pub meter: MeterWrite,
    /// When.
    pub written_at: Timestamp,
    /// The event to write, if any.
    pub event: Option<NewEvent>,
}

/// The change to the working secrets of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldSecrets {
    /// They keep working.
    Keep,
    /// They are revoked.
    Revoke,
    /// They work until then, if not for a shorter time already.
    ExpireAt(Timestamp),
    /// Secrets that were replaced with a grace period are revoked.
    EndGrace,
}

/// The change to a key's meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterWrite {
    /// It does not change.
    Keep,
    /// It is inserted, or replaced.
    Set(KeyMeter),
    /// It is deleted: the key is no longer counted.
    Remove,
}

/// The rows read before a key is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKeyFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// The key that makes it and its parent keys, up to the first one; empty when the account has no such key.
    /// For an operator, the account's first key.
    pub parents: Vec<Key>,
    /// The key that has, or had, the secret.
    pub owner_of_secret: Option<Key>,
    /// How many keys of the account are neither revoked nor expired when the new one is created.
    pub count: u32,
    /// The number of the next key.
    pub next: KeyNumber,
}

/// The keys to write for a change of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChangeWrites<K> {
    /// The key itself.
    pub key: KeyWrite<K>,
    /// The child keys that are revoked with it.
    pub below: Vec<KeyWrite<K>>,
}

/// The rows read before a key is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChangeFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// The key and its parent keys, up to the first one; empty when the account has no such key.
    pub chain: Vec<Key>,
    /// Its meter, if there is one.
    pub meter: Option<KeyMeter>,
    /// The daily totals and open holds of the key and its child keys since [`budget_period`], added up; zero if that is
    /// `None`.
    pub spent: Credits,
    /// The keys of the account that are not revoked; empty unless [`revokes_below`].
    pub keys: Vec<Key>,
    /// Any key has, or ever had, the new secret.
    pub secret_in_use: bool,
}

/// Decides [`KeyStore::create_key`](crate::store::KeyStore::create_key).
///
/// Refused, in this order: [`KeyCreated::NoSuchAccount`], [`KeyCreated::NoSuchParent`], [`KeyCreated::SecretUsed`],
/// [`KeyCreated::TooDeep`], [`KeyCreated::TooMany`], [`KeyCreated::Wider`]. If the same parent made a key with this
/// secret before, and it is not revoked, that is the outcome in place of the third.
pub fn create_key<K>(new: NewKey, facts: NewKeyFacts<K>) -> Decided<KeyWrite<K>, KeyCreated> {
    let refused = Decided::Refused;
    let Some((row, _)) = active(facts.account) else { return refused(KeyCreated::NoSuchAccount) };
    let NewKey { account, parent: maker, secret, terms, max_keys, created_at } = new;
    let Some(parent) = facts.parents.first() else { return refused(KeyCreated::NoSuchParent) };
    if maker.is_some() && !may_manage(&facts.parents, created_at) {
        return refused(KeyCreated::NoSuchParent);
    }
    match facts.owner_of_secret {
        Some(key) if key.account == account && key.parent == Some(parent.number) && key.revoked_at.is_none() => {
            return refused(KeyCreated::Key(key));
        }
        Some(_) => return refused(KeyCreated::SecretUsed),
        None => {}
    }
    if facts.parents.len() >= Key::MAX_DEPTH {
        return refused(KeyCreated::TooDeep);
    }
    if facts.count >= max_keys {
        return refused(KeyCreated::TooMany);
    }
    let terms = terms.completed_from(&parent.terms);
    if let Err(wider) = terms.check_within(&parent.terms) {
        return refused(KeyCreated::Wider(wider));
    }
    let meter = match terms.budget {
        Some(budget) => MeterWrite::Set(new_meter(&budget, created_at)),
        None if terms.is_counted() => MeterWrite::Set(KeyMeter::default()),
        None => MeterWrite::Keep,
    };
    let (number, parent) = (facts.next, Some(parent.number));
    let key = Key { number, parent, terms, ..Key::first(account, &secret, created_at) };
    let (old_secrets, secret) = (OldSecrets::Keep, Some(secret));
    let event = Some(of_key(&key, EventData::KeyCreated, created_at));
    Decided::Accepted(KeyWrite { row, key, old_secrets, secret, meter, written_at: created_at, event })
}

/// The event of a key.
fn of_key(key: &Key, what: impl FnOnce(KeyEvent) -> EventData, now: Timestamp) -> NewEvent {
    NewEvent { account: Some(key.account.clone()), data: what(key.into()), created_at: now }
}

fn new_meter(budget: &Budget, now: Timestamp) -> KeyMeter {
    KeyMeter { spent: Spent { since: budget.first_day(now.day()), amount: Credits::ZERO }, ..KeyMeter::default() }
}

/// Decides [`KeyStore::change_key`](crate::store::KeyStore::change_key).
///
/// Refused, in this order: [`KeyChanged::NoSuchKey`], [`KeyChanged::SecretUsed`], [`KeyChanged::FirstKey`],
/// [`KeyChanged::Leaked`], [`KeyChanged::NoLimit`], [`KeyChanged::Wider`].
///
/// When a key is revoked, so are its child keys. When a leaked key gets a new secret, its child keys are revoked too,
/// because the finder may have made them.
pub fn change_key<K: Copy>(
    facts: KeyChangeFacts<K>,
    actor: Option<&KeyId>,
    change: KeyChange,
    now: Timestamp,
) -> Decided<KeyChangeWrites<K>, KeyChanged> {
    let refused = Decided::Refused;
    let Some((row, _)) = active(facts.account) else { return refused(KeyChanged::NoSuchKey) };
    let Some(key) = facts.chain.first().filter(|key| key.revoked_at.is_none()).cloned() else {
        return refused(KeyChanged::NoSuchKey);
    };
    if let Some(actor) = actor {
        let acting = facts.chain.iter().position(|key| key.id == *actor);
        if !acting.is_some_and(|place| may_manage(&facts.chain[place..], now)) {
            return refused(KeyChanged::NoSuchKey);
        }
    }
    let changes_itself = actor == Some(&key.id);
    let below = match revokes_below(&key, &change) {
        true => below(facts.keys, key.number).map(|key| revoked(row, key, now)).collect(),
        false => Vec::new(),
    };
    let mut write = KeyWrite {
        row,
        key,
        secret: None,
        old_secrets: OldSecrets::Keep,
        meter: MeterWrite::Keep,
        written_at: now,
        event: None,
    };
    match change {
        KeyChange::Terms(change) => {
            let before = write.key.terms.clone();
            let parent = facts.chain.get(1);
            if write.key.parent.is_none() && change.takes_from_first() {
                return refused(KeyChanged::FirstKey);
            }
            if write.key.leaked_at.is_some() && change.disabled == Some(false) {
                return refused(KeyChanged::Leaked);
            }
            let Some(mut terms) = change.applied_to(before.clone()) else { return refused(KeyChanged::NoLimit) };
            if let Some(parent) = parent {
                change.complete(&mut terms, &parent.terms);
            }
            let within = parent.map_or(Ok(()), |parent| terms.check_change(&before, &parent.terms));
            // The first key has no parent: only the account restricts it.
            let narrows = changes_itself && parent.is_some();
            let within = within.and_then(|()| if narrows { terms.check_narrows(&before) } else { Ok(()) });
            if let Err(wider) = within {
                return refused(KeyChanged::Wider(wider));
            }
            write.meter = meter_after(&before, &terms, facts.meter, facts.spent, now);
            write.key.terms = terms;
        }
        KeyChange::Rotate { secret, old_until } => {
            if facts.secret_in_use {
                return refused(KeyChanged::SecretUsed);
            }
            write.key = write.key.with_secret(&secret);
            write.old_secrets = old_until.filter(|until| *until > now).map_or(OldSecrets::Revoke, OldSecrets::ExpireAt);
            write.secret = Some(secret);
        }
        KeyChange::Revoke => {
            if write.key.parent.is_none() {
                return refused(KeyChanged::FirstKey);
            }
            write = revoked(write.row, write.key, now);
        }
    }
    Decided::Accepted(KeyChangeWrites { key: write, below })
}

/// Whether a change of this key revokes its child keys. See [`KeyChangeFacts::keys`].
#[must_use]
pub const fn revokes_below(key: &Key, change: &KeyChange) -> bool {
    match change {
        KeyChange::Terms(_) => false,
        KeyChange::Rotate { .. } => key.leaked_at.is_some(),
        KeyChange::Revoke => true,
    }
}

/// The account's keys below `number`.
pub(super) fn below(keys: Vec<Key>, number: KeyNumber) -> impl Iterator<Item = Key> {
    let parents: BTreeMap<KeyNumber, Option<KeyNumber>> = keys.iter().map(|key| (key.number, key.parent)).collect();
    let above = move |key: &Key| {
        let mut chain = std::iter::successors(key.parent, |parent| parents.get(parent).copied().flatten());
        chain.any(|parent| parent == number)
    };
    keys.into_iter().filter(above)
}

/// A key to revoke together with a parent key.
pub(super) fn revoked<K>(row: K, key: Key, now: Timestamp) -> KeyWrite<K> {
    let key = Key { revoked_at: Some(now), ..key };
    let (old_secrets, meter) = (OldSecrets::Revoke, MeterWrite::Keep);
    let event = Some(of_key(&key, EventData::KeyRevoked, now));
    KeyWrite { row, key, old_secrets, secret: None, meter, written_at: now, event }
}

/// Decides [`KeyStore::report_leaked`](crate::store::KeyStore::report_leaked) for the key whose secret still works. If
/// that secret is in its grace period, only the grace period ends.
pub fn report_leaked<K>(row: K, key: Key, is_replaced: bool, now: Timestamp) -> KeyWrite<K> {
    let (leaked_at, old_secrets) = match is_replaced {
        true => (key.leaked_at, OldSecrets::EndGrace),
        false => (Some(key.leaked_at.unwrap_or(now)), OldSecrets::Revoke),
    };
    let event = (key.leaked_at != leaked_at).then(|| of_key(&key, EventData::KeyLeaked, now));
    let key = Key { leaked_at, ..key };
    KeyWrite { row, key, old_secrets, secret: None, meter: MeterWrite::Keep, written_at: now, event }
}

/// The first day of the period whose usage counts against the budget that a key has after this change; `None` when no
/// sum is needed. See [`KeyChangeFacts::spent`].
#[must_use]
pub fn budget_period(before: &KeyTerms, change: &KeyChange, now: Timestamp) -> Option<Day> {
    let KeyChange::Terms(change) = change else { return None };
    let after = change.applied_to(before.clone())?.budget?;
    let is_same = before.budget.is_some_and(|budget| budget.reset == after.reset);
    (!is_same).then(|| after.first_day(now.day()))
}

/// The meter after its terms changed.
fn meter_after(
    before: &KeyTerms,
    terms: &KeyTerms,
    meter: Option<KeyMeter>,
    spent: Credits,
    now: Timestamp,
) -> MeterWrite {
    if !terms.is_counted() {
        return if meter.is_some() { MeterWrite::Remove } else { MeterWrite::Keep };
    }
    let period = |budget: Budget| budget.reset;
    if let Some(mut meter) = meter
        && before.budget.map(period) == terms.budget.map(period)
    {
        // Counting again could move to another period, if this clock differs from the one used before.
        let Some(budget) = terms.budget else { return MeterWrite::Keep };
        let raised = meter.raised;
        meter.raised.lower(remaining(&budget, meter.spent.amount), terms.alert_below);
        return if meter.raised == raised { MeterWrite::Keep } else { MeterWrite::Set(meter) };
    }
    let since = |budget: Budget| budget.first_day(now.day());
    let spent = terms.budget.map_or_else(Spent::default, |budget| Spent { since: since(budget), amount: spent });
    MeterWrite::Set(KeyMeter { spent, raised: AlertLevel::None, ..meter.unwrap_or_default() })
}

/// Whether the first of these keys, all of a chain, is live and may manage keys.
fn may_manage(chain: &[Key], now: Timestamp) -> bool {
    let works = |key: &Key| {
        key.is_live() && key.terms.expires_at.is_none_or(|at| now < at) && key.terms.scopes.has(Scope::Manage)
    };
    chain.iter().all(works)
}

impl TermsChange {
    /// Whether it takes something from an account's first key that this must keep.
    fn takes_from_first(&self) -> bool {
        self.scopes.is_some_and(|scopes| scopes != crate::access::Scopes::ALL)
            || self.disabled == Some(true)
            || matches!(self.expires_at, Some(Some(_)))
    }

    /// Takes the terms that the change leaves unset from the parent.
    fn complete(&self, terms: &mut KeyTerms, outer: &KeyTerms) {
        let completed = terms.clone().completed_from(outer);
        if self.expires_at.is_some() {
            terms.expires_at = completed.expires_at;
        }
        if self.routes.is_some() {
            terms.routes = completed.routes;
        }
        if self.networks.is_some() {
            terms.networks = completed.networks;
        }
    }

    /// The terms after the change; `None` when a budget would have a period and no credits.
    fn applied_to(&self, terms: KeyTerms) -> Option<KeyTerms> {
        let change = self.clone();
        let limit = change.limit.unwrap_or(terms.budget.map(|budget| budget.limit));
        let reset = change.limit_reset.unwrap_or(terms.budget.and_then(|budget| budget.reset));
        if limit.is_none() && matches!(change.limit_reset, Some(Some(_))) {
            return None;
        }
        let mut limits = terms.limits;
        limits.requests_per_minute = change.requests_per_minute.unwrap_or(limits.requests_per_minute);
        limits.requests_per_day = change.requests_per_day.unwrap_or(limits.requests_per_day);
        Some(KeyTerms {
            name: change.name.unwrap_or(terms.name),
            scopes: change.scopes.unwrap_or(terms.scopes),
            routes: change.routes.unwrap_or(terms.routes),
            networks: change.networks.unwrap_or(terms.networks),
            expires_at: change.expires_at.unwrap_or(terms.expires_at),
            disabled: change.disabled.unwrap_or(terms.disabled),
            limits,
            tokens_per_minute: change.tokens_per_minute.unwrap_or(terms.tokens_per_minute),
            max_in_flight: change.max_in_flight.unwrap_or(terms.max_in_flight),
            budget: limit.map(|limit| Budget { limit, reset }),
            alert_below: change.alert_below.unwrap_or(terms.alert_below).filter(|_| limit.is_some()),
        })
    }
}

#[cfg(test)]
mod tests;
