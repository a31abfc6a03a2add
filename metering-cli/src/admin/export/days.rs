//! The range of days of an export of usage.

use clap::Args;
use metering_core::store::{Cursor, Page};
use metering_core::usage::DailyTotal;
use metering_core::{Day, FullStore, StoreError};
use metering_sql::daily_totals::from_day;

use crate::failure::Failure;

/// The days whose usage is exported.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Days {
    /// For usage: the first UTC day.
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<Day>,
    /// For usage: the last UTC day.
    #[arg(long, value_name = "DAY")]
    pub(crate) to: Option<Day>,
}

impl Days {
    pub(crate) const fn of(day: Day) -> Self {
        Self { from: Some(day), to: Some(day) }
    }

    pub(crate) const fn are_given(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// # Errors
    /// When there are no such days.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from > to => {
                Err(Failure::Usage(format!("--from {from} is after --to {to}; swap them")))
            }
            _ => Ok(()),
        }
    }

    /// The totals of these days after a cursor. Stops after the last day.
    pub(crate) async fn page(
        self,
        store: &dyn FullStore,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<DailyTotal>, StoreError> {
        let start = self.from.map(from_day);
        let mut page = store.daily_totals(after.or(start.as_ref()), limit).await?;
        if let Some(to) = self.to {
            let within = page.items.partition_point(|total| total.day <= to);
            if within < page.items.len() {
                page.items.truncate(within);
                page.next = None;
            }
        }
        Ok(page)
    }
}
