//! For backend authors: the rules that every backend applies to the rows it reads.
//!
//! Each is stated once, here: what a write changes or why it is refused ([`decision`]), whether an account's totals
//! match its ledger and usage ([`Books`]), how reports are built ([`UsageSums`] for an account, [`OperationsSums`] for
//! operators, [`KeyUsageSums`] for a key), how an account's days are listed ([`AccountDays`]), how routes are ranked
//! ([`route_calls`]), how a path is stored ([`StoredPath`]), and where a page ends ([`page`]).

mod account_days;
mod books;
mod key_usage;
mod operations;
mod page;
mod path;
mod report;
mod route_calls;

/// Every write except a charge, decided by a pure function of the rows that were read.
///
/// A backend reads the facts in its transaction, calls the function, and writes the changes that it returns. `K` is the
/// backend's key for an account's row. Charges are decided by [`decide`](crate::charging::decide).
pub mod decision {
    pub use crate::decision::*;
}

use crate::money::credits::Credits;
use crate::store::StoreError;

pub use account_days::AccountDays;
pub use books::{Books, restarted_budget};
pub use key_usage::KeyUsageSums;
pub use operations::OperationsSums;
pub use page::{one_more_than, page, page_of_rows, row_of_cursor, unknown_cursor};
pub use path::StoredPath;
pub use report::UsageSums;
pub use route_calls::route_calls;

/// Converts a 128-bit sum of atoms to an amount.
///
/// # Errors
/// [`StoreError::Corrupt`] when the sum does not fit in 64 bits.
pub fn credits(atoms: i128) -> Result<Credits, StoreError> {
    let atoms = i64::try_from(atoms).map_err(|_| StoreError::Corrupt(format!("{atoms} atoms are out of range")))?;
    Ok(Credits::from_atoms(atoms))
}
