//! Reads the sums of [`metering_sql::sum`].

pub(crate) use metering_sql::sum::SUM;
use metering_sql::sum::of_halves;
use rusqlite::Row;

/// The sum in atoms, from the two columns that start at `first`.
pub(crate) fn wide_sum(row: &Row<'_>, first: usize) -> rusqlite::Result<i128> {
    Ok(of_halves(row.get(first)?, row.get(first + 1)?))
}
