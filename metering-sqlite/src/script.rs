//! Runs the scripts of `metering-sql`. Statements never wait, so a script is polled once, on the thread of its connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use metering_core::access::Totals;
use metering_core::backend::OperationsSums;
use metering_core::backend::decision::EntryChanges;
use metering_core::charging::RateWindows;
use metering_core::events::NewEvent;
use metering_core::money::NewLedgerEntry;
use metering_core::usage::DayRange;
use metering_core::{Day, Timestamp, UsageLine};
use metering_sql::{
    BoxFuture, ChargesStopped, Erased, Executor, JournalCommit, Row, Script, UsagePart, Value, WriteMode, accounts,
    now, outbox, usage, usage_lines, words,
};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params_from_iter};
use send_wrapper::SendWrapper;

use crate::error::{Result, corrupt, store_error};
use crate::journal::sequence::record_settings;
use crate::journal::{Snapshot, Unfolded, unlogged};
use crate::money::ledger;
use crate::usage::erasure;

/// Statements of one transaction.
///
/// A connection stays on its thread, while scripts are `Send` because other backends need that. The wrapper would panic
/// on another thread.
pub(crate) struct Statements<'a, 's>(SendWrapper<&'a Snapshot<'s>>);

impl<'a, 's> Statements<'a, 's> {
    pub(crate) fn new(snapshot: &'a Snapshot<'s>) -> Self {
        Self(SendWrapper::new(snapshot))
    }

    fn rows(
        &self,
        sql: &str,
        values: &[Value],
        mut read: impl FnMut(Row) -> metering_sql::Result<()>,
    ) -> metering_sql::Result<()> {
        let mut statement = self.0.prepare_cached(&dialect(sql)).map_err(store_error)?;
        let names = names_of(&statement);
        let mut rows = statement.query(params_from_iter(values.iter().map(Parameter))).map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            read(row_of(row, &names)?)?;
        }
        Ok(())
    }

    fn run(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        let mut changed = 0;
        let mut statement = self.0.prepare_cached(&dialect(sql)).map_err(store_error)?;
        for values in rows {
            let rows = statement.execute(params_from_iter(values.iter().map(Parameter))).map_err(store_error)?;
            changed += u64::try_from(rows).unwrap_or(u64::MAX);
        }
        Ok(changed)
    }
}

impl Executor for Statements<'_, '_> {
    fn query<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> BoxFuture<'a, metering_sql::Result<Vec<Row>>> {
        let mut found = Vec::new();
        let read = self.rows(sql, values, |row| {
            found.push(row);
            Ok(())
        });
        ready(read.map(|()| found))
    }

    fn each<'a>(
        &'a mut self,
        sql: &'a str,
        values: &'a [Value],
        read: &'a mut (dyn FnMut(&Row) -> metering_sql::Result<()> + Send),
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        ready(self.rows(sql, values, |row| read(&row)))
    }

    fn execute<'a>(&'a mut self, sql: &'a str, rows: &'a [Vec<Value>]) -> BoxFuture<'a, metering_sql::Result<u64>> {
        done(self.run(sql, rows))
    }

    fn totals(&mut self, account: i64, stored: Totals) -> metering_sql::Result<Totals> {
        Ok(self.0.unfolded()?.totals(account, stored)?)
    }

    fn windows(&mut self, account: i64, stored: RateWindows) -> metering_sql::Result<RateWindows> {
        Ok(self.0.unfolded()?.windows(account, stored))
    }

    fn line_numbers<'a>(&'a mut self, lines: &'a [&'a UsageLine]) -> BoxFuture<'a, metering_sql::Result<Vec<i64>>> {
        Box::pin(usage_lines::numbers_of(self, lines))
    }

    fn append_entries<'a>(
        &'a mut self,
        account: i64,
        entries: &'a [(NewLedgerEntry, Timestamp)],
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        let append = |(entry, at): &(_, _)| ledger::append(&self.0, account, entry, *at).map(drop);
        done(entries.iter().try_for_each(append))
    }

    fn post_entries<'a>(&'a mut self, changes: &'a [EntryChanges<i64>]) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(async move {
            for changes in changes {
                ledger::write(&self.0, changes)?;
                self.0.wrote_journal();
                // The entry's row of the journal names the account, so no cache keeps the old level.
                accounts::change_alert_level(self, changes.row, changes.account.alert.raised).await?;
                outbox::write(self, Some(changes.row), &changes.events).await?;
            }
            Ok(())
        })
    }

    fn write_events<'a>(
        &'a mut self,
        account: Option<i64>,
        events: &'a [NewEvent],
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(outbox::write(self, account, events))
    }

    fn add_daily_totals<'a>(
        &'a mut self,
        days: DayRange,
        sums: &'a mut OperationsSums<i64, i64>,
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(usage::add_rows(self, days, sums))
    }

    /// It is in the journal.
    fn unfolded_usage(&mut self, account: Option<i64>) -> BoxFuture<'_, metering_sql::Result<Vec<(i64, UsagePart)>>> {
        done(self.0.unfolded().map(|unfolded| {
            let accounts: Vec<i64> = match account {
                Some(account) => vec![account],
                None => unfolded.accounts(),
            };
            let parts = |account| unfolded.parts_of(account).map(move |part| (account, part));
            accounts.into_iter().flat_map(parts).collect()
        }))
    }

    fn first_unfolded_usage(
        &mut self,
        first: (Day, i64),
        last: Day,
        pairs: i64,
    ) -> BoxFuture<'_, metering_sql::Result<Vec<(i64, UsagePart)>>> {
        done(self.0.unfolded().map(|unfolded| first_parts(&unfolded, first, last, pairs)))
    }

    /// A write is the only one anyway.
    fn stop_charges(&mut self) -> BoxFuture<'_, metering_sql::Result<ChargesStopped>> {
        done(
            self.0
                .unfolded()
                .map(|unfolded| ChargesStopped { journal: unfolded.seen(), unfolded: unfolded.accounts() }),
        )
    }

    fn journal(&mut self, after: i64, most: usize) -> BoxFuture<'_, metering_sql::Result<Vec<JournalCommit>>> {
        done(unlogged::commits(&self.0, after, most))
    }

    fn trim_journal(&mut self, taken: i64) -> BoxFuture<'_, metering_sql::Result<()>> {
        done(unlogged::trim(&self.0, taken))
    }

    fn erase_paths(
        &mut self,
        account: i64,
        until: Timestamp,
        mode: WriteMode,
    ) -> BoxFuture<'_, metering_sql::Result<u64>> {
        done(erasure::erase_paths(&self.0, account, until, mode))
    }

    /// Until the connection is closed: erasures are rare.
    fn overwrite_deleted(&mut self) -> metering_sql::Result<()> {
        Ok(self.0.pragma_update(None, "secure_delete", true).map_err(store_error)?)
    }

    fn settings_changed(&mut self, account: i64) -> BoxFuture<'_, metering_sql::Result<()>> {
        let recorded = record_settings(&self.0, account);
        self.0.wrote_journal();
        done(recorded)
    }
}

/// The parts of the first pairs of a day and an account.
fn first_parts(unfolded: &Unfolded, first: (Day, i64), last: Day, pairs: i64) -> Vec<(i64, UsagePart)> {
    if unfolded.first_day().is_none_or(|day| day > last) {
        return Vec::new();
    }
    let most = usize::try_from(pairs).unwrap_or(usize::MAX);
    let mut found: BTreeMap<(Day, i64), Vec<UsagePart>> = BTreeMap::new();
    for account in unfolded.accounts() {
        for part in unfolded.parts_of(account).filter(|part| part.day <= last && (part.day, account) >= first) {
            found.entry((part.day, account)).or_default().push(part);
        }
        while found.len() > most {
            found.pop_last();
        }
    }
    found.into_iter().flat_map(|((_, account), parts)| parts.into_iter().map(move |part| (account, part))).collect()
}

/// The replacements of the words in statements. SQLite compares bytes anyway, and only one transaction writes.
const WORDS: [(&str, &str); 25] = [
    ("{bytes}", ""),
    ("{lock m}", ""),
    ("{lock webhook}", ""),
    ("{key_id}", "public_id"),
    ("{budget}", "budget_limit"),
    ("{integer}", "INTEGER"),
    ("{blob}", "BLOB"),
    ("{keyed}", " STRICT, WITHOUT ROWID"),
    ("{serial}", "INTEGER PRIMARY KEY"),
    ("{audit_guard}", include_str!("audit_guard.sql")),
    ("{join}", "CROSS JOIN"),
    ("{is}", "IS"),
    ("{no_account}", "NULL"),
    ("{webhook_account}", "coalesce(webhook.account, 0)"),
    ("{state,}", ""),
    ("{old_secret_until}", "old_secret_until"),
    ("{of_days}", OF_DAYS),
    ("{place}", ""),
    ("{entry}", "id"),
    ("{activity}", "recent_activity"),
    ("{held}", "m.held"),
    ("{entries}", ENTRIES),
    ("{newer}", "(SELECT r.newer FROM temp.recent r WHERE r.id = ledger.id)"),
    ("{in_bytes ", "IN (SELECT unhex(value) FROM json_each("),
    ("{in ", "IN (SELECT value FROM json_each("),
];

const ENTRIES: &str = "(SELECT count(*) FROM ledger l WHERE l.account = a.id) \
     + (SELECT count(*) FROM temp.recent r WHERE r.account = a.id AND r.is_usage = 1)";

/// One seek for each day that has usage of any account, no matter how much. A range of days would be read as a whole.
const OF_DAYS: &str = "day IN (WITH RECURSIVE used (day) AS ( \
       SELECT (SELECT d.day FROM usage_daily d WHERE d.day >= ?2 ORDER BY d.day LIMIT 1) UNION ALL \
       SELECT (SELECT d.day FROM usage_daily d WHERE d.day > used.day ORDER BY d.day LIMIT 1) FROM used \
       WHERE used.day < ?3) SELECT used.day FROM used WHERE used.day <= ?3)";

pub(crate) fn dialect(sql: &str) -> String {
    words::replaced(sql, &WORDS, "))")
}

/// A future that is ready.
fn done<'a, T: Send + 'a>(result: Result<T>) -> BoxFuture<'a, metering_sql::Result<T>> {
    ready(result.map_err(Into::into))
}

fn ready<'a, T: Send + 'a>(result: metering_sql::Result<T>) -> BoxFuture<'a, metering_sql::Result<T>> {
    Box::pin(std::future::ready(result))
}

/// The names of the columns of a query.
pub(crate) fn names_of(statement: &rusqlite::Statement<'_>) -> Arc<[String]> {
    statement.column_names().map(str::to_owned).collect()
}

/// The columns of a row, as many as there are names.
pub(crate) fn row_of(row: &rusqlite::Row<'_>, names: &Arc<[String]>) -> Result<Row> {
    let value = |index: usize| {
        Ok(match row.get_ref(index).map_err(store_error)? {
            ValueRef::Null => Value::Integer(None),
            ValueRef::Integer(number) => Value::Integer(Some(number)),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|_| corrupt("a text is not UTF-8"))?;
                Value::Text(Some(text.to_owned()))
            }
            ValueRef::Blob(bytes) => Value::Bytes(Some(bytes.to_vec())),
            ValueRef::Real(_) => return Err(corrupt("a column holds a floating-point number")),
        })
    };
    Ok(Row::new(Arc::clone(names), (0..names.len()).map(value).collect::<Result<_>>()?))
}

struct Parameter<'v>(&'v Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            Value::Integer(number) => number.map_or(ValueRef::Null, ValueRef::Integer),
            Value::Text(text) => text.as_ref().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())),
            Value::Bytes(bytes) => bytes.as_ref().map_or(ValueRef::Null, |bytes| ValueRef::Blob(bytes)),
            Value::Integers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                return Ok(ToSqlOutput::from(format!("[{}]", numbers.join(","))));
            }
            Value::ManyBytes(many) => {
                let many: Vec<String> = many.iter().map(|bytes| format!("\"{}\"", hex(bytes))).collect();
                return Ok(ToSqlOutput::from(format!("[{}]", many.join(","))));
            }
            Value::Boolean(truth) => truth.map_or(ValueRef::Null, |truth| ValueRef::Integer(truth.into())),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a script on a snapshot.
pub(crate) fn run(snapshot: &Snapshot<'_>, script: &Script) -> Result<Erased> {
    now(script(&mut Statements::new(snapshot)))
}

#[cfg(test)]
mod tests {
    use metering_sql::usage::OF_ACCOUNT;
    use rusqlite::{Connection, StatementStatus, params};

    use super::dialect;
    use crate::migrations::migrate;

    /// No matter how much other accounts used on those days, and how long the range is.
    #[test]
    fn usage_of_an_account_is_a_seek_for_each_day() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let rows = "PRAGMA foreign_keys = off; \
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 30000) \
            INSERT INTO usage_daily (day, account, line, key, calls, amount) SELECT n % 3 * 1000, n / 3, 1, 0, 1, 1 FROM n";
        connection.execute_batch(rows).unwrap();
        for (first, last, expected) in
            [(i64::MIN, i64::MAX, 3), (0, 2_000, 3), (1, 1_000, 1), (1, 999, 0), (2_001, 9_999, 0)]
        {
            let mut statement = connection.prepare(&dialect(OF_ACCOUNT)).unwrap();
            let found = statement.query_map(params![5, first, last], |row| row.get::<_, i64>(0)).unwrap().count();
            let steps = statement.get_status(StatementStatus::VmStep);
            assert!(found == expected && steps < 250, "{found} from {first} to {last}, {steps} steps");
        }
    }
}
