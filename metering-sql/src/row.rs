//! The rows of a query.

use metering_core::StoreError;

use crate::fault::{Result, corrupt};
use crate::table::Table;
use crate::value::{FromValue, Value};

/// A row of a query.
#[derive(Debug, Clone)]
pub struct Row(Vec<Value>);

impl Row {
    /// A row of these columns.
    #[must_use]
    pub const fn new(values: Vec<Value>) -> Self {
        Self(values)
    }

    /// A column, counted from 0.
    ///
    /// # Errors
    /// When the column does not hold such a value.
    pub fn get<T: FromValue>(&self, column: usize) -> Result<T> {
        let value = self.0.get(column).and_then(T::from_value);
        value.ok_or_else(|| corrupt(format_args!("column {column} of a row holds an unexpected value")))
    }

    /// Its columns from one on.
    pub(crate) fn from(&self, first: usize) -> &[Value] {
        self.0.get(first..).unwrap_or_default()
    }

    /// Its columns.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.0
    }
}

/// The row of a query that always has one.
pub(crate) fn only(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| corrupt("a query that always has a row has none"))
}

/// Reads the columns of a table's row in the order of their declaration.
#[derive(Debug)]
pub struct Reader<'r> {
    table: &'r Table,
    values: &'r [Value],
    next: usize,
}

impl<'r> Reader<'r> {
    pub(crate) const fn new(table: &'r Table, values: &'r [Value]) -> Self {
        Self { table, values, next: 0 }
    }

    /// The next column.
    ///
    /// # Errors
    /// When it does not hold such a value.
    pub fn next<T: FromValue>(&mut self) -> Result<T> {
        let value = self.values.get(self.next).and_then(T::from_value);
        self.next += 1;
        value.ok_or_else(|| self.corrupt("holds an unexpected value"))
    }

    /// The error for the column that was read last.
    pub fn corrupt(&self, problem: impl std::fmt::Display) -> crate::Fault {
        let column = self.next.checked_sub(1).and_then(|last| self.table.columns.get(last));
        let column = column.map_or("?", |column| column.name()).trim_matches(['{', '}']);
        let table = self.table.name;
        StoreError::Corrupt(format!("{table}.{column}: {problem}")).into()
    }
}
