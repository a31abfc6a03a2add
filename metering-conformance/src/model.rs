//! A simple model of the store contract, independent of the code that backends share.
//!
//! It keeps no totals, windows or batches. It records every event, processes one request at a time, and sums the events
//! on each read, in integers too wide to overflow. It stores nothing that it can derive: for example, the keys of a
//! quote's account tell whether the quote is paid or claimed.

use metering_core::access::{Account, AccountId, Email, KeyHash};
use metering_core::chains::Address;
use metering_core::charging::{CountedRoute, HoldUpdate, HoldUpdated, Refund};
use metering_core::clock::Timestamp;
use metering_core::money::{Credits, NewLedgerEntry};
use metering_core::payments::Challenge;
use metering_core::signups::SignupSession;
use metering_core::store::{Created, NewAccount, Posted};
use metering_core::usage::ActivityKind;
use metering_core::{Charge, Refusal};

mod authorizations;
mod challenges;
mod key_changes;
mod outcome;
mod owner;
mod payments;
mod quotes;
mod recorded;
mod refills;
mod signups;

pub(super) use outcome::{Charged, Expected};
pub(super) use owner::{Entry, Event, Owner, credits};
use recorded::{Accepted, OpenedQuote, Place, Rule, Used};

/// Everything that ever happened.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Every account ever created, in the order of creation.
    pub(super) owners: Vec<Owner>,
    /// All ledger entries: the owner's number, and the entry.
    pub(super) ledger: Vec<(usize, Entry)>,
    /// Every quote that has not been deleted.
    quotes: Vec<OpenedQuote>,
    /// Every payment that was used, in that order.
    used: Vec<Used>,
    /// Every authorization ever accepted.
    authorizations: Vec<Accepted>,
    /// Every place ever assigned to one of their transactions, each once.
    places: Vec<Place>,
    /// Every challenge that a store must still find.
    challenges: Vec<Challenge>,
    /// Every scan: the chain, and the last block scanned.
    scans: Vec<(u64, u64)>,
    /// Every signup session that a store must still find.
    signups: Vec<SignupSession>,
    /// Every used solution, and when it is deleted.
    solutions: Vec<([u8; 32], Timestamp)>,
    /// The rule for recurring credits.
    rule: Option<Rule>,
}

/// An id, key or nonce is in use; the store must return an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InUse;

impl Model {
    pub(super) fn create(&mut self, new: &NewAccount) -> Result<Created, InUse> {
        if self.had_key(new.key) || self.owners.iter().any(|owner| owner.made.id == new.id) {
            return Err(InUse);
        }
        if self.has_email(new.email.as_ref()) {
            return Ok(Created::EmailTaken);
        }
        if new.payer.is_some_and(|payer| self.payer(payer.address).is_some()) {
            return Ok(Created::PayerTaken);
        }
        let Some(owner) = Owner::new(new.clone()) else { return Ok(Created::OutOfRange) };
        let number = self.owners.len();
        self.ledger.extend(owner.entries.iter().map(|entry| (number, entry.clone())));
        let account = owner.account();
        self.owners.push(owner);
        Ok(Created::Account(account))
    }

    /// Whether an account ever had a key.
    fn had_key(&self, key: KeyHash) -> bool {
        let mut keys = self.owners.iter().flat_map(|owner| &owner.issued);
        keys.any(|issued| issued.secrets.iter().any(|secret| secret.hash == key))
    }

    /// Whether `email` is given and a live account has it.
    fn has_email(&self, email: Option<&Email>) -> bool {
        let folded = |email: &Email| email.as_str().to_lowercase();
        let Some(wanted) = email.map(folded) else { return false };
        self.owners.iter().any(|owner| owner.is_live() && owner.made.email.as_ref().map(folded) == Some(wanted.clone()))
    }

    /// The live account that a wallet paid for.
    pub(super) fn payer(&self, wallet: Address) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.is_live() && owner.made.payer.map(|payer| payer.address) == Some(wallet))
    }

    pub(super) fn post(&mut self, number: usize, entry: &NewLedgerEntry, now: Timestamp) -> Posted {
        let owner = &mut self.owners[number];
        if !owner.is_live() {
            return Posted::NoSuchAccount;
        }
        if !owner.add(std::slice::from_ref(entry), now) {
            return Posted::OutOfRange;
        }
        owner.tell_entry(now);
        self.ledger.extend(owner.entries.last().map(|entry| (number, entry.clone())));
        Posted::Account(owner.account())
    }

    pub(super) fn replace_key(
        &mut self,
        number: usize,
        key: KeyHash,
        now: Timestamp,
    ) -> Result<Option<Account>, InUse> {
        if !self.owners[number].is_live() {
            return Ok(None);
        }
        if self.had_key(key) {
            return Err(InUse);
        }
        self.owners[number].keys.push(key);
        self.owners[number].recover(key, now);
        Ok(Some(self.owners[number].account()))
    }

    pub(super) fn owner_of(&self, key: KeyHash) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.holder(key).is_some())
    }

    pub(super) fn charge(&mut self, charge: Charge, now: Timestamp) -> Result<Charged, Refusal> {
        for owner in &mut self.owners {
            if let Some((issued, expires_at)) = owner.holder(charge.key)
                && expires_at.is_none_or(|at| now < at)
            {
                let key = issued.key.number;
                return owner.charge(key, charge, now);
            }
        }
        Err(Refusal::UnknownKey)
    }

    pub(super) fn refund(&mut self, refund: &Refund, now: Timestamp) -> Option<Credits> {
        let owner = self.owners.iter_mut().find(|owner| owner.made.id == refund.account)?;
        let entries = owner.usage.len();
        // A free request may have a refund too, which gives back its place in a count and is not an entry.
        owner.usage.extend(refund.amount.is_positive().then(|| Event {
            kind: ActivityKind::UsageRefund,
            line: refund.line.clone(),
            key: refund.key,
            used: -i128::from(refund.amount.atoms()),
            booked_on: refund.day,
            at: now,
        }));
        if owner.all_fit() {
            owner.refund_keys(refund.key, i128::from(refund.amount.atoms()), refund.day);
            owner.raise_keys(refund.key, now);
            if let Some(month) = refund.counted_in {
                owner.uncount(&CountedRoute::of(&refund.line), month, refund.amount);
            }
            return Some(credits(owner.balance()));
        }
        owner.usage.truncate(entries);
        None
    }

    pub(super) fn update_hold(&mut self, update: &HoldUpdate, now: Timestamp) -> Option<HoldUpdated> {
        let owner = self.owners.iter_mut().find(|owner| owner.made.id == update.account)?;
        owner.update_hold(update, now)
    }

    /// Deletes everything that has expired and returns how many items that was.
    pub(super) fn forget(&mut self, now: Timestamp) -> u64 {
        let results: usize = self.owners.iter_mut().map(|owner| owner.forget(now)).sum();
        let sales = self.forget_quotes(now) + self.forget_challenges(now);
        u64::try_from(results + sales + self.forget_signups(now)).unwrap()
    }

    pub(super) fn id(&self, number: usize) -> AccountId {
        self.owners[number].made.id.clone()
    }

    pub(super) fn scanned(&mut self, chain_id: u64, block: u64) {
        self.scans.push((chain_id, block));
    }

    pub(super) fn scan_mark(&self, chain_id: u64) -> Option<u64> {
        self.scans.iter().filter(|(chain, _)| *chain == chain_id).map(|(_, block)| *block).max()
    }
}
