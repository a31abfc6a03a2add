//! The changes of the charge journal that are not folded into the tables yet, in memory and by account.

use std::collections::BTreeMap;

use metering_core::access::Totals;
use metering_core::backend::credits;
use metering_core::charging::{MeterState, RateWindows};
use metering_core::{Day, RateLimits, Timestamp};
use metering_sql::UsagePart;
use rusqlite::Connection;

use crate::error::{Result, corrupt, store_error};
use crate::journal::{Change, Row};
use crate::rows::first;

/// How far the journal is folded: what the tables have, and nothing else, are all changes up to `floor`, and those up to
/// `upto` of the accounts up to `account`. A round of folding is in progress while `floor` is below `upto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marker {
    pub(crate) floor: i64,
    pub(crate) upto: i64,
    pub(crate) account: i64,
    /// The newest row when the last slice was folded, by whichever process: how much came since says how much is due.
    pub(crate) paid: i64,
}

impl Marker {
    /// Changes of this account up to here are folded.
    const fn folded(self, account: i64) -> i64 {
        if account <= self.account { self.upto } else { self.floor }
    }

    /// Whether a round is in progress.
    pub(crate) const fn is_folding(self) -> bool {
        self.floor < self.upto
    }

    pub(crate) fn write(self, connection: &Connection) -> Result<()> {
        let sql = "UPDATE fold SET floor = ?1, upto = ?2, account = ?3, paid = ?4 WHERE id = 1";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        statement.execute([self.floor, self.upto, self.account, self.paid]).map(drop).map_err(store_error)
    }

    fn read(connection: &Connection) -> Result<Self> {
        let sql = "SELECT floor, upto, account, paid FROM fold WHERE id = 1";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        let marker = first(&mut statement, [], |row| {
            Ok(Ok(Self { floor: row.get(0)?, upto: row.get(1)?, account: row.get(2)?, paid: row.get(3)? }))
        })?;
        marker.ok_or_else(|| corrupt("how far the charge journal is folded is not recorded"))
    }
}

/// A change that is not folded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Its number in the sequence that activity, ledger and journal share.
    pub(crate) id: i64,
    /// When it was committed.
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
}

const _: () = assert!(size_of::<Noted>() <= 64, "there may be a million");

/// The accounts that changed since the last look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Only(Vec<i64>),
    /// Possibly all: some rows were folded and deleted before we saw them.
    All,
}

/// The changes that are not folded yet, as of some snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Unfolded {
    pub(crate) marker: Marker,
    /// The newest row that is included or folded.
    seen: i64,
    accounts: BTreeMap<i64, Vec<Noted>>,
    len: usize,
    /// The largest number of changes of one account that are not of the round in progress.
    longest: usize,
    /// No usage is of an earlier day; `None` if there was no usage since there were no changes.
    first_day: Option<Day>,
}

impl Unfolded {
    /// Brings it up to date with the snapshot that `connection` sees, which must not be older than the last one.
    pub(crate) fn sync(&mut self, connection: &Connection) -> Result<Touched> {
        let marker = Marker::read(connection)?;
        let missed = marker.floor > self.seen;
        self.advance(marker);
        self.seen = self.seen.max(marker.floor);
        let sql = "SELECT id, entries FROM charge_journal WHERE id > ?1 ORDER BY id";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        let mut rows = statement.query([self.seen]).map_err(store_error)?;
        let mut touched = Vec::new();
        while let Some(row) = rows.next().map_err(store_error)? {
            let id: i64 = row.get(0).map_err(store_error)?;
            let unpacked = Row::unpack(row.get_ref(1).and_then(|blob| Ok(blob.as_blob()?)).map_err(store_error)?)?;
            if unpacked.after != self.seen {
                return Err(corrupt(format_args!("row {} of the charge journal is missing", unpacked.after)));
            }
            touched.extend(unpacked.changes.iter().map(|(account, _)| *account));
            self.note(id, unpacked);
        }
        Ok(if missed { Touched::All } else { Touched::Only(touched) })
    }

    /// Adds a row that was just written.
    pub(crate) fn note(&mut self, id: i64, row: Row) {
        let (at, count) = (Timestamp::from_unix_millis(row.at), i64::try_from(row.changes.len()).unwrap_or(i64::MAX));
        // The row's id is that of its last change.
        for (number, (account, change)) in (id - count + 1..).zip(row.changes) {
            if id > self.marker.folded(account) {
                if let Change::Usage(usage) = &change {
                    let day = usage.day(at);
                    self.first_day = Some(self.first_day.map_or(day, |first| first.min(day)));
                }
                let changes = self.accounts.entry(account).or_insert_with(|| Vec::with_capacity(1));
                changes.push(Noted { id: number, at, change });
                self.len += 1;
                if changes.len() > self.longest {
                    let of_round = changes.partition_point(|noted| noted.id <= self.marker.upto);
                    self.longest = self.longest.max(changes.len() - of_round);
                }
            }
        }
        self.seen = self.seen.max(id);
    }

    /// Drops what was folded since the last marker.
    pub(crate) fn advance(&mut self, marker: Marker) {
        let last = std::mem::replace(&mut self.marker, marker);
        if marker.upto != last.upto {
            self.longest = 0;
        }
        // Within a round, only the accounts that it has come to since.
        let accounts = match marker {
            Marker { floor, upto, account, .. } if (floor, upto) == (last.floor, last.upto) => {
                last.account.min(account)..=account
            }
            _ => i64::MIN..=i64::MAX,
        };
        let (mut dropped, mut empty) = (0, Vec::new());
        for (account, changes) in self.accounts.range_mut(accounts) {
            let folded = changes.partition_point(|noted| noted.id <= marker.folded(*account));
            changes.drain(..folded);
            dropped += folded;
            if changes.is_empty() {
                empty.push(*account);
            } else if folded > 0 {
                changes.shrink_to(2 * changes.len());
            }
        }
        empty.iter().for_each(|account| drop(self.accounts.remove(account)));
        self.len -= dropped;
        if self.len == 0 {
            self.first_day = None;
        }
    }

    /// The marker of a new round, of everything that is noted. The last round must be complete.
    pub(crate) const fn new_round(&self) -> Marker {
        Marker { upto: self.seen, account: 0, ..self.marker }
    }

    /// A day before which there is no usage; `None` if there is none at all.
    pub(crate) const fn first_day(&self) -> Option<Day> {
        self.first_day
    }

    /// How many accounts have changes.
    pub(crate) fn count_accounts(&self) -> usize {
        self.accounts.len()
    }

    /// How many changes there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The newest row that is included or folded.
    pub(crate) const fn seen(&self) -> i64 {
        self.seen
    }

    /// The largest number of changes that one account had since folding last began.
    pub(crate) const fn longest(&self) -> usize {
        self.longest
    }

    /// The changes of an account, oldest first.
    pub(crate) fn of(&self, account: i64) -> &[Noted] {
        self.accounts.get(&account).map_or(&[], Vec::as_slice)
    }

    /// The changes of all accounts, by account.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (i64, &[Noted])> {
        self.after(i64::MIN)
    }

    /// The changes of the accounts after this one.
    pub(crate) fn after(&self, account: i64) -> impl Iterator<Item = (i64, &[Noted])> {
        self.accounts.range(account.saturating_add(1)..).map(|(account, changes)| (*account, changes.as_slice()))
    }

    /// The usage among an account's changes, oldest first.
    pub(crate) fn parts_of(&self, account: i64) -> impl Iterator<Item = UsagePart> {
        self.of(account).iter().filter_map(|noted| match &noted.change {
            Change::Usage(usage) => Some(UsagePart {
                day: usage.day(noted.at),
                line: usage.line(),
                key: usage.key,
                calls: usage.added_calls(),
                atoms: usage.added_atoms().into(),
            }),
            Change::Holds(_) | Change::Entry(_) | Change::Settings => None,
        })
    }

    /// An account's totals, given those in the tables.
    pub(crate) fn totals(&self, account: i64, stored: Totals) -> Result<Totals> {
        totals(stored, self.of(account))
    }

    /// What counts against the rate limits of an account, given what is in the tables.
    pub(crate) fn windows(&self, account: i64, stored: RateWindows) -> RateWindows {
        let (totals, alert) = Default::default();
        let limits = RateLimits { requests_per_minute: 0, requests_per_day: 0 };
        let mut state = MeterState { totals, limits, alert, minute: stored.minute, day: stored.day };
        count(&mut state, self.of(account));
        RateWindows { minute: state.minute, day: state.day }
    }

    /// What the charge rule reads of an account, given what is in the tables.
    pub(crate) fn state(&self, account: i64, stored: MeterState) -> Result<MeterState> {
        state(stored, self.of(account))
    }
}

/// The totals of an account after these changes.
///
/// They are in range after every commit, but not after every change: a batch may refund before it charges, and its
/// changes are sorted.
fn totals(before: Totals, changes: &[Noted]) -> Result<Totals> {
    let before = [before.balance, before.purchased, before.granted, before.used, before.held];
    let [mut balance, mut purchased, mut granted, mut used, mut held] = before.map(|amount| i128::from(amount.atoms()));
    for noted in changes {
        match &noted.change {
            Change::Usage(usage) => {
                let atoms = i128::from(usage.added_atoms());
                (balance, used) = (balance - atoms, used + atoms);
            }
            Change::Holds(holds) => {
                let atoms = i128::from(holds.atoms);
                (balance, held) = (balance - atoms, held + atoms);
            }
            Change::Entry(added) => {
                balance += i128::from(added.balance);
                purchased += i128::from(added.purchased);
                granted += i128::from(added.granted);
            }
            Change::Settings => {}
        }
    }
    Ok(Totals {
        balance: credits(balance)?,
        purchased: credits(purchased)?,
        granted: credits(granted)?,
        used: credits(used)?,
        held: credits(held)?,
    })
}

/// The state of an account after these changes.
pub(crate) fn state(before: MeterState, changes: &[Noted]) -> Result<MeterState> {
    let mut state = MeterState { totals: totals(before.totals, changes)?, ..before };
    count(&mut state, changes);
    Ok(state)
}

/// Counts the requests among these changes against the rate limits.
fn count(state: &mut MeterState, changes: &[Noted]) {
    // Settled holds among the row's calls, which counted when they were opened.
    let mut settled = 0;
    for noted in changes {
        let accepted = match &noted.change {
            Change::Holds(holds) => {
                settled = u64::from(holds.settled);
                holds.opened.into()
            }
            Change::Usage(usage) => {
                let calls = usage.added_calls();
                let counted = calls.saturating_sub(settled);
                settled = settled.saturating_sub(calls);
                counted
            }
            Change::Entry(_) | Change::Settings => 0,
        };
        if accepted > 0 {
            state.count_accepted(accepted, noted.at);
        }
    }
}
