//! Runs statements of `metering-sql`: their words in PostgreSQL's dialect, values, and rows.

use std::error::Error;
use std::sync::Arc;

use futures_util::future::try_join_all;
use metering_core::StoreError;
use metering_core::usage::ACTIVITY_KEPT;
use metering_sql::{Fault, Row, Value, words};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::connection::session::GenericClient;
use crate::connection::value;
use crate::error::{Failure, Result, corrupt};
use crate::rows::{all, each};

/// Statements on a connection or in a transaction.
pub(crate) struct Statements<'c, C>(pub(crate) &'c C);

impl<C: GenericClient> Statements<'_, C> {
    pub(crate) async fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let values: Vec<Parameter<'_>> = values.iter().map(Parameter).collect();
        let values: Vec<&dyn value::Value> = values.iter().map(|value| value as _).collect();
        let rows = all(self.0, &dialect(sql), &values).await?;
        let names = rows.first().map(names_of).unwrap_or_default();
        rows.iter().map(|row| row_of(row, &names)).collect()
    }

    pub(crate) async fn pass(
        &self,
        sql: &str,
        values: &[Value],
        read: &mut (dyn FnMut(&Row) -> metering_sql::Result<()> + Send),
    ) -> Result<()> {
        let values: Vec<Parameter<'_>> = values.iter().map(Parameter).collect();
        let values: Vec<&dyn value::Value> = values.iter().map(|value| value as _).collect();
        let mut names = None;
        let read = |row: &tokio_postgres::Row| {
            let names = names.get_or_insert_with(|| names_of(row));
            Ok(read(&row_of(row, names)?)?)
        };
        each(self.0, &dialect(sql), &values, read).await
    }

    /// The statements are pipelined: all are sent before the first response comes.
    pub(crate) async fn run(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        let sql = dialect(sql);
        let statement = &self.0.prepare(&sql).await?;
        let sent = rows.iter().map(|row| async move {
            let values: Vec<Parameter<'_>> = row.iter().map(Parameter).collect();
            let values: Vec<&dyn value::Value> = values.iter().map(|value| value as _).collect();
            self.0.execute(statement, &values).await
        });
        Ok(try_join_all(sent).await?.iter().sum())
    }
}

/// The replacements of the words in statements.
const WORDS: [(&str, &str); 25] = [
    ("{bytes}", "COLLATE \"C\""),
    ("{lock m}", "FOR UPDATE OF m"),
    ("{lock webhook}", "FOR UPDATE OF webhook"),
    ("{key_id}", "id"),
    ("{budget}", "budget"),
    ("{integer}", "BIGINT"),
    ("{blob}", "BYTEA"),
    ("{keyed}", ""),
    ("{serial}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("{audit_guard}", include_str!("audit_guard.sql")),
    ("{join}", "JOIN"),
    ("{is}", "="),
    ("{no_account}", "0::BIGINT"),
    ("{webhook_account}", "webhook.account"),
    ("{state,}", "state,"),
    ("{old_secret_until}", "old_secret_expires_at"),
    ("{of_days}", "day BETWEEN ?2 AND ?3"),
    ("{place}", "int8send"),
    ("{entry}", "entry"),
    ("{activity}", "activity"),
    ("{held}", "CAST(NULL AS BIGINT)"),
    ("{entries}", ENTRIES),
    ("{newer}", NEWER),
    ("{in_bytes ", "= ANY ("),
    ("{in ", "= ANY ("),
];

const _: () = assert!(ACTIVITY_KEPT == 1_000, "the SQL below has this number as a literal");

const ENTRIES: &str = "least(m.entries, 1000) + (SELECT count(*) FROM ledger l \
     WHERE l.account = a.id AND l.entry <= m.entries - 1000)";

const NEWER: &str = "(SELECT CASE WHEN m.entries - ledger.entry < 1000 THEN m.entries - ledger.entry END \
     FROM meter m WHERE m.account = ledger.account)";

pub(crate) fn dialect(sql: &str) -> String {
    words::replaced(sql, &WORDS, ")").replace('?', "$")
}

pub(crate) fn fault(failure: Failure) -> Fault {
    match failure {
        Failure::Store(error) => Fault::Store(error),
        failure => Fault::Driver(Box::new(failure)),
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => Self::Store(error),
            Fault::Driver(failure) => match failure.downcast() {
                Ok(failure) => *failure,
                Err(_) => Self::Store(StoreError::Broken("an unknown error of the driver".to_owned())),
            },
        }
    }
}

/// The names of the columns of a row.
fn names_of(row: &tokio_postgres::Row) -> Arc<[String]> {
    row.columns().iter().map(|column| column.name().to_owned()).collect()
}

/// The columns of a row. The names are for errors.
pub(crate) fn row_of(row: &tokio_postgres::Row, names: &Arc<[String]>) -> Result<Row> {
    let value = |(index, column): (usize, &tokio_postgres::Column)| {
        Ok(match *column.type_() {
            Type::BOOL => Value::Boolean(row.try_get(index)?),
            Type::INT2 => Value::Integer(row.try_get::<_, Option<i16>>(index)?.map(Into::into)),
            Type::INT4 => Value::Integer(row.try_get::<_, Option<i32>>(index)?.map(Into::into)),
            Type::INT8 => Value::Integer(row.try_get(index)?),
            Type::TEXT | Type::VARCHAR | Type::NAME => Value::Text(row.try_get(index)?),
            Type::BYTEA => Value::Bytes(row.try_get(index)?),
            ref other => return Err(corrupt(format_args!("a column has the type {other}"))),
        })
    };
    Ok(Row::new(Arc::clone(names), row.columns().iter().enumerate().map(value).collect::<Result<_>>()?))
}

/// A value in the type that the server expects of the parameter.
#[derive(Debug)]
struct Parameter<'v>(&'v Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Value::Integer(Some(number)) => match *ty {
                Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
                _ => number.to_sql(ty, out),
            },
            Value::Text(text) => text.to_sql(ty, out),
            Value::Bytes(bytes) => bytes.to_sql(ty, out),
            Value::Integers(numbers) => numbers.to_sql(ty, out),
            Value::ManyBytes(many) => many.to_sql(ty, out),
            Value::Boolean(truth) => truth.to_sql(ty, out),
            Value::Integer(None) => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl value::Value for Parameter<'_> {
    fn sql_type(&self) -> Type {
        match self.0 {
            Value::Integer(_) => Type::INT8,
            Value::Text(_) => Type::TEXT,
            Value::Bytes(_) => Type::BYTEA,
            Value::Integers(_) => Type::INT8_ARRAY,
            Value::ManyBytes(_) => Type::BYTEA_ARRAY,
            Value::Boolean(_) => Type::BOOL,
        }
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        self
    }
}
