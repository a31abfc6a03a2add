//! The column of an alert's level.

use metering_core::money::AlertLevel;

use crate::fault::{Result, corrupt};
use crate::row::Row;

/// The level of an alert.
pub(crate) fn alert_level(row: &Row, index: usize, column: &str) -> Result<AlertLevel> {
    let number: i64 = row.get(index)?;
    let level = u8::try_from(number).ok().and_then(AlertLevel::from_number);
    level.ok_or_else(|| corrupt(format_args!("{column}: {number} is not a level of an alert")))
}
