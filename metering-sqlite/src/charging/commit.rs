//! Commits a batch of charges, refunds and holds: one transaction and one row of the journal per batch.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::access::KeyNumber;
use metering_core::charging::{
    Changes, CountedRoute, HoldChange, HoldId, HoldUpdate, HoldUpdated, Outcome, Posting, Refund, Settlement, Tally,
};
use metering_core::events::NewEvent;
use metering_core::{AccountId, Charge, Credits, Decision, Refusal, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::access::keys::Secret;
use crate::charging::cache::Cache;
use crate::charging::holds;
use crate::charging::stored_results::{self, remembered};
use crate::charging::volumes;
use crate::error::{Result, commit_error, corrupt, store_error};
use crate::events::outbox;
use crate::journal::fold::Amount;
use crate::journal::{Change, Holds, Usage};
use crate::money::alert;
use crate::rows::first;

/// Decides and records a batch. On an error, the caller must clear the cache.
pub(crate) fn commit(
    connection: &mut Connection,
    cache: &mut Cache,
    postings: Vec<Posting>,
    now: Timestamp,
) -> Result<Vec<Outcome>> {
    cache.load(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    cache.sync(&transaction)?;
    let mut batch = Batch { transaction: &transaction, cache, tally: Tally::new(now), now, lines_added: false };
    let outcomes = postings.into_iter().map(|posting| batch.post(posting)).collect::<Result<_>>()?;
    let Batch { cache, tally, lines_added, .. } = batch;
    let changes = tally.finish();
    if changes.is_empty() && !lines_added {
        // All were refused, and there are no events, so there is nothing to write.
        return Ok(outcomes);
    }
    write(&transaction, cache, changes, now)?;
    transaction.commit().map_err(commit_error)?;
    Ok(outcomes)
}

/// A batch that is being decided.
struct Batch<'a> {
    transaction: &'a Transaction<'a>,
    cache: &'a mut Cache,
    tally: Tally<i64, i64>,
    now: Timestamp,
    lines_added: bool,
}

impl Batch<'_> {
    fn post(&mut self, posting: Posting) -> Result<Outcome> {
        match posting {
            Posting::Charge(charge) => self.charge(charge).map(Outcome::Decided),
            Posting::Refund(refund) => self.refund(&refund).map(Outcome::Refunded),
            Posting::Settle(settlement) => self.settle(&settlement).map(|()| Outcome::Settled),
            Posting::Hold(update) => self.update_hold(&update).map(Outcome::Hold),
        }
    }

    fn charge(&mut self, charge: Charge) -> Result<Decision> {
        let secret = self.cache.secret(self.transaction, &charge.key)?.filter(|secret| secret.works(self.now));
        let (account, key) = match secret {
            Some(Secret { account, key, .. }) if self.load(account, key)? => (account, key),
            _ => return Ok(Decision::Refused(Refusal::UnknownKey)),
        };
        let line = self.line(&charge.line)?;
        let remembered = match &charge.request_id {
            Some(request) => remembered(self.transaction, account, &request.of_key_number(key), self.now)?,
            None => None,
        };
        if let Some(hold) = self.tally.missing_hold(remembered.as_ref()) {
            self.load_hold(&hold)?;
        }
        self.load_volume(account, charge.counted_route())?;
        Ok(self.tally.charge(account, key, line, charge, remembered))
    }

    fn refund(&mut self, refund: &Refund) -> Result<Option<Credits>> {
        match self.account(&refund.account)? {
            Some(account) if !self.cache.has_key(self.transaction, account, refund.key)? => {
                self.refund_to(account, &refund.of_first_key())
            }
            Some(account) => self.refund_to(account, refund),
            None => Ok(None),
        }
    }

    fn refund_to(&mut self, account: i64, refund: &Refund) -> Result<Option<Credits>> {
        match self.load(account, refund.key)? {
            true => {
                let line = self.line(&refund.line)?;
                self.load_volume(account, refund.counted_route())?;
                let remembered = match &refund.delivery {
                    Some(failed) => remembered(self.transaction, account, &failed.request, self.now)?,
                    None => None,
                };
                Ok(self.tally.refund(account, line, refund, remembered))
            }
            false => Ok(None),
        }
    }

    fn settle(&mut self, settlement: &Settlement) -> Result<()> {
        if let Some(account) = self.account(&settlement.account)? {
            let remembered = remembered(self.transaction, account, &settlement.request, self.now)?;
            self.tally.settle(account, settlement, remembered);
        }
        Ok(())
    }

    fn update_hold(&mut self, update: &HoldUpdate) -> Result<Option<HoldUpdated>> {
        if self.tally.hold(&update.id).is_none() {
            self.load_hold(&update.id)?;
        }
        let of_account = self.tally.hold(&update.id).filter(|(_, hold)| hold.account == update.account);
        let known = of_account.map(|(account, hold)| (account, hold.key, update.counted_route(hold)));
        let Some((account, key, counted)) = known else { return Ok(None) };
        if !self.load(account, key)? {
            return Err(corrupt(format_args!("the account of hold {} has no meter", update.id)));
        }
        self.load_volume(account, counted)?;
        let remembered = match &update.delivery {
            Some(failed) => remembered(self.transaction, account, &failed.request, self.now)?,
            None => None,
        };
        Ok(Some(self.tally.update_hold(update, remembered)))
    }

    /// Loads a hold, if it is stored.
    fn load_hold(&mut self, id: &HoldId) -> Result<()> {
        if let Some((account, hold)) = holds::by_id(self.transaction, id)? {
            let line = self.line(&hold.line)?;
            self.tally.load_hold(account, line, hold);
        }
        Ok(())
    }

    /// Loads the count of a route whose requests are counted.
    fn load_volume(&mut self, account: i64, counted: Option<CountedRoute>) -> Result<()> {
        if let Some(route) = counted.filter(|route| self.tally.lacks_volume(account, route)) {
            let volume = volumes::of_route(self.transaction, account, &route)?;
            self.tally.load_volume(account, route, volume);
        }
        Ok(())
    }

    fn account(&self, id: &AccountId) -> Result<Option<i64>> {
        let sql = "SELECT id FROM account WHERE org_id = ?1";
        let mut statement = self.transaction.prepare_cached(sql).map_err(store_error)?;
        first(&mut statement, [id.as_str()], |row| row.get(0).map(Ok))
    }

    /// Loads an account, and a key with the keys above it. `false` if there is no such account.
    fn load(&mut self, account: i64, key: KeyNumber) -> Result<bool> {
        if !self.tally.is_loaded(account) {
            let Some(cached) = self.cache.account(self.transaction, account)? else { return Ok(false) };
            self.tally.load(account, cached.id.clone(), cached.state);
        }
        while let Some(missing) = self.tally.missing_key(account, key) {
            self.tally.load_key(account, missing, self.cache.key(self.transaction, account, missing)?);
        }
        Ok(true)
    }

    fn line(&mut self, line: &metering_core::UsageLine) -> Result<i64> {
        let (id, new) = self.cache.line(self.transaction, line)?;
        self.lines_added |= new;
        Ok(id)
    }
}

fn write(connection: &Connection, cache: &mut Cache, changes: Changes<i64, i64>, now: Timestamp) -> Result<()> {
    for (account, state) in &changes.accounts {
        cache.known_account(*account).state = *state;
    }
    for (account, key, meter) in &changes.keys {
        cache.write_key_meter(connection, *account, *key, *meter)?;
    }
    stored_results::write(connection, &changes.results).map_err(store_error)?;
    volumes::write(connection, &changes.volumes).map_err(store_error)?;
    holds::write(connection, &changes.holds).map_err(store_error)?;
    for (account, raised) in &changes.alerts {
        alert::write_level(connection, *account, *raised)?;
    }
    for (account, event) in &changes.events {
        outbox::write(connection, Some(*account), event)?;
    }
    let mut journaled = of_holds(&changes.holds)?;
    journaled.reserve_exact(changes.usage.len());
    for change in &changes.usage {
        let usage = Usage::of(change, cache.template(change.line), now)?;
        journaled.push((change.account, Change::Usage(usage)));
    }
    add_refused(&mut journaled, &changes.events);
    if !journaled.is_empty() {
        cache.append(connection, journaled, now)?;
    }
    if cfg!(debug_assertions) {
        for (account, state) in &changes.accounts {
            cache.assert_stored(connection, *account, *state)?;
        }
    }
    let Cache { round, unfolded, .. } = cache;
    round.slice(connection, unfolded, Amount::Due).map(drop)
}

/// Adds the accounts that have events although nothing was booked: a refusal marks their balance, or a budget, as
/// exhausted. Other processes must read the mark.
fn add_refused(journaled: &mut Vec<(i64, Change)>, events: &[(i64, NewEvent)]) {
    // Most batches have no event.
    if events.is_empty() {
        return;
    }
    let mut named: BTreeSet<i64> = journaled.iter().map(|(account, _)| *account).collect();
    journaled
        .extend(events.iter().filter(|(account, _)| named.insert(*account)).map(|(row, _)| (*row, Change::Settings)));
}

/// What the holds of a batch change for each account.
fn of_holds(changes: &[HoldChange<i64, i64>]) -> Result<Vec<(i64, Change)>> {
    let mut of_accounts: BTreeMap<i64, Holds> = BTreeMap::new();
    for change in changes {
        of_accounts.entry(change.account).or_default().add(change)?;
    }
    // A lease that is renewed changes nothing else.
    let changed = of_accounts.into_iter().filter(|(_, holds)| *holds != Holds::default());
    Ok(changed.map(|(account, holds)| (account, Change::Holds(holds))).collect())
}
