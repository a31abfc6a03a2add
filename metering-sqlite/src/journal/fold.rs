//! Folding: brings the tables up to date with the charge journal, a few accounts at a time.
//!
//! A round of folding takes everything that is in the journal when it begins. Each slice folds the next accounts in row
//! order, so it touches neighbouring pages, and writes each account once, no matter how often it was charged. Once all
//! accounts are folded, the round's rows are deleted, also a few at a time. Commits fold as they go; the store folds
//! the rest when it is idle, and when it is closed.

use std::collections::BTreeMap;

use rusqlite::{CachedStatement, Connection};

use crate::error::{Result, corrupt, store_error};
use crate::journal::unfolded::{Marker, Unfolded};
use crate::journal::{Change, NotedChanges};
use crate::rows::{METER_COLUMN_COUNT, METER_COLUMNS, first, meter_state};
use crate::usage::activity;
use crate::usage::newest::Newest;

/// A round begins when this many changes are not folded. The more, the more charges of the same account share a write
/// of its rows: with 100,000 equally busy accounts, 23. But the journal, which may have nearly twice as many, must
/// be read within a second after a crash, and memory holds it all. Debug builds fold all the time, so that every test of
/// the store is a test of folding.
const ROUND: usize = if cfg!(debug_assertions) { 100 } else { 2_359_296 };

/// A row of the journal counts as this many additional changes, because of the cost of reading it: after a crash, a
/// journal of single charges would otherwise take several seconds.
const ROW: usize = if cfg!(debug_assertions) { 0 } else { 4 };

/// A round also begins when one account has this many changes, so that no account takes long to fold: these take about a
/// millisecond. An account that is in every commit has one change for each, so fewer would make most rounds too short.
const LONGEST: usize = if cfg!(debug_assertions) { 20 } else { 16_384 };

/// A slice folds at least this many accounts: those of a page of meters. With fewer, commit after commit would write the
/// same pages.
const SLICE: usize = if cfg!(debug_assertions) { 2 } else { 64 };

/// A slice has fewer accounts if they have about this many changes, so it takes one or two milliseconds no matter how
/// busy its accounts are.
const SLICE_CHANGES: usize = 4_096;

/// When the store is idle, a slice has at most this many changes for each account that it may fold.
const IDLE_CHANGES: usize = 64;

/// Rows of the journal that a slice deletes.
const DELETED: usize = 64;

/// How many times the average number of changes a slice folds at most, if its accounts were charged unevenly.
const UNEVEN: usize = 4;

/// A round is folded while four fifths as many new changes come in, so that the journal cannot grow without bound. Rows
/// count as changes here too.
const PACE: (usize, usize) = (5, 4);

/// While a round is in progress, no other can begin. So if an account then gets [`LONGEST`] newer changes, this many times
/// as much is folded, until the round ends.
const HASTE: usize = 12;

/// But haste makes no slice larger than about this many changes.
const HASTY_CHANGES: usize = 2 * SLICE_CHANGES;

/// How much to fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The pace that keeps up with the charges.
    Due,
    /// This many accounts, and not only once there are enough changes for a round.
    Accounts(usize),
}

/// This process's view of the current round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    upto: i64,
    /// Accounts and changes that were to be folded when the round began, or when we first saw it.
    accounts: usize,
    changes: usize,
    /// How many rows had come since the round began, when the last slice was folded.
    rows: usize,
    /// Whether rows that are folded may still be in the journal.
    has_rows: bool,
}

impl Round {
    fn of(unfolded: &Unfolded) -> Self {
        let (accounts, changes) = unfolded.left_in_round();
        Self { upto: unfolded.marker.upto, accounts, changes, rows: unfolded.rows(), has_rows: true }
    }

    /// Whether it has anything left to fold or to delete.
    pub(crate) const fn is_open(&self, unfolded: &Unfolded) -> bool {
        unfolded.marker.is_folding() || self.has_rows
    }

    /// Folds the next slice. Returns whether anything is left to fold or to delete.
    pub(crate) fn slice(&mut self, connection: &Connection, unfolded: &mut Unfolded, amount: Amount) -> Result<bool> {
        if self.upto != unfolded.marker.upto {
            // Another process began a round, or we have just opened the store.
            *self = Self::of(unfolded);
        }
        if unfolded.marker.is_folding() {
            self.fold(connection, unfolded, amount)?;
        } else if self.has_rows {
            self.has_rows = delete(connection, unfolded.marker.floor, amount)?;
        } else if is_due(unfolded, amount) {
            let marker = Marker { paid: unfolded.seen(), ..unfolded.new_round() };
            marker.write(connection)?;
            unfolded.advance(marker);
            *self = Self::of(unfolded);
        }
        Ok(self.is_open(unfolded) || unfolded.len() > 0)
    }

    fn fold(&mut self, connection: &Connection, unfolded: &mut Unfolded, amount: Amount) -> Result<()> {
        let marker = unfolded.marker;
        // None are left if the last slice ended with the last account. That is found out by one more.
        let (accounts, changes) = (self.accounts.max(1), self.changes.max(1));
        let most = match amount {
            Amount::Accounts(most) => most,
            Amount::Due => {
                let new = usize::try_from(unfolded.seen() - marker.paid).unwrap_or(0);
                // Rows that another process paid for count again here.
                let new = weight(new, unfolded.rows().saturating_sub(self.rows));
                let due = self.due(new, unfolded.longest() >= LONGEST);
                if due < SLICE.min(accounts).min((SLICE_CHANGES * accounts).div_ceil(changes)) {
                    return Ok(());
                }
                due
            }
        };
        let most_changes = match amount {
            Amount::Accounts(most) => most * IDLE_CHANGES,
            Amount::Due => most * changes * UNEVEN / accounts,
        };
        let most_changes = most_changes.max(LONGEST);
        let mut statements = Statements::prepare(connection)?;
        let (mut folded, mut last) = ((0, 0), None);
        for (account, changes) in unfolded.round() {
            if folded.0 == most || folded.1 > most_changes {
                break;
            }
            statements.fold(account, changes)?;
            (folded, last) = ((folded.0 + 1, folded.1 + changes.len()), Some(account));
        }
        let is_complete = folded.0 < most && folded.1 <= most_changes;
        let (floor, account) =
            if is_complete { (marker.upto, 0) } else { (marker.floor, last.unwrap_or(marker.account)) };
        let marker = Marker { floor, account, paid: unfolded.seen(), ..marker };
        marker.write(connection)?;
        self.rows = unfolded.rows();
        unfolded.advance(marker);
        Ok(())
    }

    /// How many accounts to fold for the changes since the last slice.
    fn due(&self, weight: usize, is_hasty: bool) -> usize {
        let (accounts, changes) = (self.accounts.max(1), self.changes.max(1));
        let due = (weight * accounts * PACE.0).div_ceil(PACE.1 * changes);
        if is_hasty { due.max((due * HASTE).min((HASTY_CHANGES * accounts).div_ceil(changes))) } else { due }
    }
}

/// The cost of reading these changes and rows, in changes.
const fn weight(changes: usize, rows: usize) -> usize {
    changes.saturating_add(rows.saturating_mul(ROW))
}

fn is_due(unfolded: &Unfolded, amount: Amount) -> bool {
    match amount {
        Amount::Due => weight(unfolded.len(), unfolded.rows()) >= ROUND || unfolded.longest() >= LONGEST,
        Amount::Accounts(_) => unfolded.len() > 0,
    }
}

/// Deletes some of the folded rows, except those that an open log has not taken yet: nothing folds them again, as only rows
/// above the floor are read for that. Returns whether there may be more to delete now.
fn delete(connection: &Connection, floor: i64, amount: Amount) -> Result<bool> {
    let most = match amount {
        Amount::Due => DELETED,
        Amount::Accounts(most) => DELETED.max(most),
    };
    let sql = "DELETE FROM charge_journal WHERE id <= (SELECT max(id) FROM \
               (SELECT id FROM charge_journal WHERE id <= min(?1, coalesce( \
               (SELECT journal FROM log_epoch WHERE ended_at IS NULL), ?1)) ORDER BY id LIMIT ?2))";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let deleted = statement.execute([floor, i64::try_from(most).unwrap_or(i64::MAX)]).map_err(store_error)?;
    Ok(deleted == most)
}

/// Calls and atoms to add, by day, line and key.
type Days = BTreeMap<(i64, i64, u32), (u64, i128)>;

/// The statements that fold an account. A slice looks them up once.
struct Statements<'c> {
    read: CachedStatement<'c>,
    add_to_day: CachedStatement<'c>,
    append: CachedStatement<'c>,
    write: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection) -> Result<Self> {
        let prepare = |sql: &str| connection.prepare_cached(sql).map_err(store_error);
        Ok(Self {
            read: prepare(&format!(
                "SELECT {METER_COLUMNS}, m.activity_count, \
                 EXISTS (SELECT 1 FROM account a WHERE a.id = ?1 AND a.erased_at IS NOT NULL) \
                 FROM meter m WHERE m.account = ?1"
            ))?,
            add_to_day: prepare(
                "INSERT INTO usage_daily (day, account, line, key, calls, amount) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, amount = amount + excluded.amount",
            )?,
            append: prepare(activity::APPEND)?,
            write: prepare(
                "UPDATE meter SET balance = ?2, purchased = ?3, granted = ?4, used = ?5, held = ?6, minute = ?7, \
                 minute_count = ?8, day = ?9, day_count = ?10, activity_count = ?11 WHERE account = ?1",
            )?,
        })
    }

    fn fold(&mut self, account: i64, changes: &NotedChanges) -> Result<()> {
        let stored = first(&mut self.read, [account], |row| {
            let (count, is_erased): (i64, bool) = (row.get(METER_COLUMN_COUNT)?, row.get(METER_COLUMN_COUNT + 1)?);
            Ok(meter_state(row, 0)?.map(|state| (state, count, is_erased)))
        })?;
        let missing =
            || corrupt(format_args!("the charge journal has changes of account {account}, which has no meter"));
        let (state, count, is_erased) = stored.ok_or_else(missing)?;
        let state = changes.state(state)?;
        // Of recent activity, older entries would be overwritten by the newest.
        let (mut days, mut newest) = (Days::new(), Newest::new(activity::KEPT, is_erased));
        for noted in changes.iter() {
            if let Change::Usage(usage) = &noted.change {
                let row = (usage.day(noted.at).unix_days(), usage.line(), usage.key.get());
                let (calls, atoms) = days.entry(row).or_default();
                (*calls, *atoms) = (*calls + usage.added_calls(), *atoms + i128::from(usage.added_atoms()));
            }
            newest.add(noted);
        }
        self.add_to_days(account, days)?;
        let after = count + newest.added();
        activity::append(&mut self.append, account, after, &newest.into_entries())?;
        let written = self.write.execute((
            account,
            state.totals.balance.atoms(),
            state.totals.purchased.atoms(),
            state.totals.granted.atoms(),
            state.totals.used.atoms(),
            state.totals.held.atoms(),
            state.minute.index,
            state.minute.count,
            state.day.index,
            state.day.count,
            after,
        ));
        written.map(drop).map_err(store_error)
    }

    fn add_to_days(&mut self, account: i64, days: Days) -> Result<()> {
        for ((day, line, key), (calls, atoms)) in days {
            let calls = i64::try_from(calls).unwrap_or(i64::MAX);
            let out_of_range = |_| corrupt(format_args!("{atoms} atoms of account {account} are out of range"));
            let atoms = i64::try_from(atoms).map_err(out_of_range)?;
            self.add_to_day.execute((day, account, line, key, calls, atoms)).map_err(store_error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_sooner_when_an_account_has_many_newer_changes() {
        let round = Round { accounts: 1_000, changes: 100_000, ..Round::default() };
        // new changes, accounts to fold, the same in haste
        let table = [(0, 0, 0), (80, 1, 12), (480, 6, 72), (800, 10, 82), (8_000, 100, 100)];
        for (new, due, hasty) in table {
            assert_eq!((round.due(new, false), round.due(new, true)), (due, hasty), "{new} new changes");
        }
    }

    /// With the pace and the haste of a release build, the changes that one account collects are bounded.
    #[test]
    fn no_account_collects_many_changes_while_a_round_is_open() {
        let round = Round { accounts: 200_000, changes: 2_359_296, ..Round::default() };
        // Each commit has this many charges, one of them of the same account.
        for charges in [1, 10, 100, 10_000] {
            let (mut left, mut longest, mut waiting) = (round.accounts, 0, 0);
            while left > 0 {
                (longest, waiting) = (longest + 1, waiting + charges + 4);
                let due = round.due(waiting, longest >= 16_384);
                if due >= 64 {
                    (left, waiting) = (left.saturating_sub(due), 0);
                }
            }
            assert!(longest <= 3 * 16_384, "{longest} changes, {charges} charges in each commit");
        }
    }
}
