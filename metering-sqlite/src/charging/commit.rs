//! Commits a batch of charges, refunds and holds: one transaction and one row of the journal per batch.

use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

use metering_core::access::KeyNumber;
use metering_core::charging::{
    Changes, CountedRoute, Facts, HoldChange, HoldId, KeyState, MeterState, Outcome, Posting, Remembered, StoredHold,
    TokenScope, Volume, Window, decide,
};
use metering_core::events::NewEvent;
use metering_core::{AccountId, Charge, RequestId, StoreError, Timestamp, UsageLine};
use metering_sql::{accounts, now, outbox};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::charging::cache::Cache;
use crate::charging::holds;
use crate::charging::stored_results;
use crate::charging::tokens;
use crate::charging::volumes;
use crate::error::{Result, commit_error, store_error};
use crate::journal::fold::Amount;
use crate::journal::{Change, Holds, Snapshot, Usage};
use crate::rows::first;
use crate::script::Statements;

/// Decides and records a batch, and hands the outcomes to `decided` before it is flushed. On an error, the caller must
/// clear the cache.
pub(crate) fn commit(
    connection: &mut Connection,
    cache: &mut Cache,
    (postings, now): (Vec<Posting>, Timestamp),
    decided: &mut dyn FnMut(Vec<Outcome>),
) -> Result<()> {
    cache.load(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    cache.sync(&transaction)?;
    cache.read_ahead(&postings);
    let mut stored = Stored { transaction: &transaction, cache, now, lines_added: false };
    let (outcomes, changes) = decide(&mut stored, postings, now)?;
    let Stored { cache, lines_added, .. } = stored;
    if changes.is_empty() && !lines_added {
        // All were refused, and there are no events, so there is nothing to write.
        decided(outcomes);
        return Ok(());
    }
    write(&transaction, cache, changes, now)?;
    // Only the flush can fail from here on, and no result of the batch is returned before it has succeeded.
    decided(outcomes);
    transaction.commit().map_err(commit_error)
}

/// The data for deciding a batch.
struct Stored<'a> {
    transaction: &'a Transaction<'a>,
    cache: &'a mut Cache,
    now: Timestamp,
    lines_added: bool,
}

impl Facts for Stored<'_> {
    type Account = i64;
    type Line = i64;
    type Error = StoreError;

    fn charged(&mut self, charge: &Charge) -> Result<Option<(i64, KeyNumber)>> {
        let secret = self.cache.secret(self.transaction, &charge.key)?;
        Ok(secret.filter(|secret| secret.works(self.now)).map(|secret| (secret.account, secret.key)))
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<i64>> {
        let mut statement = self.transaction.prepare_cached(accounts::ROW_OF).map_err(store_error)?;
        first(&mut statement, [id.as_str()], |row| row.get(0).map(Ok))
    }

    fn meter(&mut self, account: i64) -> Result<Option<(AccountId, MeterState)>> {
        let cached = self.cache.account(self.transaction, account)?;
        cached.map(|cached| Ok((cached.id()?, cached.state()))).transpose()
    }

    fn key(&mut self, account: i64, key: KeyNumber) -> Result<Option<KeyState>> {
        self.cache.key(self.transaction, account, key)
    }

    fn line(&mut self, line: &UsageLine) -> Result<i64> {
        let (id, new) = self.cache.line(self.transaction, line)?;
        self.lines_added |= new;
        Ok(id)
    }

    fn remembered(&mut self, account: i64, request: &RequestId) -> Result<Option<Remembered>> {
        stored_results::remembered(self.transaction, account, request, self.now)
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<StoredHold<i64, i64>>> {
        let Some((account, hold)) = holds::by_id(self.transaction, id)? else { return Ok(None) };
        let line = self.line(&hold.line)?;
        Ok(Some(StoredHold { account, line, hold }))
    }

    fn volume(&mut self, account: i64, route: &CountedRoute) -> Result<Volume> {
        volumes::of_route(self.transaction, account, route)
    }

    fn token_limit(&mut self, account: i64) -> Result<u32> {
        tokens::limit(self.transaction, account)
    }

    fn token_window(&mut self, account: i64, scope: TokenScope) -> Result<Window> {
        tokens::window(self.transaction, account, scope)
    }
}

fn write(connection: &Connection, cache: &mut Cache, changes: Changes<i64, i64>, now: Timestamp) -> Result<()> {
    for (account, state) in &changes.accounts {
        cache.known_account(*account).set_state(*state);
    }
    for (account, key, meter) in &changes.keys {
        cache.write_key_meter(connection, *account, *key, *meter)?;
    }
    stored_results::write(connection, &changes.results).map_err(store_error)?;
    volumes::write(connection, &changes.volumes).map_err(store_error)?;
    tokens::write(connection, &changes.tokens).map_err(store_error)?;
    holds::write(connection, &changes.holds).map_err(store_error)?;
    write_notices(&Snapshot::synced(connection, &mut cache.unfolded), &changes)?;
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

/// Writes alerts and events. Most batches have neither.
fn write_notices(snapshot: &Snapshot<'_>, changes: &Changes<i64, i64>) -> Result<()> {
    let mut statements = Statements::new(snapshot);
    for (account, raised) in &changes.alerts {
        now(accounts::change_alert_level(&mut statements, *account, *raised))?;
    }
    for (account, event) in &changes.events {
        now(outbox::write(&mut statements, Some(*account), from_ref(event)))?;
    }
    Ok(())
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

/// The changes that the holds of a batch make to each account.
fn of_holds(changes: &[HoldChange<i64, i64>]) -> Result<Vec<(i64, Change)>> {
    let mut of_accounts: BTreeMap<i64, Holds> = BTreeMap::new();
    for change in changes {
        of_accounts.entry(change.account).or_default().add(change)?;
    }
    // A lease that is renewed changes nothing else.
    let changed = of_accounts.into_iter().filter(|(_, holds)| *holds != Holds::default());
    Ok(changed.map(|(account, holds)| (account, Change::Holds(holds))).collect())
}
