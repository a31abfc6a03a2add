//! Reads and writes whole rows of a table.

use crate::executor::Executor;
use crate::fault::Result;
use crate::row::{Reader, Row};
use crate::table::Table;
use crate::value::Value;

/// A type that is stored as one row of a table.
pub trait Record: Sized + Send + Sync {
    /// Its table.
    const TABLE: Table;

    /// Its columns, in the order of the table's declaration.
    ///
    /// # Errors
    /// When a value cannot be stored.
    fn values(&self) -> Result<Vec<Value>>;

    /// Reads it from a row.
    ///
    /// # Errors
    /// When the row is corrupt.
    fn read(row: &mut Reader<'_>) -> Result<Self>;

    /// Reads it from the columns of [`Table::select`].
    ///
    /// # Errors
    /// When the row is corrupt.
    fn of_row(row: &Row) -> Result<Self> {
        Self::of_row_at(row, 0)
    }

    /// Like [`Record::of_row`], when the columns start at `first`.
    ///
    /// # Errors
    /// When the row is corrupt.
    fn of_row_at(row: &Row, first: usize) -> Result<Self> {
        Self::read(&mut Reader::new(&Self::TABLE, row.from(first)))
    }
}

/// A table: `table!("link" by ["token"] { Own(token), Account(account) })`.
///
/// With `of`, as in `table! { "link" by ["token"] of Link { Own(token), Account(account) } }`, it also implements
/// [`Record`] for a type whose fields have the names of the columns. For another type, `as` builds it from the columns:
/// an expression that is also its pattern, such as `as Self { of: Card { brand, last4 }, at }`.
macro_rules! table {
    ($name:literal by $key:tt { $($kind:ident($column:ident)),+ }) => {
        $crate::table::Table {
            name: $name,
            key: &$key,
            columns: &[$($crate::table::Column::$kind(stringify!($column))),+],
        }
    };
    ($name:literal by $key:tt of $record:ty { $($kind:ident($column:ident)),+ }) => {
        $crate::record::table! {
            $name by $key of $record { $($kind($column)),+ } as Self { $($column),+ }
        }
    };
    ($name:literal by $key:tt of $record:ty { $($kind:ident($column:ident)),+ } as $($made:tt)+) => {
        impl $crate::record::Record for $record {
            const TABLE: $crate::table::Table = $crate::record::table!($name by $key { $($kind($column)),+ });

            fn values(&self) -> $crate::fault::Result<Vec<$crate::value::Value>> {
                let $($made)+ = self;
                Ok($crate::values![$($column),+])
            }

            fn read(row: &mut $crate::row::Reader<'_>) -> $crate::fault::Result<Self> {
                $(let $column = row.next()?;)+
                Ok($($made)+)
            }
        }
    };
}

pub(crate) use table;

/// The records of the rows that match. `rest` follows `FROM table`: `WHERE …`, `ORDER BY …`, `LIMIT …`.
///
/// # Errors
/// When a row is corrupt or the database fails.
pub async fn list<R: Record>(db: &mut dyn Executor, rest: &str, values: &[Value]) -> Result<Vec<R>> {
    let sql = format!("{} {rest}", R::TABLE.select());
    db.query(&sql, values).await?.iter().map(R::of_row).collect()
}

/// Like [`list`], for at most one row.
///
/// # Errors
/// When the row is corrupt or the database fails.
pub async fn find<R: Record>(db: &mut dyn Executor, rest: &str, values: &[Value]) -> Result<Option<R>> {
    Ok(list(db, rest, values).await?.into_iter().next())
}

/// Inserts records. Returns how many.
///
/// # Errors
/// When a key is in use or the database fails.
pub async fn insert<R: Record>(db: &mut dyn Executor, records: &[R]) -> Result<u64> {
    let rows = records.iter().map(R::values).collect::<Result<Vec<_>>>()?;
    db.execute(&R::TABLE.insert(), &rows).await
}

/// Inserts records, each replacing the one with its key, if there is one.
///
/// # Errors
/// When the database fails.
pub async fn put<R: Record>(db: &mut dyn Executor, records: &[R]) -> Result<u64> {
    let rows = records.iter().map(R::values).collect::<Result<Vec<_>>>()?;
    db.execute(&R::TABLE.put(), &rows).await
}

/// Sets columns of rows, each given by the columns of its key and the new values. Returns how many rows there were.
///
/// # Errors
/// When the database fails.
pub async fn set<R: Record>(db: &mut dyn Executor, columns: &[&str], rows: &[Vec<Value>]) -> Result<u64> {
    db.execute(&R::TABLE.update(columns), rows).await
}

/// Deletes the rows that match. Returns how many.
///
/// # Errors
/// When the database fails.
pub async fn delete<R: Record>(db: &mut dyn Executor, rest: &str, values: Vec<Value>) -> Result<u64> {
    db.execute(&format!("DELETE FROM {} {rest}", R::TABLE.name), &[values]).await
}
