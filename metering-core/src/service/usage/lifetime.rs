//! How many requests an account ever made: the one figure of a summary that is not in its window.

use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::store::{Store, StoreError};
use crate::usage::{DayRange, UsageReport};

/// More days than any service has been running: a hundred years.
const LIFETIME_DAYS: u32 = 36_500;

/// The accepted requests of an account's lifetime. `report` is of `window`, which ends with the day of `now`.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::service::lifetime_events;
/// use metering_core::usage::DayRange;
/// use metering_core::{Charge, Clock, MemoryStore, Service, Store, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new());
/// let service = Service::with_defaults(store.clone());
/// let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
/// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
/// let (now, id) = (SystemClock.now(), &account.id);
/// let window = DayRange::last_days(now, 7);
/// let report = store.usage_report(id, window).await?.ok_or("there is no such account")?;
/// assert_eq!(lifetime_events(&*store, &report, window, now).await?, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the store fails.
pub async fn lifetime_events<S: Store + ?Sized>(
    store: &S,
    report: &UsageReport,
    window: DayRange,
    now: Timestamp,
) -> Result<u64, StoreError> {
    // Usage of before an account's creation came with its import.
    let is_all = report.account.created_at.day() >= window.first
        && report.by_day.iter().try_fold(Credits::ZERO, |sum, day| sum.checked_add(day.credits_used))
            == Some(report.account.totals.used);
    if is_all {
        return Ok(events(report));
    }
    let lifetime = store.usage_report(&report.account.id, DayRange::last_days(now, LIFETIME_DAYS)).await?;
    Ok(lifetime.as_ref().map_or_else(|| events(report), events))
}

fn events(report: &UsageReport) -> u64 {
    report.by_day.iter().fold(0, |sum, day| sum.saturating_add(day.usage_events))
}
