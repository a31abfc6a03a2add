//! Reads records.

use metering_core::backend::{one_more_than, page as page_after};
use metering_core::store::{Cursor, Page};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::offers::parts;
use crate::row::{Row, only};
use crate::transfer::position::{Part, Position};
use crate::transfer::section::Record;
use crate::transfer::source::Source;
use crate::value::{ToValue, Value};
use crate::values;

/// Records of a section in its order, at most `limit` after `after`.
pub async fn page(db: &mut dyn Executor, source: &Source, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>> {
    let position = after.map(|cursor| Position::of(cursor, source.keys.len())).transpose()?;
    let sql = source.sql(position.is_some());
    let mut values = values![one_more_than(limit)];
    values.extend(position.iter().flat_map(|position| &position.0).map(value));
    let (mut positions, mut records) = (Vec::new(), Vec::new());
    for row in db.query(&sql, &values).await? {
        positions.push(position_of(&row, source.keys.len())?);
        records.push((source.read)(db, &row)?);
    }
    let records = parts::complete(db, records).await?;
    Ok(page_after(positions.into_iter().zip(records).collect(), limit, Position::cursor))
}

/// How many records a section has: as many rows as the first table of its query.
pub async fn count(db: &mut dyn Executor, source: &Source) -> Result<u64> {
    let table = source.tables.split(' ').next().unwrap_or(source.tables);
    let rows = only(&db.query(&format!("SELECT count(*) FROM {table}"), &[]).await?)?.get::<i64>(0)?;
    Ok(u64::try_from(rows).unwrap_or(0))
}

fn value(part: &Part) -> Value {
    match part {
        Part::Number(number) => number.to_value(),
        Part::Text(text) => text.to_value(),
        Part::Bytes(bytes) => bytes.as_slice().to_value(),
    }
}

/// Reads the keys, which are the last columns.
fn position_of(row: &Row, keys: usize) -> Result<Position> {
    let part = |value: &Value| match value {
        Value::Integer(Some(number)) => Ok(Part::Number(*number)),
        Value::Text(Some(text)) => Ok(Part::Text(text.clone())),
        Value::Bytes(Some(bytes)) => Ok(Part::Bytes(bytes.clone())),
        _ => Err(corrupt("a column that records are ordered by has no value")),
    };
    row.from(row.values().len().saturating_sub(keys)).iter().map(part).collect::<Result<_>>().map(Position)
}
