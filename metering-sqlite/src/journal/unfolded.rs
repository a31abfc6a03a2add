//! The changes of the charge journal that are not folded into the tables yet, in memory and by account.

use std::cmp::Reverse;
use std::hint::black_box;

use foldhash::HashMap;
use metering_core::access::Totals;
use metering_core::charging::{MeterState, RateWindows};
use metering_core::{Day, Timestamp};
use metering_sql::UsagePart;
use rusqlite::Connection;

use crate::error::{Result, corrupt, store_error};
use crate::journal::{Change, Noted, NotedChanges, Row};
use crate::rows::first;

/// From this many accounts on, there is room made for all that the journal may still have. Fewer are moved quickly while a
/// map grows.
const MANY: usize = if cfg!(debug_assertions) { 2 } else { 16_384 };

/// How far the journal is folded: what the tables have, and nothing else, are all changes up to `floor`, and those up to
/// `upto` of the accounts up to `account`. A round of folding is in progress while `floor` is below `upto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marker {
    pub(crate) floor: i64,
    pub(crate) upto: i64,
    pub(crate) account: i64,
    /// The newest row when the last slice was folded, by any process: the number of rows since then determines how much
    /// is due.
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
    /// The changes that the round in progress has not reached yet, by account. All of it is up to `marker.upto`.
    round: HashMap<i64, NotedChanges>,
    /// The accounts of `round`, the last ones first.
    order: Vec<i64>,
    /// The changes since that round began, by account.
    newer: HashMap<i64, NotedChanges>,
    /// How many changes each of the two has.
    in_round: usize,
    in_newer: usize,
    /// The rows that `newer` is from.
    rows: usize,
    /// The largest number of changes that one account has in `newer`.
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
            let ahead = unpacked.changes.iter().map(|(account, _)| self.read_ahead(*account));
            _ = black_box(ahead.fold(0, u64::wrapping_add));
            self.make_room(connection, id, unpacked.changes.len())?;
            self.note(id, unpacked);
        }
        self.sort();
        Ok(if missed { Touched::All } else { Touched::Only(touched) })
    }

    /// Makes room for all accounts of a long journal before `row`, with this many changes, would make a map grow. Otherwise the
    /// first read after a crash would move each account several times.
    fn make_room(&mut self, connection: &Connection, row: i64, changes: usize) -> Result<()> {
        let noted = if row <= self.marker.upto { &mut self.round } else { &mut self.newer };
        if noted.len() < MANY || noted.capacity() - noted.len() >= changes {
            return Ok(());
        }
        // Each change has a number, and each account a row.
        let sql = "SELECT (SELECT max(id) FROM charge_journal) - ?1, (SELECT max(id) FROM account) - ?2";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        let known = i64::try_from(noted.len()).unwrap_or(i64::MAX);
        let (numbers, accounts): (Option<i64>, Option<i64>) =
            statement.query_row([self.seen, known], |found| Ok((found.get(0)?, found.get(1)?))).map_err(store_error)?;
        let more = numbers.unwrap_or_default().min(accounts.unwrap_or_default());
        noted.reserve(usize::try_from(more).unwrap_or_default());
        Ok(())
    }

    /// Adds a row that was just written.
    pub(crate) fn note(&mut self, id: i64, row: Row) {
        let (at, count) = (Timestamp::from_unix_millis(row.at), i64::try_from(row.changes.len()).unwrap_or(i64::MAX));
        // A round takes whole rows.
        let is_of_round = id <= self.marker.upto;
        self.rows += usize::from(!is_of_round);
        // The row's id is that of its last change.
        for (number, (account, change)) in (id - count + 1..).zip(row.changes) {
            if id <= self.marker.folded(account) {
                continue;
            }
            if let Change::Usage(usage) = &change {
                let day = usage.day(at);
                self.first_day = Some(self.first_day.map_or(day, |first| first.min(day)));
            }
            let noted = Noted { id: number, at, change };
            if is_of_round {
                self.round.entry(account).or_default().push(&noted);
                self.in_round += 1;
            } else {
                let changes = self.newer.entry(account).or_default();
                changes.push(&noted);
                self.longest = self.longest.max(changes.len());
                self.in_newer += 1;
            }
        }
        self.seen = self.seen.max(id);
    }

    /// Drops what was folded since the last marker.
    pub(crate) fn advance(&mut self, marker: Marker) {
        let last = std::mem::replace(&mut self.marker, marker);
        if marker.upto != last.upto {
            // The process that began a round had completed the last one, and took all rows that existed.
            self.round = std::mem::take(&mut self.newer);
            self.in_round = std::mem::take(&mut self.in_newer);
            (self.rows, self.longest) = (0, 0);
            self.order.clear();
            self.sort();
        }
        if marker.is_folding() && marker.floor < self.seen {
            debug_assert!(marker.floor <= last.upto, "another round was completed in between: {last:?}, {marker:?}");
            while let Some(account) = self.order.pop_if(|account| *account <= marker.account) {
                self.in_round -= self.round.remove(&account).map_or(0, |changes| changes.len());
            }
        } else {
            // The memory of so many changes is not kept.
            (self.round, self.order, self.in_round) = (HashMap::default(), Vec::new(), 0);
        }
        if self.len() == 0 {
            self.first_day = None;
        }
    }

    /// Puts the accounts of the round in order, if some were added.
    fn sort(&mut self) {
        if self.order.len() != self.round.len() {
            self.order = self.round.keys().copied().collect();
            self.order.sort_unstable_by_key(|account| Reverse(*account));
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

    /// How many changes there are.
    pub(crate) const fn len(&self) -> usize {
        self.in_round + self.in_newer
    }

    /// How many rows came since a round last began.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// How many accounts, and how many changes, the round in progress has still to fold.
    pub(crate) fn left_in_round(&self) -> (usize, usize) {
        (self.round.len(), self.in_round)
    }

    /// The changes of the accounts that the round in progress has not reached yet, by account.
    pub(crate) fn round(&self) -> impl Iterator<Item = (i64, &NotedChanges)> {
        self.order.iter().rev().filter_map(move |account| Some((*account, self.round.get(account)?)))
    }

    /// The newest row that is included or folded.
    pub(crate) const fn seen(&self) -> i64 {
        self.seen
    }

    /// Reads where the next change of an account will be noted. Called in a short loop over many accounts, so that the
    /// processor fetches several at once instead of waiting for each while changes are noted.
    pub(crate) fn read_ahead(&self, account: i64) -> u64 {
        self.newer.get(&account).map_or(0, NotedChanges::end).into()
    }

    /// The largest number of changes that one account has had since a round last began.
    pub(crate) const fn longest(&self) -> usize {
        self.longest
    }

    /// The changes of an account, oldest first.
    pub(crate) fn of(&self, account: i64) -> impl Iterator<Item = Noted> {
        self.noted(account).flat_map(NotedChanges::iter)
    }

    /// The changes of an account in the round in progress, and the newer ones. A round takes whole commits.
    fn noted(&self, account: i64) -> impl Iterator<Item = &NotedChanges> {
        [&self.round, &self.newer].into_iter().filter_map(move |noted| noted.get(&account))
    }

    /// The accounts that have changes, in order.
    pub(crate) fn accounts(&self) -> Vec<i64> {
        let mut accounts: Vec<i64> = self.round.keys().chain(self.newer.keys()).copied().collect();
        accounts.sort_unstable();
        accounts.dedup();
        accounts
    }

    /// The usage among an account's changes, oldest first.
    pub(crate) fn parts_of(&self, account: i64) -> impl Iterator<Item = UsagePart> {
        self.of(account).filter_map(|noted| match &noted.change {
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
        self.noted(account).try_fold(stored, |totals, changes| changes.totals(totals))
    }

    /// The rate-limit windows of an account, given those in the tables.
    pub(crate) fn windows(&self, account: i64, stored: RateWindows) -> RateWindows {
        self.noted(account).fold(stored, |windows, changes| changes.windows(windows))
    }

    /// An account's state for the charge rule, given that in the tables.
    pub(crate) fn state(&self, account: i64, stored: MeterState) -> Result<MeterState> {
        self.noted(account).try_fold(stored, |state, changes| changes.state(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(unfolded: &mut Unfolded, id: i64, accounts: &[i64]) {
        let changes = accounts.iter().map(|account| (*account, Change::Settings)).collect();
        unfolded.note(id, Row { after: unfolded.seen(), at: 0, changes });
    }

    fn ids(unfolded: &Unfolded, account: i64) -> Vec<i64> {
        unfolded.of(account).map(|noted| noted.id).collect()
    }

    #[test]
    fn a_round_takes_all_changes_and_later_ones_wait() {
        let mut unfolded = Unfolded::default();
        note(&mut unfolded, 3, &[1, 2, 1]);
        assert_eq!((unfolded.len(), unfolded.rows(), unfolded.longest()), (3, 1, 2));
        assert_eq!(unfolded.left_in_round(), (0, 0));

        let marker = unfolded.new_round();
        unfolded.advance(marker);
        assert_eq!((unfolded.left_in_round(), unfolded.rows(), unfolded.longest()), ((2, 3), 0, 0));
        note(&mut unfolded, 5, &[1, 3]);
        assert_eq!((ids(&unfolded, 1), unfolded.accounts(), unfolded.longest()), (vec![1, 3, 4], vec![1, 2, 3], 1));

        let marker = Marker { account: 1, ..marker };
        unfolded.advance(marker);
        assert_eq!((ids(&unfolded, 1), ids(&unfolded, 2), unfolded.left_in_round()), (vec![4], vec![2], (1, 1)));
        unfolded.advance(Marker { floor: 3, account: 0, ..marker });
        assert_eq!((unfolded.accounts(), unfolded.len(), unfolded.left_in_round()), (vec![1, 3], 2, (0, 0)));
    }

    #[test]
    fn a_long_journal_gets_room_for_its_accounts_and_no_more() {
        let connection = Connection::open_in_memory().unwrap();
        let tables =
            "CREATE TABLE charge_journal (id INTEGER PRIMARY KEY); CREATE TABLE account (id INTEGER PRIMARY KEY)";
        connection.execute_batch(tables).unwrap();
        let known: Vec<i64> = (1..).take(MANY).collect();
        let newest = known[MANY - 1];
        // changes that are not read yet, accounts with higher numbers, accounts that fit then
        let table =
            [(0, 1_000_000, MANY), (1_000_000, 0, MANY), (90_000, 1_000_000, 90_000), (1_000_000, 90_000, 90_000)];
        for (changes, accounts, expected) in table {
            connection.execute("INSERT OR REPLACE INTO charge_journal VALUES (?1)", [newest + changes]).unwrap();
            connection.execute("INSERT OR REPLACE INTO account VALUES (?1)", [newest + accounts]).unwrap();
            let mut unfolded = Unfolded::default();
            note(&mut unfolded, newest, &known);
            unfolded.make_room(&connection, newest + 1, usize::MAX).unwrap();
            let room = unfolded.newer.capacity();
            assert!((expected..4 * expected).contains(&room), "{changes} changes, {accounts} accounts: {room}");
            connection.execute_batch("DELETE FROM charge_journal; DELETE FROM account").unwrap();
        }
    }

    /// As a reader that was idle sees it.
    #[test]
    fn what_other_processes_folded_meanwhile_is_dropped() {
        let mut unfolded = Unfolded::default();
        note(&mut unfolded, 3, &[1, 2, 3]);
        let marker = Marker { floor: 5, upto: 9, account: 1, paid: 9 };
        unfolded.advance(marker);
        assert_eq!((unfolded.len(), unfolded.accounts()), (0, vec![]));
        // Row 5 is folded. Of row 7, account 1 is.
        note(&mut unfolded, 5, &[1, 2]);
        note(&mut unfolded, 7, &[1, 2]);
        note(&mut unfolded, 11, &[1, 4]);
        assert_eq!([1, 2, 4].map(|account| ids(&unfolded, account)), [vec![10], vec![7], vec![11]]);
        assert_eq!((unfolded.left_in_round(), unfolded.rows()), ((1, 1), 1));
    }
}
