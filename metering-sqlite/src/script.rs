//! Runs the scripts of `metering-sql`. Statements never wait, so a script is polled once, on the thread of its connection.

use std::sync::Arc;

use metering_core::access::{KeyNumber, Totals};
use metering_core::backend::OperationsSums;
use metering_core::backend::decision::EntryChanges;
use metering_core::charging::RateWindows;
use metering_core::events::NewEvent;
use metering_core::money::NewLedgerEntry;
use metering_core::usage::DayRange;
use metering_core::{Day, Timestamp, UsageLine};
use metering_sql::{BoxFuture, Erased, Executor, KeyDay, Row, Script, UsagePart, Value, now, words};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params_from_iter};
use send_wrapper::SendWrapper;

use crate::error::{Result, corrupt, store_error};
use crate::events::outbox;
use crate::journal::Snapshot;
use crate::journal::sequence::record_settings;
use crate::money::ledger;
use crate::operators;
use crate::usage::lines::number_of;
use crate::usage::parts::parts;

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
        done(lines.iter().map(|line| number_of(&self.0, line).map(|(number, _)| number)).collect())
    }

    fn next_ids(&mut self, count: usize) -> BoxFuture<'_, metering_sql::Result<Vec<Option<i64>>>> {
        done(Ok(vec![None; count]))
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
        let written = changes.iter().try_for_each(|changes| ledger::write(&self.0, changes));
        self.0.wrote_journal();
        done(written)
    }

    fn write_events<'a>(
        &'a mut self,
        account: Option<i64>,
        events: &'a [NewEvent],
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        done(events.iter().try_for_each(|event| outbox::write(&self.0, account, event)))
    }

    fn usage(&mut self, account: i64, days: DayRange) -> BoxFuture<'_, metering_sql::Result<Vec<UsagePart>>> {
        done(parts(&self.0, account, days))
    }

    fn add_usage<'a>(
        &'a mut self,
        days: DayRange,
        sums: &'a mut OperationsSums<i64, i64>,
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        done(operators::add_usage(&self.0, days, sums))
    }

    fn key_usage<'a>(
        &'a mut self,
        account: i64,
        _keys: &'a [KeyNumber],
        since: Day,
    ) -> BoxFuture<'a, metering_sql::Result<Vec<KeyDay>>> {
        let last = Day::from_unix_days(i64::MAX);
        let found = parts(&self.0, account, DayRange { first: since, last });
        let day = |part: UsagePart| KeyDay { key: part.key, day: part.day, calls: part.calls, atoms: part.atoms };
        done(found.map(|found| found.into_iter().map(day).collect()))
    }

    /// It is in the journal.
    fn unfolded_usage(&mut self, account: Option<i64>) -> BoxFuture<'_, metering_sql::Result<Vec<(i64, KeyDay)>>> {
        done(self.0.unfolded().map(|unfolded| {
            let accounts: Vec<i64> = match account {
                Some(account) => vec![account],
                None => unfolded.accounts().map(|(account, _)| account).collect(),
            };
            let parts = |account| {
                unfolded.usage_of(account).map(move |(day, usage)| {
                    let (calls, atoms) = (usage.added_calls(), usage.added_atoms().into());
                    (account, KeyDay { key: usage.key, day, calls, atoms })
                })
            };
            accounts.into_iter().flat_map(parts).collect()
        }))
    }

    fn settings_changed(&mut self, account: i64) -> BoxFuture<'_, metering_sql::Result<()>> {
        let recorded = record_settings(&self.0, account);
        self.0.wrote_journal();
        done(recorded)
    }
}

/// What the words of statements stand for. SQLite compares bytes anyway, and only one transaction writes.
const WORDS: [(&str, &str); 19] = [
    ("{bytes}", ""),
    ("{lock m}", ""),
    ("{lock webhook}", ""),
    ("{key_id}", "public_id"),
    ("{budget}", "budget_limit"),
    ("{join}", "CROSS JOIN"),
    ("{is}", "IS"),
    ("{no_account}", "NULL"),
    ("{webhook_account}", "coalesce(webhook.account, 0)"),
    ("{state,}", ""),
    ("{old_secret_until}", "old_secret_until"),
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
fn names_of(statement: &rusqlite::Statement<'_>) -> Arc<[String]> {
    statement.column_names().map(str::to_owned).collect()
}

/// The columns of a row, as many as there are names.
fn row_of(row: &rusqlite::Row<'_>, names: &Arc<[String]>) -> Result<Row> {
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
