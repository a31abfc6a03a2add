//! The rows of a query.

use std::sync::Arc;

use metering_core::StoreError;
use metering_core::chains::TxRef;

use crate::fault::{Result, corrupt};
use crate::table::Table;
use crate::value::{FromValue, Value};

/// A row of a query.
#[derive(Debug, Clone)]
pub struct Row {
    /// The names of the columns, for errors: shared by all rows of a query.
    names: Arc<[String]>,
    values: Vec<Value>,
}

impl Row {
    /// A row of these columns.
    #[must_use]
    pub const fn new(names: Arc<[String]>, values: Vec<Value>) -> Self {
        Self { names, values }
    }

    /// A column, counted from 0.
    ///
    /// # Errors
    /// When the column does not hold such a value.
    pub fn get<T: FromValue>(&self, column: usize) -> Result<T> {
        let value = self.values.get(column).and_then(T::from_value);
        let name = || self.names.get(column).map_or("a missing column", String::as_str);
        value.ok_or_else(|| corrupt(format_args!("{}: holds an unexpected value", name())))
    }

    /// Its columns from one on.
    pub(crate) fn from(&self, first: usize) -> &[Value] {
        self.values.get(first..).unwrap_or_default()
    }

    /// The row without its first columns.
    pub(crate) fn skip(&self, columns: usize) -> Self {
        Self::new(self.names.get(columns..).unwrap_or_default().into(), self.from(columns).to_vec())
    }

    /// Its columns.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }
}

/// The row of a query that always has one.
pub(crate) fn only(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| corrupt("a query that always has a row has none"))
}

/// Reads a row column by column, in the order in which its table declares them.
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
    #[expect(clippy::should_implement_trait, reason = "each column has its own type")]
    pub fn next<T: FromValue>(&mut self) -> Result<T> {
        let value = self.values.get(self.next).and_then(T::from_value);
        self.next += 1;
        value.ok_or_else(|| self.corrupt("holds an unexpected value"))
    }

    /// The next two columns: a transaction's chain and hash. The schema ensures that both are set or neither is.
    ///
    /// # Errors
    /// When they hold something else.
    pub fn optional_tx(&mut self) -> Result<Option<TxRef>> {
        let (chain_id, hash): (Option<_>, Option<_>) = (self.next()?, self.next()?);
        Ok(chain_id.zip(hash).map(|(chain_id, hash)| TxRef { chain_id, hash }))
    }

    /// Passes over a column that is only there for statements.
    pub const fn skip(&mut self) {
        self.next += 1;
    }

    /// The error for the column that was read last.
    pub fn corrupt(&self, problem: impl std::fmt::Display) -> crate::Fault {
        let column = self.next.checked_sub(1).and_then(|last| self.table.columns.get(last));
        let column = column.map_or("?", |column| column.name()).trim_matches(['{', '}']);
        let table = self.table.name;
        StoreError::Corrupt(format!("{table}.{column}: {problem}")).into()
    }
}
