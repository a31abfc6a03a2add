//! Statements for account holders: the ledger and the daily usage, complete, in parts of bounded size.

use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::clock::Day;
use crate::error::Error;
use crate::service::Usage;
use crate::service::fields::within;
use crate::store::Cursor;
use crate::usage::{DayRange, KeyLabels};
use crate::wire::{DailyUsageDocument, DailyUsageEntry, LedgerDocument};

/// The most ledger entries in one response.
const MAX_ENTRIES: u32 = 10_000;
/// The most days in one statement: a leap year.
const MAX_DAYS: i64 = 366;
/// The days of a statement without dates.
const DEFAULT_DAYS: u32 = 30;
/// How many days are read at a time.
const DAYS_PER_READ: i64 = 7;
/// A response ends after the first read that reaches this many rows.
const ENOUGH_ROWS: usize = 10_000;

impl Usage<'_> {
    /// The account's ledger, oldest entry first: at most `limit` entries (1 to 10,000) after the one with the number
    /// `after`.
    ///
    /// ```
    /// use metering_core::{MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let ledger = service.usage().ledger(Some(&key), None, 100).await?;
    /// assert_eq!(ledger.entries[0].kind, "signup_bonus");
    /// assert_eq!(ledger.entries[0].amount.to_string(), "2");
    /// assert_eq!(ledger.next, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::ValidationFailed`], or when the store fails.
    pub async fn ledger(
        self,
        caller: impl Into<Caller<'_>>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<LedgerDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let after = after.map(|number| Cursor::new(number.to_string()));
        let page = self.access.store.account_ledger(&account.id, after.as_ref(), limit).await?;
        let next = page.next.and(page.items.last()).map(|entry| entry.id);
        Ok(LedgerDocument::new(&account.id, page.items, next))
    }

    /// Usage by UTC day, route, method and source, oldest day first: from `from` to `to`, including both, at most 366
    /// days. By default `to` is today, and `from` 29 days earlier.
    ///
    /// A response has whole days. If it does not reach `to`, its `next` is the day to continue from.
    ///
    /// ```
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// let statement = service.usage().daily(Some(&key), None, None).await?;
    /// assert_eq!(statement.usage[0].route_template, "/price");
    /// assert_eq!(statement.usage[0].credits_used.to_string(), "0.25");
    /// assert_eq!(statement.next, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Usage::ledger`].
    pub async fn daily(
        self,
        caller: impl Into<Caller<'_>>,
        from: Option<Day>,
        to: Option<Day>,
    ) -> Result<DailyUsageDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let to = to.unwrap_or_else(|| self.access.now().day());
        let from = from.unwrap_or_else(|| to.minus_days(DEFAULT_DAYS - 1));
        match to.unix_days().saturating_sub(from.unix_days()) {
            ..0 => return Err(Error::field("from", "must not be after to")),
            0..MAX_DAYS => {}
            _ => return Err(Error::field("from", format_args!("must be at most {} days before to", MAX_DAYS - 1))),
        }
        let mut keys = KeyLabels::default();
        let (mut usage, mut first) = (Vec::<DailyUsageEntry>::new(), from);
        while first <= to && usage.len() < ENOUGH_ROWS {
            let after = Day::from_unix_days(first.unix_days().saturating_add(DAYS_PER_READ));
            let days = DayRange { first, last: to.min(after.minus_days(1)) };
            let totals = self.access.store.account_daily_totals(&account.id, days).await?;
            if totals.iter().any(|total| keys.get(total.key).is_none()) {
                keys = self.access.key_labels(&account.id).await?;
            }
            usage.extend(totals.into_iter().map(|total| DailyUsageEntry::new(total, &keys)));
            first = after;
        }
        let next = (first <= to).then(|| first.to_string());
        Ok(DailyUsageDocument {
            org_id: account.id.to_string(),
            from: from.to_string(),
            to: to.to_string(),
            usage,
            next,
        })
    }
}
