//! Records whose rows are numbered in the order of writing. The number, `id`, is not part of the record.

use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::store::{Cursor, Page};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::Record;
use crate::row::Row;
use crate::table::Table;
use crate::value::{ToValue, Value};
use crate::values;

/// Inserts records, in order. Returns how many.
///
/// # Errors
/// When a key is in use or the database fails.
pub async fn insert<R: Record>(db: &mut dyn Executor, records: &[R]) -> Result<u64> {
    insert_rows(db, &R::TABLE, records.iter().map(R::values).collect::<Result<Vec<_>>>()?).await
}

/// Like [`insert`], for the columns of records of a table.
pub(crate) async fn insert_rows(db: &mut dyn Executor, table: &Table, mut rows: Vec<Vec<Value>>) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let ids = db.next_ids(rows.len()).await?;
    for (row, id) in rows.iter_mut().zip(ids) {
        row.push(id.to_value());
    }
    db.execute(&table.insert_numbered(), &rows).await
}

/// Sets columns of rows, each given by its number and the new values. Returns how many rows there were.
pub(crate) async fn set<R: Record>(db: &mut dyn Executor, columns: &[&str], rows: &[Vec<Value>]) -> Result<u64> {
    let table = Table { key: &["id"], ..R::TABLE };
    db.execute(&table.update(columns), rows).await
}

/// Records after a cursor, at most `limit`. `filter` is a condition on `filtered`, which start at `?3`.
///
/// # Errors
/// When a row is corrupt or the database fails.
pub async fn page<R: Record>(
    db: &mut dyn Executor,
    filter: &str,
    filtered: Vec<Value>,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<R>> {
    let (columns, table) = (R::TABLE.column_list(), R::TABLE.name);
    let sql = format!("SELECT {columns}, id FROM {table} WHERE {filter} AND id > ?1 ORDER BY id LIMIT ?2");
    let mut values = values![row_of_cursor(after)?, one_more_than(limit)];
    values.extend(filtered);
    let read = |row: &Row| Ok((row.get(R::TABLE.columns.len())?, R::of_row(row)?));
    let rows = db.query(&sql, &values).await?.iter().map(read).collect::<Result<_>>()?;
    Ok(page_of_rows(rows, limit))
}
