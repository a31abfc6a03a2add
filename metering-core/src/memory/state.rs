//! The data of a memory store, and the operations on accounts.

use std::collections::{BTreeMap, HashMap};

use crate::account::{Account, AccountId, Totals};
use crate::charge::{MeterState, Window};
use crate::clock::{Day, Timestamp};
use crate::key::KeyHash;
use crate::ledger::{LedgerEntry, NewLedgerEntry};
use crate::plan::{Plan, PlanKey};
use crate::request_id::RequestId;
use crate::store::{Created, NewAccount, Posted, StoreError};
use crate::tally::Remembered;
use crate::usage::{Activity, UsageLine};

use super::payments::PaymentState;
use super::signups::SignupState;

/// All data of a store.
#[derive(Debug, Default)]
pub(super) struct State {
    /// In order of creation. Accounts are never removed, so an account's index never changes.
    pub(super) accounts: Vec<Record>,
    /// The index of each account.
    pub(super) ids: HashMap<AccountId, usize>,
    /// The index of each key's account, including dead keys, which no other account may get.
    pub(super) keys: HashMap<KeyHash, usize>,
    /// In the order written.
    pub(super) ledger: Vec<LedgerEntry>,
    pub(super) plans: BTreeMap<PlanKey, Plan>,
    pub(super) payments: PaymentState,
    pub(super) signups: SignupState,
    /// The last number assigned. Ledger and usage entries share one sequence, so the later of two has the higher number.
    pub(super) last_number: i64,
}

/// All data of an account except its ledger entries.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) account: Account,
    /// The account's key; live unless the account is revoked.
    pub(super) key: KeyHash,
    pub(super) minute: Window,
    pub(super) day: Window,
    pub(super) usage: BTreeMap<(Day, UsageLine), DayTotal>,
    /// Usage entries by number, oldest first.
    pub(super) recent: BTreeMap<i64, Activity>,
    /// The remembered outcomes of charges, by request id.
    pub(super) results: BTreeMap<RequestId, Remembered>,
}

/// One daily total. Its atoms are 128 bits wide, so that charges and refunds can be added in any order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DayTotal {
    pub(super) calls: u64,
    pub(super) atoms: i128,
}

impl Record {
    fn new(new: NewAccount, totals: Totals) -> Self {
        let NewAccount { id, agent_name, email, payer, limits, key, entries: _, created_at } = new;
        let account = Account { id, agent_name, email, payer, limits, totals, created_at, revoked_at: None };
        Self {
            account,
            key,
            minute: Window::default(),
            day: Window::default(),
            usage: BTreeMap::new(),
            recent: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    pub(super) fn meter_state(&self) -> MeterState {
        let Account { totals, limits, .. } = self.account;
        MeterState { totals, limits, minute: self.minute, day: self.day }
    }

    fn is_revoked(&self) -> bool {
        self.account.revoked_at.is_some()
    }
}

impl State {
    pub(super) fn record(&self, id: &AccountId) -> Option<&Record> {
        self.ids.get(id).map(|index| &self.accounts[*index])
    }

    pub(super) fn record_mut(&mut self, id: &AccountId) -> Option<&mut Record> {
        self.ids.get(id).map(|index| &mut self.accounts[*index])
    }

    /// The index of the account that a live key belongs to.
    pub(super) fn live_account(&self, key: &KeyHash) -> Option<usize> {
        let index = *self.keys.get(key)?;
        let record = &self.accounts[index];
        (record.key == *key && !record.is_revoked()).then_some(index)
    }

    pub(super) fn next_number(&mut self) -> i64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn create_account(&mut self, new: NewAccount) -> Result<Created, StoreError> {
        if self.ids.contains_key(&new.id) || self.keys.contains_key(&new.key) {
            return Err(StoreError::Corrupt("a new account's id or key is in use".to_owned()));
        }
        if self.email_is_taken(&new) {
            return Ok(Created::EmailTaken);
        }
        if new.payer.is_some_and(|payer| self.account_of_payer(&payer.address).is_some()) {
            return Ok(Created::PayerTaken);
        }
        let Some(totals) = new.entries.iter().try_fold(Totals::default(), |totals, entry| entry.applied_to(totals))
        else {
            return Ok(Created::OutOfRange);
        };
        for entry in &new.entries {
            self.write_entry(&new.id, entry.clone(), new.created_at);
        }
        let index = self.accounts.len();
        self.ids.insert(new.id.clone(), index);
        self.keys.insert(new.key, index);
        let record = Record::new(new, totals);
        let account = record.account.clone();
        self.accounts.push(record);
        Ok(Created::Account(account))
    }

    pub(super) fn post_entry(&mut self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Posted {
        if self.record(id).is_none_or(Record::is_revoked) {
            return Posted::NoSuchAccount;
        }
        self.apply_entry(id, entry, now)
    }

    /// The same, but also for a revoked account.
    pub(super) fn apply_entry(&mut self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Posted {
        let Some(record) = self.record_mut(id) else { return Posted::NoSuchAccount };
        let Some(totals) = entry.applied_to(record.account.totals) else {
            return Posted::OutOfRange;
        };
        record.account.totals = totals;
        let account = record.account.clone();
        self.write_entry(id, entry, now);
        Posted::Account(account)
    }

    fn write_entry(&mut self, account: &AccountId, entry: NewLedgerEntry, created_at: Timestamp) {
        let id = self.next_number();
        let NewLedgerEntry { kind, amount, description, payment } = entry;
        let account = account.clone();
        self.ledger.push(LedgerEntry { id, account, kind, amount, description, payment, created_at });
    }

    pub(super) fn replace_key(&mut self, id: &AccountId, key: KeyHash) -> Result<Option<Account>, StoreError> {
        let Some(index) = self.ids.get(id).copied().filter(|index| !self.accounts[*index].is_revoked()) else {
            return Ok(None);
        };
        if self.keys.contains_key(&key) {
            return Err(StoreError::Corrupt("a new key is in use".to_owned()));
        }
        self.keys.insert(key, index);
        self.accounts[index].key = key;
        self.payments.key_given_out(id);
        Ok(Some(self.accounts[index].account.clone()))
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) -> u64 {
        let mut forgotten = self.payments.forget_expired(now) + self.signups.forget_expired(now);
        for record in &mut self.accounts {
            record.results.retain(|_, remembered| {
                let keep = now < remembered.expires_at;
                forgotten += u64::from(!keep);
                keep
            });
        }
        forgotten
    }
}
