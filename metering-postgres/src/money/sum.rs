//! Reads the sums of [`metering_sql::sum`].

pub(crate) use metering_sql::sum::SUM;
use metering_sql::sum::of_halves;
use tokio_postgres::Row;

use crate::error::Result;

/// The sum in atoms, from the two columns that start at `first`.
pub(crate) fn wide_sum(row: &Row, first: usize) -> Result<i128> {
    Ok(of_halves(row.try_get(first)?, row.try_get(first + 1)?))
}
