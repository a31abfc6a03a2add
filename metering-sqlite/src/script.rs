//! Runs the scripts of `metering-sql`. Statements never wait, so a script is polled once, on the thread of its connection.

use metering_core::StoreError;
use metering_sql::{Backend, BoxFuture, Erased, Executor, Row, Script, Value, now};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params_from_iter};
use send_wrapper::SendWrapper;

use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::store::SqliteStore;

/// Statements of one transaction.
///
/// A connection stays on its thread, while scripts are `Send` because other backends need that. The wrapper would panic
/// on another thread.
pub(crate) struct Statements<'a, 's>(SendWrapper<&'a Snapshot<'s>>);

impl<'a, 's> Statements<'a, 's> {
    pub(crate) fn new(snapshot: &'a Snapshot<'s>) -> Self {
        Self(SendWrapper::new(snapshot))
    }

    fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let mut statement = self.0.prepare_cached(&dialect(sql)).map_err(store_error)?;
        let width = statement.column_count();
        let mut rows = statement.query(params_from_iter(values.iter().map(Parameter))).map_err(store_error)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(store_error)? {
            found.push(row_of(row, width)?);
        }
        Ok(found)
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
        let rows = self.rows(sql, values).map_err(Into::into);
        Box::pin(std::future::ready(rows))
    }

    fn execute<'a>(&'a mut self, sql: &'a str, rows: &'a [Vec<Value>]) -> BoxFuture<'a, metering_sql::Result<u64>> {
        let changed = self.run(sql, rows).map_err(Into::into);
        Box::pin(std::future::ready(changed))
    }
}

/// SQLite compares bytes anyway, and only one transaction writes.
fn dialect(sql: &str) -> String {
    sql.replace("{bytes}", "").replace("{lock}", "")
}

/// The columns of a row.
pub(crate) fn row_of(row: &rusqlite::Row<'_>, width: usize) -> Result<Row> {
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
    Ok(Row::new((0..width).map(value).collect::<Result<_>>()?))
}

struct Parameter<'v>(&'v Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            Value::Integer(number) => number.map_or(ValueRef::Null, ValueRef::Integer),
            Value::Text(text) => text.as_ref().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())),
            Value::Bytes(bytes) => bytes.as_ref().map_or(ValueRef::Null, |bytes| ValueRef::Blob(bytes)),
            Value::Boolean(truth) => truth.map_or(ValueRef::Null, |truth| ValueRef::Integer(truth.into())),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// Runs a script on a snapshot.
fn run(snapshot: &Snapshot<'_>, script: &Script) -> Result<Erased> {
    now(script(&mut Statements::new(snapshot)))
}

impl Backend for SqliteStore {
    fn write(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.writer.write(move |snapshot| run(snapshot, &script)))
    }

    fn read(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.read(move |snapshot| run(snapshot, &script)))
    }

    fn snapshot(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.read(move |snapshot| run(snapshot, &script)))
    }
}
