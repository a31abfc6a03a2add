//! Sums of amounts whose intermediate results may not fit into 64 bits although the total does.
//!
//! SQLite's `sum` fails in that case, and PostgreSQL's sum of bigints is a numeric. So the upper and lower halves of the
//! amounts are summed separately: neither sum can overflow with fewer than two billion rows.

use crate::fault::Result;
use crate::row::Row;

/// The two columns that [`wide_sum`] reads: the sums over `amount`.
pub const SUM: &str = "CAST(coalesce(sum(amount >> 32), 0) AS BIGINT), \
     CAST(coalesce(sum(amount & 4294967295), 0) AS BIGINT)";

/// The sum in atoms, from the two columns that start at `first`.
pub fn wide_sum(row: &Row, first: usize) -> Result<i128> {
    Ok(of_halves(row.get(first)?, row.get(first + 1)?))
}

/// The sum in atoms, from the sums of the upper and lower halves.
#[must_use]
pub fn of_halves(high: i64, low: i64) -> i128 {
    (i128::from(high) << 32) + i128::from(low)
}
