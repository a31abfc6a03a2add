//! Reads keys and their secrets.

use metering_core::access::{Budget, KeyNumber, KeyTerms};
use metering_core::{Credits, RateLimits};
use tokio_postgres::Row;

use crate::error::Result;
use crate::rows::{amount, key_number, optional_timestamp, parsed, unsigned};

/// The columns that [`terms`] reads from `api_key k`.
pub(crate) const KEY_COLUMNS: &str = "k.account, k.number, k.id, k.parent, k.name, k.scopes, k.routes, k.networks, \
     k.expires_at, k.disabled, k.requests_per_minute, k.requests_per_day, k.max_in_flight, k.budget, k.budget_reset, \
     k.created_at, k.leaked_at, k.revoked_at, k.alert_below, k.tokens_per_minute";

/// Draws the `meter.access` of accounts anew: what nodes know of their keys and secrets has changed.
pub(crate) const DRAW_ACCESS: &str = "UPDATE meter SET access = DEFAULT WHERE account = ANY($1)";

/// Reads only the parent, from the columns of [`terms`].
pub(crate) fn parent(row: &Row, first: usize) -> Result<Option<KeyNumber>> {
    match row.try_get::<_, Option<i64>>(first + 3)? {
        Some(_) => key_number(row, first + 3).map(Some),
        None => Ok(None),
    }
}

/// Reads only the terms, from the columns of [`terms`].
pub(crate) fn terms(row: &Row, first: usize) -> Result<KeyTerms> {
    let reset = row.try_get::<_, Option<&str>>(first + 14)?.map(crate::rows::parse).transpose()?;
    let budget = match row.try_get::<_, Option<i64>>(first + 13)? {
        Some(_) => Some(Budget { limit: amount(row, first + 13)?, reset }),
        None => None,
    };
    Ok(KeyTerms {
        name: parsed(row, first + 4)?,
        scopes: parsed(row, first + 5)?,
        routes: parsed(row, first + 6)?,
        networks: parsed(row, first + 7)?,
        expires_at: optional_timestamp(row, first + 8)?,
        disabled: row.try_get(first + 9)?,
        limits: RateLimits {
            requests_per_minute: unsigned(row, first + 10)?,
            requests_per_day: unsigned(row, first + 11)?,
        },
        tokens_per_minute: unsigned(row, first + 19)?,
        max_in_flight: unsigned(row, first + 12)?,
        budget,
        alert_below: row.try_get::<_, Option<i64>>(first + 18)?.map(Credits::from_atoms),
    })
}
