//! Sums of amounts that may leave 64 bits on the way to a result that fits.
//!
//! SQLite's `sum` fails on such a way. So the halves of the amounts are summed apart: neither sum can overflow for
//! fewer than two billion rows.

use rusqlite::Row;

/// The two columns that [`wide_sum`] reads, over the rows' `amount`.
pub(crate) const SUM: &str = "coalesce(sum(amount >> 32), 0), coalesce(sum(amount & 4294967295), 0)";

/// The sum in atoms, from the columns at `first` and after it.
pub(crate) fn wide_sum(row: &Row<'_>, first: usize) -> rusqlite::Result<i128> {
    let (high, low): (i64, i64) = (row.get(first)?, row.get(first + 1)?);
    Ok((i128::from(high) << 32) + i128::from(low))
}
