//! Sums of amounts that may leave 64 bits on the way to a result that fits.

use tokio_postgres::Row;

use crate::error::{Result, corrupt};

/// The column that [`wide_sum`] reads, over the rows' `amount`: as text, since PostgreSQL's sum of bigints is a numeric.
pub(crate) const SUM: &str = "coalesce(sum(amount), 0)::TEXT";

/// The sum in atoms.
pub(crate) fn wide_sum(row: &Row, index: usize) -> Result<i128> {
    let text: String = row.try_get(index)?;
    text.parse().map_err(|_| corrupt(format_args!("{text:?} is no sum of atoms")))
}
