//! The data of a memory store, and the operations on accounts.

use std::collections::{BTreeMap, HashMap};

use crate::access::account::{Account, AccountId};
use crate::access::email::Email;
use crate::access::issued_key::Key;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyNumber;
use crate::chains::address::Address;
use crate::charging::charge::MeterState;
use crate::charging::hold::{Hold, HoldId};
use crate::charging::key_meter::KeyMeter;
use crate::charging::posting::Remembered;
use crate::charging::rate::Window;
use crate::charging::request_id::RequestId;
use crate::charging::tokens::TokenScope;
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::{Day, Timestamp};
use crate::decision::{
    self, CreateChanges, CreateFacts, Decided, EntryChanges, KeyChangeFacts, KeyChanges, OwnerFacts,
};
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerEntry, NewLedgerEntry};
use crate::store::{Created, KeyChange, NewAccount, Posted, StoreError};
use crate::usage::{Activity, UsageLine};

/// All data of a store.
#[derive(Debug, Default)]
pub(super) struct State {
    /// In order of creation. Accounts are never removed, so an account's index never changes.
    pub(super) accounts: Vec<Record>,
    /// The index of each account.
    pub(super) ids: HashMap<AccountId, usize>,
    /// The secrets of all keys, including revoked ones that are still kept, which no other key may get.
    pub(super) keys: HashMap<KeyHash, Secret>,
    /// In the order written.
    pub(super) ledger: Vec<LedgerEntry>,
    /// The last number assigned. Ledger and usage entries share one sequence, so the later of two has the higher
    /// number.
    pub(super) last_number: i64,
}

/// All data of an account except its ledger entries.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) account: Account,
    /// Its keys by number, revoked or not. The newest one is never removed.
    pub(super) keys: Vec<StoredKey>,
    pub(super) minute: Window,
    pub(super) day: Window,
    pub(super) usage: BTreeMap<(Day, UsageLine, KeyNumber), DayTotal>,
    /// Usage entries by number, oldest first.
    pub(super) recent: BTreeMap<i64, Activity>,
    /// The remembered outcomes of charges, by request id.
    pub(super) results: BTreeMap<RequestId, Remembered>,
    /// Its requests to routes with volume tiers.
    pub(super) volumes: BTreeMap<CountedRoute, Volume>,
    /// Tokens of the newest minute, of those who have a limit on them.
    pub(super) tokens: BTreeMap<TokenScope, Window>,
    /// Open holds, and settled ones that are still kept.
    pub(super) holds: BTreeMap<HoldId, Hold>,
}

/// A key, and the usage that counts against its terms.
#[derive(Debug)]
pub(super) struct StoredKey {
    pub(super) key: Key,
    pub(super) meter: Option<KeyMeter>,
}

/// The owner of a secret, and whether it still works.
#[derive(Debug, Clone, Copy)]
pub(super) struct Secret {
    /// The account's index.
    pub(super) account: usize,
    pub(super) key: KeyNumber,
    pub(super) revoked_at: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
}

impl Secret {
    pub(super) const fn new(account: usize, key: KeyNumber) -> Self {
        Self { account, key, revoked_at: None, expires_at: None }
    }
}

/// One daily total. Its atoms are 128 bits wide, so charges and refunds can be added in any order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DayTotal {
    pub(super) calls: u64,
    pub(super) atoms: i128,
}

impl Record {
    fn new(account: Account, key: KeyHash) -> Self {
        let first = Key::first(account.id.clone(), &key, account.created_at);
        Self {
            account,
            keys: vec![StoredKey { key: first, meter: None }],
            minute: Window::default(),
            day: Window::default(),
            usage: BTreeMap::new(),
            recent: BTreeMap::new(),
            results: BTreeMap::new(),
            volumes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            holds: BTreeMap::new(),
        }
    }

    pub(super) fn meter_state(&self) -> MeterState {
        let Account { totals, limits, alert, .. } = self.account;
        MeterState { totals, limits, alert, minute: self.minute, day: self.day }
    }
}

impl State {
    pub(super) fn record(&self, id: &AccountId) -> Option<&Record> {
        self.ids.get(id).map(|index| &self.accounts[*index])
    }

    pub(super) fn record_mut(&mut self, id: &AccountId) -> Option<&mut Record> {
        self.ids.get(id).map(|index| &mut self.accounts[*index])
    }

    pub(super) fn next_number(&mut self) -> i64 {
        self.last_number += 1;
        self.last_number
    }

    /// An account and its index.
    pub(super) fn found(&self, id: &AccountId) -> Option<(usize, Account)> {
        self.ids.get(id).map(|index| (*index, self.accounts[*index].account.clone()))
    }

    /// The first account that is not revoked for which `is_it` holds.
    pub(super) fn active(&self, is_it: impl Fn(&Account) -> bool) -> Option<&Account> {
        let mut accounts = self.accounts.iter().map(|record| &record.account);
        accounts.find(|account| account.revoked_at.is_none() && is_it(account))
    }

    pub(super) fn account_of_payer(&self, payer: &Address) -> Option<&Account> {
        self.active(|account| account.payer.is_some_and(|known| known.address == *payer))
    }

    pub(super) fn owner_facts(&self, email: Option<&Email>, payer: Option<&Address>) -> OwnerFacts {
        let has_email = |email| self.active(|account| account.held_email() == Some(email)).is_some();
        OwnerFacts {
            email_taken: email.is_some_and(has_email),
            payer_taken: payer.is_some_and(|payer| self.account_of_payer(payer).is_some()),
        }
    }

    pub(super) fn create_facts(&self, new: &NewAccount) -> CreateFacts {
        CreateFacts {
            id_or_key_in_use: self.ids.contains_key(&new.id) || self.keys.contains_key(&new.key),
            owner: self.owner_facts(new.email.as_ref(), new.payer.as_ref().map(|payer| &payer.address)),
        }
    }

    pub(super) fn create_account(&mut self, new: NewAccount) -> Result<Created, StoreError> {
        let facts = self.create_facts(&new);
        Ok(match decision::create_account(new, facts)? {
            Decided::Accepted(changes) => Created::Account(self.insert_account(changes)),
            Decided::Refused(refusal) => refusal,
        })
    }

    pub(super) fn insert_account(&mut self, changes: CreateChanges) -> Account {
        let CreateChanges { account, key, entries, events: _ } = changes;
        for entry in entries {
            self.append(&account.id, entry, account.created_at);
        }
        let index = self.accounts.len();
        self.ids.insert(account.id.clone(), index);
        self.keys.insert(key, Secret::new(index, KeyNumber::FIRST));
        self.accounts.push(Record::new(account.clone(), key));
        account
    }

    pub(super) fn post_entry(&mut self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Posted {
        match decision::post_entry(self.found(id), entry, now) {
            Decided::Accepted(changes) => Posted::Account(self.write_entry(changes)),
            Decided::Refused(refusal) => refusal,
        }
    }

    pub(super) fn write_entry(&mut self, changes: EntryChanges<usize>) -> Account {
        let EntryChanges { row, account, entry, written_at, events: _ } = changes;
        self.append(&account.id, entry, written_at);
        let stored = &mut self.accounts[row].account;
        (stored.totals, stored.alert) = (account.totals, account.alert);
        account
    }

    pub(super) fn append(&mut self, account: &AccountId, entry: NewLedgerEntry, created_at: Timestamp) {
        let id = self.next_number();
        let NewLedgerEntry { kind, amount, description, payment } = entry;
        let account = account.clone();
        self.ledger.push(LedgerEntry { id, account, kind, amount, description, payment, created_at });
    }

    pub(super) fn revoke_account(&mut self, id: &AccountId, now: Timestamp) -> Option<Account> {
        match decision::revoke_account(self.found(id), now) {
            Decided::Accepted((index, account)) => {
                self.accounts[index].account = account.clone();
                Some(account)
            }
            Decided::Refused(unchanged) => unchanged,
        }
    }

    pub(super) fn replace_key(
        &mut self,
        id: &AccountId,
        key: KeyHash,
        now: Timestamp,
    ) -> Result<Option<Account>, StoreError> {
        let changes = decision::replace_key(self.key_facts(id, &key), key, now)?;
        Ok(changes.map(|changes| self.write_keys(changes)))
    }

    pub(super) fn replace_live_key(
        &mut self,
        old: &KeyHash,
        secret: KeyHash,
        now: Timestamp,
    ) -> Result<Option<Account>, StoreError> {
        let Some(holder) = self.key_holder(old).filter(|holder| holder.is_live(now)) else { return Ok(None) };
        let facts = KeyChangeFacts {
            account: self.found(&holder.account.id),
            chain: holder.chain,
            meter: None,
            spent: Credits::ZERO,
            keys: Vec::new(),
            secret_in_use: self.keys.contains_key(&secret),
        };
        Ok(match decision::change_key(facts, None, KeyChange::Rotate { secret, old_until: None }, now) {
            Decided::Accepted(writes) => {
                self.write_change(writes);
                Some(holder.account)
            }
            Decided::Refused(_) => None,
        })
    }

    pub(super) fn write_keys(&mut self, changes: KeyChanges<usize>) -> Account {
        let KeyChanges { row: _, account, keys, replaced_at: _ } = changes;
        for write in keys {
            self.write_key(write);
        }
        account
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) -> u64 {
        let mut forgotten = self.forget_ended_keys(now);
        for record in &mut self.accounts {
            record.results.retain(|_, remembered| {
                let keep = now < remembered.expires_at;
                forgotten += u64::from(!keep);
                keep
            });
            record.holds.retain(|_, hold| {
                let keep = hold.forgotten_from().is_none_or(|from| now < from);
                forgotten += u64::from(!keep);
                keep
            });
        }
        forgotten
    }
}
