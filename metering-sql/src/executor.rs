//! Runs the statements of one transaction.

use std::future::ready;

use metering_core::access::{KeyNumber, Totals};
use metering_core::backend::OperationsSums;
use metering_core::backend::decision::EntryChanges;
use metering_core::charging::{RateWindows, UsageChange};
use metering_core::events::NewEvent;
use metering_core::money::NewLedgerEntry;
use metering_core::usage::DayRange;
use metering_core::{Day, Timestamp, UsageLine};

use crate::boxed::BoxFuture;
use crate::fault::Result;
use crate::row::Row;
use crate::value::Value;

/// Whether to make a change, or only count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Make it.
    Write,
    /// Only count what it would change.
    DryRun,
}

/// An account's usage on one day by one line and key, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsagePart {
    /// The day.
    pub day: Day,
    /// The number of the usage line.
    pub line: i64,
    /// The key.
    pub key: KeyNumber,
    /// Accepted requests.
    pub calls: u64,
    /// The charges for them, minus refunds, in atoms.
    pub atoms: i128,
}

/// Where a log begins: what charges have left when they are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChargesStopped {
    /// The newest row of the charge journal.
    pub journal: i64,
    /// The row numbers of accounts whose meters lag behind the journal.
    pub unfolded: Vec<i64>,
}

/// A row of the charge journal.
#[derive(Debug, PartialEq, Eq)]
pub struct JournalCommit {
    /// Its id.
    pub id: i64,
    /// When it was committed.
    pub at: Timestamp,
    /// The usage in it, with the numbers of accounts and lines, and without paths. It may be none.
    pub usage: Vec<UsageChange<i64, i64>>,
}

/// Runs the statements of one transaction, or of one read.
///
/// The text of a statement is the same for all backends. Parameters are `?1`, `?2` and so on. These words in braces are
/// replaced by what differs:
///
/// | word | meaning | SQLite | PostgreSQL |
/// |---|---|---|---|
/// | `{bytes}` | after a text column that is compared or in `ORDER BY`: compares bytes | nothing | `COLLATE "C"` |
/// | `{lock m}` | at the end of a `SELECT`: the rows of the table `m` stay as they are until the transaction ends | nothing | `FOR UPDATE OF m` |
/// | `{lock webhook}` | the same for the table `webhook` | nothing | `FOR UPDATE OF webhook` |
/// | `{in ?1}` | is in a list of integers, which is a parameter | `IN (SELECT value FROM json_each(?1))` | `= ANY ($1)` |
/// | `{in_bytes ?1}` | is in a list of bytes, which is a parameter | `IN (SELECT unhex(value) FROM json_each(?1))` | `= ANY ($1)` |
/// | `{join}` | joins in the order written | `CROSS JOIN` | `JOIN` |
/// | `{no_account}` | what events and deliveries of no account have as their account | `NULL` | `0` |
/// | `{is}` | equals, for such a column | `IS` | `=` |
/// | `{webhook_account}` | the account of a webhook, as an index has it | `coalesce(webhook.account, 0)` | `webhook.account` |
/// | `{old_secret_until}` | the column of `webhook` for when the old secret expires | `old_secret_until` | `old_secret_expires_at` |
/// | `{state,}` | in `ORDER BY` for deliveries to a webhook: the state, if the index has it | nothing | `state,` |
/// | `{key_id}` | the column of `api_key` with the public id | `public_id` | `id` |
/// | `{activity}` | the table of recent usage | `recent_activity` | `activity` |
/// | `{held}` | what the row `m` of `meter` says is held, or NULL | `m.held` | `CAST(NULL AS BIGINT)` |
/// | `{entries}` | how many entries of account `a` are exported ([`AccountRecord::entries`](crate::transfer::AccountRecord::entries)) | its rows of `temp.recent` and older ones of `ledger` | follows from `m.entries` |
/// | `{newer}` | how many newer entries the account of a row of `ledger` has ([`LedgerRecord::newer`](crate::transfer::LedgerRecord::newer)) | from `temp.recent` | follows from `meter.entries` |
/// | `{of_days}` | the column `day` of `usage_daily` is from `?2` to `?3` | is in a list of the days that have usage, since its index begins with the day | `day BETWEEN ?2 AND ?3` |
/// | `{place}` | a function: what is stored of a number without a sign | nothing | `int8send` |
/// | `{entry}` | the column of `ledger` that counts up with `id` within an account, and is in an index | `id` | `entry` |
/// | `{integer}` | in a script of the [schema](crate::schema): the type of numbers | `INTEGER` | `BIGINT` |
/// | `{blob}` | in such a script: the type of bytes | `BLOB` | `BYTEA` |
/// | `{keyed}` | in such a script: after a table whose rows have a key of their own | ` STRICT, WITHOUT ROWID` | nothing |
/// | `{serial}` | in such a script: the type of a key that the database counts | `INTEGER PRIMARY KEY` | `BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY` |
/// | `{audit_guard}` | in such a script: makes the triggers of the audit log allow changes while `audit_exception` has a row | creates them again | replaces their function |
/// | `{budget}` | the column of `api_key` with the budget's limit | `budget_limit` | `budget` |
///
/// The other methods are for what cold writes share with the charge path, which each backend has in its own way. Those with a
/// body are for backends whose charges write tables only, and cache nothing.
pub trait Executor: Send {
    /// The rows of a query.
    fn query<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> BoxFuture<'a, Result<Vec<Row>>>;

    /// Passes the rows of a query to `read` one by one: there may be too many to hold.
    fn each<'a>(
        &'a mut self,
        sql: &'a str,
        values: &'a [Value],
        read: &'a mut (dyn FnMut(&Row) -> Result<()> + Send),
    ) -> BoxFuture<'a, Result<()>>;

    /// Runs one statement once for each of `rows`, in order, and returns how many rows of the database changed. A backend
    /// on a network sends all of them in one round trip.
    fn execute<'a>(&'a mut self, sql: &'a str, rows: &'a [Vec<Value>]) -> BoxFuture<'a, Result<u64>>;

    /// The totals of an account, given those in its row of `meter`.
    ///
    /// # Errors
    /// When the sums are out of range.
    fn totals(&mut self, _account: i64, stored: Totals) -> Result<Totals> {
        Ok(stored)
    }

    /// The usage that counts towards the rate limits of an account, given its row of `meter`.
    ///
    /// # Errors
    /// When what charges wrote cannot be read.
    fn windows(&mut self, _account: i64, stored: RateWindows) -> Result<RateWindows> {
        Ok(stored)
    }

    /// The numbers of usage lines, in order. New ones are written.
    /// [`usage_lines::numbers_of`](crate::usage_lines::numbers_of) does so where transactions run one at a time.
    fn line_numbers<'a>(&'a mut self, lines: &'a [&'a UsageLine]) -> BoxFuture<'a, Result<Vec<i64>>>;

    /// Ids for `count` new rows, in ascending order; `None` where the table assigns them.
    fn next_ids(&mut self, count: usize) -> BoxFuture<'_, Result<Vec<Option<i64>>>> {
        Box::pin(ready(Ok(vec![None; count])))
    }

    /// Writes ledger entries, each with its time, of an account that was just inserted with totals that include them.
    fn append_entries<'a>(
        &'a mut self,
        account: i64,
        entries: &'a [(NewLedgerEntry, Timestamp)],
    ) -> BoxFuture<'a, Result<()>>;

    /// Writes ledger entries with their events, and what they add to the totals of their accounts, whose meters are
    /// locked. At most one for each account.
    fn post_entries<'a>(&'a mut self, changes: &'a [EntryChanges<i64>]) -> BoxFuture<'a, Result<()>>;

    /// Writes events, each with a delivery for every webhook that receives it. `None` is for events of no account.
    /// [`outbox::write`](crate::outbox::write) does so one statement at a time.
    fn write_events<'a>(&'a mut self, account: Option<i64>, events: &'a [NewEvent]) -> BoxFuture<'a, Result<()>>;

    /// Adds the rows of `usage_daily` of a range of days to the sums of the report about the business.
    /// [`usage::add_rows`](crate::usage::add_rows) does so one row at a time.
    fn add_daily_totals<'a>(
        &'a mut self,
        days: DayRange,
        sums: &'a mut OperationsSums<i64, i64>,
    ) -> BoxFuture<'a, Result<()>>;

    /// The usage that is not in `usage_daily` yet, of one account or of all, with the row numbers of the accounts. A day,
    /// line and key may have several parts.
    fn unfolded_usage(&mut self, _account: Option<i64>) -> BoxFuture<'_, Result<Vec<(i64, UsagePart)>>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    /// Like [`Executor::unfolded_usage`], of all accounts, by day and account: of the first `pairs` of a day and an account
    /// from `first` on, until the day `last`.
    fn first_unfolded_usage(
        &mut self,
        _first: (Day, i64),
        _last: Day,
        _pairs: i64,
    ) -> BoxFuture<'_, Result<Vec<(i64, UsagePart)>>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    /// Waits for all charges in progress and keeps others out until the transaction ends.
    fn stop_charges(&mut self) -> BoxFuture<'_, Result<ChargesStopped>> {
        Box::pin(ready(Ok(ChargesStopped::default())))
    }

    /// Rows of the charge journal after `after`, in order, until they have `most` changes of usage: the last one may have
    /// more. Backends without a journal write [`log::note_commit`](crate::log::note_commit) instead.
    fn journal(&mut self, _after: i64, _most: usize) -> BoxFuture<'_, Result<Vec<JournalCommit>>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    /// The log has the rows of the journal up to `taken`. Those that the tables have too may be deleted.
    fn trim_journal(&mut self, _taken: i64) -> BoxFuture<'_, Result<()>> {
        Box::pin(ready(Ok(())))
    }

    /// Replaces the paths of requests in an account's recent activity of `until` or earlier by the templates of their routes,
    /// unless it is only to count them, and returns how many entries that are. Those that are in no table yet may be left
    /// out while the account is not erased.
    fn erase_paths(&mut self, account: i64, until: Timestamp, mode: WriteMode) -> BoxFuture<'_, Result<u64>>;

    /// From now on in this transaction, overwrites deleted and replaced data in the file, if the database can.
    ///
    /// # Errors
    /// When the database refuses.
    fn overwrite_deleted(&mut self) -> Result<()> {
        Ok(())
    }

    /// Makes every process read an account's keys and settings again before its next charge.
    fn settings_changed(&mut self, _account: i64) -> BoxFuture<'_, Result<()>> {
        Box::pin(ready(Ok(())))
    }
}
