mod recent;
mod sections;

use async_trait::async_trait;
use metering_core::store::{Cursor, Page};
use metering_core::transfer::{Export, Part, Position, Record, Section};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, ToSql};

use crate::error::{Result, store_error};
use crate::journal::{Snapshot, Unfolded};
use crate::rows::all;
use crate::script::Statements;
use crate::store::SqliteStore;
use metering_core::backend::{one_more_than, page};
use metering_sql::now;
use metering_sql::offers::parts;
use sections::Source;

#[async_trait]
impl Export for SqliteStore {
    async fn export(&self, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>> {
        let after = after.cloned();
        self.writer.fold_and_read(move |connection| records(connection, section, after.as_ref(), limit)).await
    }
}

fn records(connection: &Connection, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>> {
    recent::refresh(connection, section)?;
    let source = Source::of(section);
    let keys = source.keys.len();
    let position = after.map(|cursor| Position::of(cursor, keys)).transpose()?;
    let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(one_more_than(limit))];
    for part in position.iter().flat_map(|position| &position.0) {
        values.push(Box::new(Bound(part.clone())));
    }
    let mut statement = connection.prepare_cached(&source.sql(position.is_some())).map_err(store_error)?;
    let first_key = statement.column_count() - keys;
    let values = rusqlite::params_from_iter(values);
    let rows = all(&mut statement, values, |row| {
        let position = position_of(row, first_key, keys)?;
        Ok((source.read)(row)?.map(|record| (position, record)))
    })?;
    let (positions, records): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let mut unfolded = Unfolded::default();
    let snapshot = Snapshot::new(connection, &mut unfolded);
    let records = now(parts::complete(&mut Statements::new(&snapshot), records))?;
    Ok(page(positions.into_iter().zip(records).collect(), limit, Position::cursor))
}

fn position_of(row: &Row<'_>, first: usize, keys: usize) -> rusqlite::Result<Position> {
    let part = |index| {
        Ok(match row.get_ref(index)? {
            ValueRef::Integer(number) => Part::Number(number),
            ValueRef::Blob(bytes) => Part::Bytes(bytes.to_vec()),
            _ => Part::Text(row.get(index)?),
        })
    };
    (first..first + keys).map(part).collect::<rusqlite::Result<_>>().map(Position)
}

/// A part of a key, as a parameter of a statement.
struct Bound(Part);

impl ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(match &self.0 {
            Part::Number(number) => Value::Integer(*number),
            Part::Text(text) => Value::Text(text.clone()),
            Part::Bytes(bytes) => Value::Blob(bytes.clone()),
        }))
    }
}
