//! Runs the statements of one transaction.

use crate::backend::BoxFuture;
use crate::fault::Result;
use crate::row::Row;
use crate::value::Value;

/// Runs the statements of one transaction, or of one read.
///
/// The text of a statement is the same for all backends. Parameters are `?1`, `?2` and so on. These words in braces stand
/// for what differs:
///
/// | word | meaning | SQLite | PostgreSQL |
/// |---|---|---|---|
/// | `{bytes}` | after a text column in `ORDER BY`: compares bytes | nothing | `COLLATE "C"` |
/// | `{lock}` | at the end of a `SELECT`: its rows stay as they are until the transaction ends | nothing | `FOR UPDATE` |
pub trait Executor: Send {
    /// The rows of a query.
    fn query<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> BoxFuture<'a, Result<Vec<Row>>>;

    /// Runs one statement once for each of `rows`, in order, and returns how many rows of the database changed. A backend
    /// on a network sends all of them in one round trip.
    fn execute<'a>(&'a mut self, sql: &'a str, rows: &'a [Vec<Value>]) -> BoxFuture<'a, Result<u64>>;
}
