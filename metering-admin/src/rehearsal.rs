//! Rehearses a catalogue: what past usage would have cost, and who would have run out of credits. Reads only.
//!
//! Reads an account at a time, so that memory depends on the days of one account, on the routes, and on how many accounts
//! are listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use metering_core::access::Account;
use metering_core::catalogue::Catalogue;
use metering_core::clock::Day;
use metering_core::money::Credits;
use metering_core::store::Progress;
use metering_core::usage::{DailyTotal, DayRange};

use crate::administration::Administration;
use crate::error::AdminError;
use crate::repricing::{AccountDay, MonthCounts, Repriced, Repricing, replay};
use crate::wire::{RehearsalDocument, RehearsedAccount, RehearsedRoute, RehearsedUsage, RunOut};

/// How many accounts, or ledger entries, are read at a time.
const PAGE: u32 = 1_000;

impl Administration {
    /// The cost of the usage of the last `days` UTC days, including today, with the catalogue `new`. `old` is the
    /// catalogue that was in force, if available: without it, fewer amounts are exact. Lists the `top` routes and
    /// accounts that change most; the sums are over all.
    ///
    /// A replay of each account's days finds who would have run out: its credits of a day count from the day's start,
    /// and its balance is checked once, at the day's end.
    ///
    /// # Errors
    /// [`AdminError::OutOfRange`] when a sum cannot be held, or when the store fails.
    pub async fn rehearse(
        &self,
        new: &Catalogue,
        old: Option<&Catalogue>,
        days: u32,
        top: usize,
    ) -> Result<RehearsalDocument, AdminError> {
        self.rehearse_with_progress(new, old, days, top, &()).await
    }

    /// As [`Administration::rehearse`], and returns how many accounts were read.
    ///
    /// # Errors
    /// As [`Administration::rehearse`].
    pub async fn rehearse_with_progress(
        &self,
        new: &Catalogue,
        old: Option<&Catalogue>,
        days: u32,
        top: usize,
        progress: &dyn Progress,
    ) -> Result<RehearsalDocument, AdminError> {
        let days = DayRange::last_days(self.clock.now(), days);
        let repricing = Repricing::new(old, new);
        // The month's earlier requests determine the tier of the first requests.
        let first = if repricing.depends_on_month() { days.first.month().start().day() } else { days.first };
        let counted = DayRange { first, ..days };
        let mut rehearsal = Rehearsal::new(top, days);
        let mut after = None;
        loop {
            let page = self.store.accounts(after.as_ref(), PAGE).await?;
            for account in &page.items {
                progress.advance(1);
                let mut totals = self.store.account_daily_totals(&account.id, counted).await?;
                if !totals.iter().any(|total| days.contains(total.day)) {
                    continue;
                }
                totals.sort_by_key(|total| total.day);
                // The opening balance comes from one consistent read, so concurrent charges do not change it.
                let Some(report) = self.store.usage_report(&account.id, days).await? else { continue };
                let used = Credits::checked_sum(report.by_day.iter().map(|day| day.credits_used));
                let opening = used
                    .and_then(|used| report.account.totals.unspent().checked_add(used))
                    .and_then(|sum| sum.checked_sub(report.credits_added))
                    .ok_or_else(out_of_range)?;
                let flows = self.credits_added(account, days).await?;
                rehearsal.account(account, opening, flows, &totals, &repricing).ok_or_else(out_of_range)?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(rehearsal.finish());
            }
        }
    }

    /// The credits that were bought and granted on each day.
    async fn credits_added(&self, account: &Account, days: DayRange) -> Result<BTreeMap<Day, AccountDay>, AdminError> {
        let (mut flows, mut after) = (BTreeMap::<Day, AccountDay>::new(), None);
        loop {
            let page = self.store.account_ledger(&account.id, after.as_ref(), PAGE).await?;
            for entry in page.items.iter().filter(|entry| days.contains(entry.created_at.day())) {
                let added = &mut flows.entry(entry.created_at.day()).or_default().added;
                *added = added.checked_add(entry.amount).ok_or_else(out_of_range)?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(flows);
            }
        }
    }
}

fn out_of_range() -> AdminError {
    AdminError::OutOfRange("a sum of the rehearsal is out of range; rehearse fewer days".to_owned())
}

/// The results so far.
struct Rehearsal {
    days: DayRange,
    totals: RehearsedUsage,
    routes: BTreeMap<(Arc<str>, Arc<str>), RehearsedUsage>,
    accounts: u64,
    by_account: Top<(i64, String), RehearsedAccount>,
    run_outs: u64,
    run_out: Top<(Day, String), RunOut>,
}

impl Rehearsal {
    fn new(top: usize, days: DayRange) -> Self {
        Self {
            days,
            totals: RehearsedUsage::default(),
            routes: BTreeMap::new(),
            accounts: 0,
            by_account: Top::new(top),
            run_outs: 0,
            run_out: Top::new(top),
        }
    }

    /// Adds an account: its opening balance, the credits added by day, and its usage in the order of days. `None` when a
    /// sum is out of range.
    fn account(
        &mut self,
        account: &Account,
        opening: Credits,
        mut flows: BTreeMap<Day, AccountDay>,
        totals: &[DailyTotal],
        repricing: &Repricing<'_>,
    ) -> Option<()> {
        let (mut usage, mut month) = (RehearsedUsage::default(), MonthCounts::default());
        for total in totals {
            let repriced = repricing.of(total, &mut month)?;
            if !self.days.contains(total.day) {
                continue;
            }
            let row = row(total, repriced)?;
            let flow = flows.entry(total.day).or_default();
            flow.calls = flow.calls.checked_add(row.calls)?;
            flow.before = flow.before.checked_add(row.credits_before)?;
            flow.after = flow.after.checked_add(row.credits_after)?;
            usage = usage.plus(&row)?;
            let key = (Arc::clone(&total.line.route_template), Arc::clone(&total.line.http_method));
            let route = self.routes.entry(key).or_default();
            *route = route.plus(&row)?;
        }
        self.totals = self.totals.plus(&usage)?;
        self.accounts += 1;
        let was = replay(opening, flows.clone(), |day| day.before)?;
        let would_be = replay(opening, flows, |day| day.after)?;
        let (org_id, agent_name) = (account.id.to_string(), account.agent_name.to_string());
        if let Some(day) = would_be.ran_out.filter(|day| was.ran_out.is_none_or(|before| *day < before)) {
            self.run_outs += 1;
            let (org_id, agent_name) = (org_id.clone(), agent_name.clone());
            let run_out = RunOut { org_id, agent_name, day, day_before: was.ran_out, balance_after: would_be.balance };
            self.run_out.offer((day, run_out.org_id.clone()), run_out);
        }
        let rank = (by_change(&usage), org_id.clone());
        self.by_account.offer(rank, RehearsedAccount { org_id, agent_name, usage });
        Some(())
    }

    fn finish(self) -> RehearsalDocument {
        let routes = u64::try_from(self.routes.len()).unwrap_or(u64::MAX);
        let mut by_route = Top::new(self.by_account.most);
        for ((template, method), usage) in self.routes {
            let (route_template, http_method) = (template.to_string(), method.to_string());
            by_route
                .offer((by_change(&usage), template, method), RehearsedRoute { http_method, route_template, usage });
        }
        RehearsalDocument {
            first_day: self.days.first,
            last_day: self.days.last,
            totals: self.totals,
            routes,
            by_route: by_route.items(),
            accounts: self.accounts,
            by_account: self.by_account.items(),
            run_outs: self.run_outs,
            run_out: self.run_out.items(),
        }
    }
}

/// A daily total, and the total with the new prices.
fn row(total: &DailyTotal, repriced: Repriced) -> Option<RehearsedUsage> {
    let (calls, before) = (total.calls, total.credits_used);
    let row = RehearsedUsage { calls, credits_before: before, ..RehearsedUsage::default() };
    let row = match repriced {
        Repriced::Exact(after) => RehearsedUsage { credits_after: after, ..row },
        Repriced::Estimate(after) => RehearsedUsage { credits_after: after, estimated_calls: calls, ..row },
        Repriced::Unknown => {
            RehearsedUsage { credits_after: before, unknown_calls: calls, credits_unknown: before, ..row }
        }
        Repriced::Removed => RehearsedUsage { removed_calls: calls, ..row },
    };
    Some(RehearsedUsage { credits_difference: row.credits_after.checked_sub(before)?, ..row })
}

impl RehearsedUsage {
    fn plus(&self, other: &Self) -> Option<Self> {
        Some(Self {
            calls: self.calls.checked_add(other.calls)?,
            credits_before: self.credits_before.checked_add(other.credits_before)?,
            credits_after: self.credits_after.checked_add(other.credits_after)?,
            credits_difference: self.credits_difference.checked_add(other.credits_difference)?,
            estimated_calls: self.estimated_calls.checked_add(other.estimated_calls)?,
            unknown_calls: self.unknown_calls.checked_add(other.unknown_calls)?,
            credits_unknown: self.credits_unknown.checked_add(other.credits_unknown)?,
            removed_calls: self.removed_calls.checked_add(other.removed_calls)?,
        })
    }
}

/// Orders by the size of the change, largest first.
const fn by_change(usage: &RehearsedUsage) -> i64 {
    usage.credits_difference.atoms().saturating_abs().saturating_neg()
}

/// The items with the lowest ranks. Each rank occurs once.
struct Top<K, T> {
    most: usize,
    items: BTreeMap<K, T>,
}

impl<K: Ord, T> Top<K, T> {
    const fn new(most: usize) -> Self {
        Self { most, items: BTreeMap::new() }
    }

    fn offer(&mut self, rank: K, item: T) {
        self.items.insert(rank, item);
        if self.items.len() > self.most {
            self.items.pop_last();
        }
    }

    fn items(self) -> Vec<T> {
        self.items.into_values().collect()
    }
}
