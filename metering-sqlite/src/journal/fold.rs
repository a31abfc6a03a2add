//! Folding: brings the tables up to date with the charge journal, a few accounts at a time.
//!
//! A round of folding takes everything that is in the journal when it begins. Each slice folds the next accounts, in
//! the order of their row numbers, so that it touches adjacent pages, and each account once however often it was
//! charged. When all are folded, the round's rows are deleted, a few at a time too. Slices are part of the commits that
//! make them necessary; what is left is folded when the store has nothing to do, and when it is closed.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::error::{Result, corrupt, store_error};
use crate::journal::unfolded::{self, Marker, Noted, Unfolded};
use crate::journal::{Change, Usage};
use crate::rows::{METER_COLUMNS, first, meter_state};
use crate::usage::activity;

/// A round begins when this many changes are not folded. The more, the more charges of the same account share a write
/// of its rows; reading the journal after a crash takes a fifth of a second. Debug builds fold all the time, so that
/// every test of the store is a test of folding.
const ROUND: usize = if cfg!(debug_assertions) { 100 } else { 524_288 };

/// A round also begins when one account has this many changes, so that no account takes long to fold.
const LONGEST: usize = if cfg!(debug_assertions) { 20 } else { 4_096 };

/// A slice folds at least this many accounts: those of a few pages. With fewer, commit after commit would write the same
/// pages.
const SLICE: usize = if cfg!(debug_assertions) { 2 } else { 32 };

/// Rows of the journal that a slice deletes.
const DELETED: usize = 64;

/// A round is folded while four fifths as many new changes come in, so that the journal cannot grow without bound.
const PACE: (usize, usize) = (5, 4);

/// How much to fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// What a commit of this many changes has to do to keep up.
    InStepWith(usize),
    /// This many accounts, and not only once there are enough for a round.
    Accounts(usize),
}

/// The progress of the current round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Accounts and changes when the round began, or when we first saw it.
    accounts: usize,
    changes: usize,
    /// New changes since the last slice.
    new: usize,
    /// Whether folded rows may still be in the journal.
    has_rows: bool,
}

impl Round {
    /// The round that is under way in a database, as it was just read.
    pub(crate) fn of(unfolded: &Unfolded) -> Self {
        Self { accounts: unfolded.accounts().count(), changes: unfolded.len(), new: 0, has_rows: true }
    }

    /// Whether it has anything left to fold or to delete.
    pub(crate) const fn is_open(&self, unfolded: &Unfolded) -> bool {
        unfolded.marker.is_folding() || self.has_rows
    }

    /// Folds the next slice. Returns whether anything is left to fold or to delete.
    pub(crate) fn slice(&mut self, connection: &Connection, unfolded: &mut Unfolded, amount: Amount) -> Result<bool> {
        if unfolded.marker.is_folding() {
            self.fold(connection, unfolded, amount)?;
        } else if self.has_rows {
            self.has_rows = delete(connection, unfolded.marker.upto, amount)?;
        } else if self.is_due(unfolded, amount) {
            unfolded.begin_round();
            unfolded.marker.write(connection)?;
            *self = Self::of(unfolded);
            self.fold(connection, unfolded, amount)?;
        }
        Ok(self.is_open(unfolded) || unfolded.len() > 0)
    }

    fn is_due(&self, unfolded: &Unfolded, amount: Amount) -> bool {
        match amount {
            Amount::InStepWith(_) => unfolded.len() >= ROUND || unfolded.longest() >= LONGEST,
            Amount::Accounts(_) => unfolded.len() > 0,
        }
    }

    fn fold(&mut self, connection: &Connection, unfolded: &mut Unfolded, amount: Amount) -> Result<()> {
        let Marker { upto, account } = unfolded.marker;
        let most = match amount {
            Amount::Accounts(most) => most,
            Amount::InStepWith(new) => {
                self.new += new;
                let due = (self.new * self.accounts * PACE.0).div_ceil(PACE.1 * self.changes.max(1));
                if due < SLICE.min(self.accounts) {
                    return Ok(());
                }
                due
            }
        };
        self.new = 0;
        let (mut folded, mut last) = (0, None);
        let of_round = |(account, changes): (i64, &'_ [Noted])| {
            let count = changes.partition_point(|noted| noted.id <= upto);
            (count > 0).then_some((account, count))
        };
        for (account, count) in unfolded.after(account).filter_map(of_round).take(most) {
            fold_account(connection, account, &unfolded.of(account)[..count])?;
            (folded, last) = (folded + 1, Some(account));
        }
        let account = if folded < most { i64::MAX } else { last.unwrap_or(i64::MAX) };
        let marker = Marker { upto, account };
        marker.write(connection)?;
        unfolded.advance(marker);
        Ok(())
    }
}

/// Deletes some of the folded rows. Returns whether there may be more.
fn delete(connection: &Connection, upto: i64, amount: Amount) -> Result<bool> {
    let most = match amount {
        Amount::InStepWith(new) => DELETED.max(new),
        Amount::Accounts(most) => DELETED.max(most),
    };
    let sql = "DELETE FROM charge_journal WHERE id <= (SELECT max(id) FROM \
               (SELECT id FROM charge_journal WHERE id <= ?1 ORDER BY id LIMIT ?2))";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let deleted = statement.execute([upto, i64::try_from(most).unwrap_or(i64::MAX)]).map_err(store_error)?;
    Ok(deleted == most)
}

fn fold_account(connection: &Connection, account: i64, changes: &[Noted]) -> Result<()> {
    let sql = format!("SELECT {METER_COLUMNS}, m.activity_count FROM meter m WHERE m.account = ?1");
    let mut read = connection.prepare_cached(&sql).map_err(store_error)?;
    let stored = first(&mut read, [account], |row| Ok(Ok((meter_state(row, 0)?, row.get::<_, i64>(10)?))))?;
    let Some((state, count)) = stored else {
        return Err(corrupt(format_args!("the charge journal has changes of account {account}, which has no meter")));
    };
    let state = unfolded::state(state, changes)?;
    let usage = || {
        changes.iter().filter_map(|noted| match &noted.change {
            Change::Usage(usage) => Some((noted, usage)),
            Change::Entry(_) | Change::Settings => None,
        })
    };
    add_to_days(connection, account, usage())?;
    let entries: Vec<_> = usage().map(|(noted, usage)| activity::Entry::of(noted, usage)).collect();
    activity::append(connection, account, count, &entries)?;
    let sql = "UPDATE meter SET balance = ?2, purchased = ?3, granted = ?4, used = ?5, minute = ?6, minute_count = ?7, \
               day = ?8, day_count = ?9, activity_count = ?10 WHERE account = ?1";
    let mut write = connection.prepare_cached(sql).map_err(store_error)?;
    let written = write.execute((
        account,
        state.totals.balance.atoms(),
        state.totals.purchased.atoms(),
        state.totals.granted.atoms(),
        state.totals.used.atoms(),
        state.minute.index,
        state.minute.count,
        state.day.index,
        state.day.count,
        count + i64::try_from(entries.len()).unwrap_or(i64::MAX),
    ));
    written.map(drop).map_err(store_error)
}

fn add_to_days<'n>(
    connection: &Connection,
    account: i64,
    usage: impl Iterator<Item = (&'n Noted, &'n Usage)>,
) -> Result<()> {
    let sql = "INSERT INTO usage_daily (day, account, line, calls, amount) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, amount = amount + excluded.amount";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut days: BTreeMap<(i64, i64), (u64, i128)> = BTreeMap::new();
    for (noted, usage) in usage {
        let (calls, atoms) = days.entry((usage.day(noted.at).unix_days(), usage.line())).or_default();
        (*calls, *atoms) = (*calls + usage.added_calls(), *atoms + i128::from(usage.added_atoms()));
    }
    for ((day, line), (calls, atoms)) in days {
        let calls = i64::try_from(calls).unwrap_or(i64::MAX);
        let out_of_range = |_| corrupt(format_args!("{atoms} atoms of account {account} are out of range"));
        let atoms = i64::try_from(atoms).map_err(out_of_range)?;
        statement.execute((day, account, line, calls, atoms)).map_err(store_error)?;
    }
    Ok(())
}
