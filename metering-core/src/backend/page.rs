//! Paging: a backend reads one row more than the page holds, to see whether more follow.

use crate::store::{Cursor, Page, StoreError};

/// The error for a cursor that the backend did not issue.
#[must_use]
pub fn unknown_cursor() -> StoreError {
    StoreError::UnknownCursor
}

/// The row number in a cursor of [`page_of_rows`]: the last row already returned, or 0 for the first page.
///
/// # Errors
/// When the cursor does not contain a row number.
pub fn row_of_cursor(cursor: Option<&Cursor>) -> Result<i64, StoreError> {
    cursor.map_or(Ok(0), |cursor| cursor.as_str().parse().map_err(|_| unknown_cursor()))
}

/// How many rows to read for a page of `limit` items.
#[must_use]
pub fn one_more_than(limit: u32) -> i64 {
    i64::from(limit) + 1
}

/// A page of numbered rows, read with [`one_more_than`] the limit.
#[must_use]
pub fn page_of_rows<T>(rows: Vec<(i64, T)>, limit: u32) -> Page<T> {
    page(rows, limit, |row| Cursor::new(row.to_string()))
}

/// The first `limit` of `rows`, with a cursor at the last of them if more follow.
pub fn page<P, T>(mut rows: Vec<(P, T)>, limit: u32, cursor_of: impl Fn(&P) -> Cursor) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|(last, _)| cursor_of(last));
    Page { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}
