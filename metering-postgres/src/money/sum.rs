//! Sums of amounts whose intermediate results may not fit into 64 bits although the total does.

use tokio_postgres::Row;

use crate::error::{Result, corrupt};

/// The column that [`wide_sum`] reads: the sum over `amount`. As text, since PostgreSQL's sum of bigints is a numeric.
pub(crate) const SUM: &str = "coalesce(sum(amount), 0)::TEXT";

/// The sum in atoms.
pub(crate) fn wide_sum(row: &Row, index: usize) -> Result<i128> {
    let text: String = row.try_get(index)?;
    text.parse().map_err(|_| corrupt(format_args!("{text:?} is not a sum of atoms")))
}
