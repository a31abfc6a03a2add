//! Lists by the page: a backend asks for one row more than fits, so as to see whether any follow.

use crate::store::{Cursor, Page, StoreError};

/// The error for a cursor that a backend did not make.
#[must_use]
pub fn unknown_cursor() -> StoreError {
    StoreError::Corrupt("a cursor that is not of this store was handed in".to_owned())
}

/// The row number that a cursor of [`page_of_rows`] stands for: the last one seen, 0 at the start.
///
/// # Errors
/// When it is no such cursor.
pub fn row_of_cursor(cursor: Option<&Cursor>) -> Result<i64, StoreError> {
    cursor.map_or(Ok(0), |cursor| cursor.as_str().parse().map_err(|_| unknown_cursor()))
}

/// How many rows to ask for.
#[must_use]
pub fn one_more_than(limit: u32) -> i64 {
    i64::from(limit) + 1
}

/// A page of rows with their numbers, of which one more than `limit` were asked for.
#[must_use]
pub fn page_of_rows<T>(rows: Vec<(i64, T)>, limit: u32) -> Page<T> {
    page(rows, limit, |row| Cursor::new(row.to_string()))
}

/// The first `limit` of `rows`, and the place of the last of them if more follow.
pub fn page<P, T>(mut rows: Vec<(P, T)>, limit: u32, place: impl Fn(&P) -> Cursor) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|(last, _)| place(last));
    Page { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}
