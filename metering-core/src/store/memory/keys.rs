//! The keys of the memory store.

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::issued_key::{Key, KeyHolder, KeyStatus, KeyUsage};
use crate::access::key::KeyHash;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::backend::{KeyUsageSums, credits, one_more_than, page_of_rows, row_of_cursor};
use crate::charging::hold::HoldId;
use crate::charging::rate::RateWindows;
use crate::clock::{Day, Timestamp};
use crate::decision::{
    self, Decided, KeyChangeFacts, KeyChangeWrites, KeyDeletion, KeyEnd, KeyFacts, KeyWrite, MeterWrite, NewKeyFacts,
    OldSecrets,
};
use crate::money::credits::Credits;
use crate::store::{Cursor, KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, Page, StoreError};
use crate::usage::KeyLabel;

use super::MemoryStore;
use super::state::{DayTotal, Record, Secret, State, StoredKey};

#[async_trait]
impl KeyStore for MemoryStore {
    async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>, StoreError> {
        Ok(self.state()?.key_holder(secret))
    }

    async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let state = self.state()?;
        let is_live = |secret| state.key_holder(secret).is_some_and(|holder| holder.is_live(now));
        Ok(secrets.iter().map(is_live).collect())
    }

    async fn keys(
        &self,
        account: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
        today: Day,
    ) -> Result<Page<KeyStatus>, StoreError> {
        let state = self.state()?;
        let after = row_of_cursor(after)?;
        let most = usize::try_from(one_more_than(limit)).unwrap_or(usize::MAX);
        let Some(record) = state.record(account) else { return Ok(page_of_rows(Vec::new(), limit)) };
        // Numbers begin at zero, and cursors after it.
        let rows = record.keys.iter().map(|stored| (i64::from(stored.key.number.get()) + 1, stored));
        let rows = rows.filter(|(row, stored)| *row > after && stored.key.revoked_at.is_none()).take(most);
        let rows = rows.map(|(row, stored)| Ok((row, record.status(stored, today)?)));
        Ok(page_of_rows(rows.collect::<Result<_, StoreError>>()?, limit))
    }

    async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>, StoreError> {
        let state = self.state()?;
        let Some(record) = state.record(account) else { return Ok(None) };
        record.stored_key(id).map(|stored| record.status(stored, today)).transpose()
    }

    async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>, StoreError> {
        let state = self.state()?;
        let keys = state.record(account).into_iter().flat_map(|record| &record.keys);
        Ok(keys.map(|stored| KeyLabel::of(&stored.key)).collect())
    }

    async fn keys_of_request(&self, id: &HoldId) -> Result<Vec<(AccountId, KeyNumber)>, StoreError> {
        let (state, hashes) = (self.state()?, id.key_hashes());
        let is_named = |hash: &KeyHash| hashes.as_ref().is_some_and(|hashes| hashes.contains(hash));
        let secrets = state.keys.iter().filter(|(hash, _)| is_named(hash)).take(20);
        Ok(secrets.map(|(_, secret)| (state.accounts[secret.account].account.id.clone(), secret.key)).collect())
    }

    async fn create_key(&self, new: NewKey) -> Result<KeyCreated, StoreError> {
        let mut state = self.state()?;
        let facts = state.new_key_facts(&new);
        Ok(match decision::create_key(new, facts) {
            Decided::Accepted(write) => KeyCreated::Key(state.write_key(write)),
            Decided::Refused(refusal) => refusal,
        })
    }

    async fn change_key(
        &self,
        account: &AccountId,
        id: &KeyId,
        actor: Option<&KeyId>,
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyChanged, StoreError> {
        let mut state = self.state()?;
        let facts = state.key_change_facts(account, id, &change, now)?;
        Ok(match decision::change_key(facts, actor, change, now) {
            Decided::Accepted(writes) => KeyChanged::Key(state.write_change(writes)),
            Decided::Refused(refusal) => refusal,
        })
    }

    async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>, StoreError> {
        let mut state = self.state()?;
        let Some((row, number)) = state.working_secret(secret, now) else { return Ok(None) };
        let Some(key) = state.accounts[row].stored(number).map(|stored| stored.key.clone()) else { return Ok(None) };
        let is_replaced = state.keys.get(secret).is_some_and(|secret| secret.expires_at.is_some());
        Ok(Some(state.write_key(decision::report_leaked(row, key, is_replaced, now))))
    }
}

impl Record {
    pub(super) fn stored_key(&self, id: &KeyId) -> Option<&StoredKey> {
        self.keys.iter().find(|stored| stored.key.id == *id)
    }

    pub(super) fn stored(&self, number: KeyNumber) -> Option<&StoredKey> {
        self.place(number).ok().map(|place| &self.keys[place])
    }

    /// Where the key with this number is, or would be.
    fn place(&self, number: KeyNumber) -> Result<usize, usize> {
        self.keys.binary_search_by_key(&number, |stored| stored.key.number)
    }

    fn key_ends(&self) -> Vec<KeyEnd> {
        let held: BTreeSet<KeyNumber> = self.holds.values().map(|hold| hold.key).collect();
        let end = |Key { number, parent, terms, revoked_at, .. }: &Key| KeyEnd {
            number: *number,
            parent: *parent,
            revoked_at: *revoked_at,
            expires_at: terms.expires_at,
            is_in_use: held.contains(number),
        };
        self.keys.iter().map(|stored| end(&stored.key)).collect()
    }

    /// Removes a key, and books its usage on the key that takes it over.
    fn remove_key(&mut self, KeyDeletion { number, heir }: KeyDeletion) {
        self.keys.retain(|stored| stored.key.number != number);
        let of_key: Vec<_> = self.usage.extract_if(.., |(_, _, key), _| *key == number).collect();
        for ((day, line, _), DayTotal { calls, atoms }) in of_key {
            let total = self.usage.entry((day, line, heir)).or_default();
            *total = DayTotal { calls: total.calls + calls, atoms: total.atoms + atoms };
        }
    }

    fn unrevoked_keys(&self) -> Vec<Key> {
        self.keys.iter().map(|stored| &stored.key).filter(|key| key.revoked_at.is_none()).cloned().collect()
    }

    /// The key and its parent keys.
    pub(super) fn chain(&self, number: KeyNumber) -> Vec<Key> {
        let stored = |number| self.stored(number).map(|stored| stored.key.clone());
        std::iter::successors(stored(number), |key| key.parent.and_then(stored)).collect()
    }

    /// The usage that counts against the rate limits of a key.
    fn windows(&self, number: KeyNumber) -> RateWindows {
        let meter = self.stored(number).and_then(|stored| stored.meter).unwrap_or_default();
        RateWindows { minute: meter.minute, day: meter.day }
    }

    fn status(&self, stored: &StoredKey, today: Day) -> Result<KeyStatus, StoreError> {
        let key = stored.key.clone();
        let parents_are_live = self.chain(key.number).iter().skip(1).all(Key::is_live);
        let spent = key.terms.budget.and(stored.meter).map(|meter| meter.spent);
        let mut sums = KeyUsageSums::new(today);
        for ((day, _, number), total) in &self.usage {
            if *number == key.number {
                sums.add(*day, total.calls, total.atoms);
            }
        }
        let usage: KeyUsage = sums.usage()?;
        Ok(KeyStatus { key, parents_are_live, spent, usage })
    }

    /// The charges and open holds of a key and its child keys since `day`.
    pub(super) fn spent_since(&self, number: KeyNumber, day: Day) -> Result<Credits, StoreError> {
        let is_below = |other: KeyNumber| self.chain(other).iter().any(|key| key.number == number);
        let counted = self.usage.iter().filter(|((of, _, key), _)| *of >= day && is_below(*key));
        let charged: i128 = counted.map(|(_, total)| total.atoms).sum();
        let holds = self.open_holds().filter(|hold| hold.created_at.day() >= day && is_below(hold.key));
        credits(charged + holds.map(|hold| i128::from(hold.amount.atoms())).sum::<i128>())
    }
}

impl State {
    pub(super) fn key_holder(&self, secret: &KeyHash) -> Option<KeyHolder> {
        let Secret { account, key, revoked_at, expires_at, .. } = *self.keys.get(secret)?;
        let record = &self.accounts[account];
        if revoked_at.is_some() || record.account.revoked_at.is_some() {
            return None;
        }
        let (account, chain) = (record.account.clone(), record.chain(key));
        let windows = RateWindows { minute: record.minute, day: record.day };
        let key_windows = chain.iter().map(|key| record.windows(key.number)).collect();
        Some(KeyHolder { account, chain, secret_expires_at: expires_at, windows, key_windows })
    }

    /// The account and the key of a secret that is not revoked or expired, if the account is not revoked.
    pub(super) fn working_secret(&self, secret: &KeyHash, now: Timestamp) -> Option<(usize, KeyNumber)> {
        let Secret { account, key, revoked_at, expires_at, .. } = *self.keys.get(secret)?;
        let works = revoked_at.is_none() && expires_at.is_none_or(|at| now < at);
        (works && self.accounts[account].account.revoked_at.is_none()).then_some((account, key))
    }

    fn new_key_facts(&self, new: &NewKey) -> NewKeyFacts<usize> {
        let account = self.found(&new.account);
        let record = account.as_ref().map(|(row, _)| &self.accounts[*row]);
        let parent = record.and_then(|record| match &new.parent {
            Some(id) => record.stored_key(id).map(|stored| stored.key.number),
            None => Some(KeyNumber::FIRST),
        });
        let parents = record.zip(parent).map_or_else(Vec::new, |(record, parent)| record.chain(parent));
        let owner = self.keys.get(&new.secret).and_then(|secret| self.accounts[secret.account].stored(secret.key));
        let owner_of_secret = owner.map(|stored| stored.key.clone());
        let keys = record.map_or(&[][..], |record| &record.keys);
        let counts = |key: &Key| key.revoked_at.is_none() && key.terms.expires_at.is_none_or(|at| new.created_at < at);
        let count = keys.iter().filter(|stored| counts(&stored.key)).count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let next = keys.last().map_or(0, |last| last.key.number.get().saturating_add(1));
        let (count, next) = (number(count), KeyNumber::new(next));
        NewKeyFacts { account, parents, owner_of_secret, count, next }
    }

    fn key_change_facts(
        &self,
        account: &AccountId,
        id: &KeyId,
        change: &KeyChange,
        now: Timestamp,
    ) -> Result<KeyChangeFacts<usize>, StoreError> {
        let account = self.found(account);
        let record = account.as_ref().map(|(row, _)| &self.accounts[*row]);
        let stored = record.and_then(|record| record.stored_key(id));
        let (mut chain, mut spent) = (Vec::new(), Credits::ZERO);
        if let Some((record, stored)) = record.zip(stored) {
            chain = record.chain(stored.key.number);
            if let Some(first_day) = decision::budget_period(&stored.key.terms, change, now) {
                spent = record.spent_since(stored.key.number, first_day)?;
            }
        }
        let secret_in_use = matches!(change, KeyChange::Rotate { secret, .. } if self.keys.contains_key(secret));
        let needs_keys = chain.first().is_some_and(|key| decision::revokes_below(key, change));
        let keys = record.filter(|_| needs_keys).map_or_else(Vec::new, Record::unrevoked_keys);
        let meter = stored.and_then(|stored| stored.meter);
        Ok(KeyChangeFacts { account, chain, meter, spent, keys, secret_in_use })
    }

    pub(super) fn key_facts(&self, id: &AccountId, key: &KeyHash) -> KeyFacts<usize> {
        let account = self.found(id);
        let keys = account.as_ref().map_or_else(Vec::new, |(row, _)| self.accounts[*row].unrevoked_keys());
        KeyFacts { keys, account, key_in_use: self.keys.contains_key(key) }
    }

    pub(super) fn write_change(&mut self, writes: KeyChangeWrites<usize>) -> Key {
        for write in writes.below {
            self.write_key(write);
        }
        self.write_key(writes.key)
    }

    pub(super) fn write_key(&mut self, write: KeyWrite<usize>) -> Key {
        let KeyWrite { row, key, old_secrets, secret, meter, written_at, event: _ } = write;
        for of_key in self.keys.values_mut().filter(|of| of.account == row && of.key == key.number) {
            let revoked_at = Some(of_key.revoked_at.unwrap_or(written_at));
            match old_secrets {
                OldSecrets::Keep => {}
                OldSecrets::Revoke => of_key.revoked_at = revoked_at,
                OldSecrets::EndGrace if of_key.expires_at.is_some() => of_key.revoked_at = revoked_at,
                OldSecrets::EndGrace => {}
                OldSecrets::ExpireAt(at) if of_key.revoked_at.is_none() => {
                    of_key.expires_at = Some(of_key.expires_at.map_or(at, |old| old.min(at)));
                }
                OldSecrets::ExpireAt(_) => {}
            }
        }
        if let Some(secret) = secret {
            self.keys.insert(secret, Secret::new(row, key.number));
            self.forget_ended_secrets(row, key.number, written_at);
        }
        let record = &mut self.accounts[row];
        let place = match record.place(key.number) {
            Ok(place) => {
                record.keys[place].key = key.clone();
                place
            }
            Err(place) => {
                record.keys.insert(place, StoredKey { key: key.clone(), meter: None });
                place
            }
        };
        match meter {
            MeterWrite::Keep => {}
            MeterWrite::Set(meter) => record.keys[place].meter = Some(meter),
            MeterWrite::Remove => record.keys[place].meter = None,
        }
        key
    }

    /// Removes the secrets of a key that ended some time ago, except the newest.
    fn forget_ended_secrets(&mut self, row: usize, key: KeyNumber, now: Timestamp) {
        let until = now.saturating_sub(Key::ENDED_RETENTION);
        let ended_at = |secret: &Secret| secret.revoked_at.or(secret.expires_at).filter(|at| *at <= until);
        let of_key = self.keys.iter().filter(|(_, secret)| secret.account == row && secret.key == key);
        let mut ended: Vec<_> = of_key.filter_map(|(hash, secret)| Some((ended_at(secret)?, *hash))).collect();
        ended.sort_unstable_by(|a, b| b.cmp(a));
        for (_, hash) in ended.iter().skip(Key::MAX_ENDED_SECRETS) {
            self.keys.remove(hash);
        }
    }

    /// Removes ended keys of each account beyond the newest, with their secrets, and returns how many.
    pub(super) fn forget_ended_keys(&mut self, now: Timestamp) -> u64 {
        let mut forgotten = 0;
        for row in 0..self.accounts.len() {
            let record = &mut self.accounts[row];
            if record.keys.len() <= Key::MAX_ENDED {
                continue;
            }
            for deletion in decision::keys_to_delete(&record.key_ends(), now) {
                record.remove_key(deletion);
                self.keys.retain(|_, secret| (secret.account, secret.key) != (row, deletion.number));
                forgotten += 1;
            }
        }
        forgotten
    }
}
