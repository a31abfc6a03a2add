//! For authors of backends: the rules over what was read, which are the same wherever it was read from.
//!
//! A backend reads rows. That rows of a ledger and of usage add up to what an account says ([`Books`]), what a report is
//! made of ([`UsageSums`]) and where a page ends ([`page`]) is said here, once.

mod books;
mod page;
mod report;

use crate::credits::Credits;
use crate::store::StoreError;

pub use books::Books;
pub use page::{one_more_than, page, page_of_rows, row_of_cursor, unknown_cursor};
pub use report::UsageSums;

/// The amount of so many atoms, which were added up in more bits than an amount has.
///
/// # Errors
/// [`StoreError::Corrupt`] when they do not fit.
pub fn credits(atoms: i128) -> Result<Credits, StoreError> {
    let atoms = i64::try_from(atoms).map_err(|_| StoreError::Corrupt(format!("{atoms} atoms are out of range")))?;
    Ok(Credits::from_atoms(atoms))
}
