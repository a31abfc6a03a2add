//! Usage reports, recent activity, and the check that all amounts add up.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::access::account::AccountId;
use crate::backend::{AccountDays, Books, UsageSums, credits, restarted_budget, route_calls};
use crate::charging::volume::CountedRoute;
use crate::money::ledger::LedgerEntry;
use crate::store::{Discrepancy, StoreError, Verification};
use crate::usage::{Activity, ActivityKind, DailyTotal, DayRange, UsageReport};

use super::state::{Record, State};

impl State {
    pub(super) fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>, StoreError> {
        let Some(record) = self.record(id) else {
            return Ok(None);
        };
        let (mut sums, mut lines) = (UsageSums::default(), HashMap::new());
        for ((day, line, key), total) in record.usage.iter().filter(|((day, ..), _)| days.contains(*day)) {
            sums.add(*day, line, *key, total.calls, total.atoms);
            lines.insert(line, line.clone());
        }
        let added = self.entries_of(id).filter(|entry| days.contains(entry.created_at.day()));
        let added = credits(added.map(|entry| i128::from(entry.amount.atoms())).sum())?;
        sums.report(record.account.clone(), added, &lines).map(Some)
    }

    pub(super) fn account_daily_totals(&self, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>, StoreError> {
        let Some(record) = self.record(id) else {
            return Ok(Vec::new());
        };
        let mut sums = AccountDays::default();
        for ((day, line, key), total) in record.usage.iter().filter(|((day, ..), _)| days.contains(*day)) {
            sums.add(*day, line.clone(), *key, total.calls, total.atoms);
        }
        sums.totals(id)
    }

    pub(super) fn route_calls(&self, days: DayRange) -> Vec<(CountedRoute, u64)> {
        let usage = self.accounts.iter().flat_map(|record| &record.usage);
        let of_days = usage.filter(|((day, ..), _)| days.contains(*day));
        route_calls(of_days.map(|((_, line, _), total)| (CountedRoute::of(line), total.calls)))
    }

    pub(super) fn activity(&self, id: &AccountId, limit: u32) -> Vec<Activity> {
        let Some(record) = self.record(id) else {
            return Vec::new();
        };
        let usage = record.recent.iter().map(|(number, entry)| (*number, entry.clone()));
        let ledger = self.entries_of(id).map(|entry| (entry.id, ledger_activity(entry)));
        let mut merged: Vec<(i64, Activity)> = usage.chain(ledger).collect();
        merged.sort_by_key(|(number, _)| Reverse(*number));
        merged.into_iter().take(limit as usize).map(|(_, entry)| entry).collect()
    }

    pub(super) fn verify(&self) -> Result<Verification, StoreError> {
        let mut verification = Verification { accounts: 0, discrepancies: Vec::new(), restarted_budgets: Vec::new() };
        for record in &self.accounts {
            verification.accounts += 1;
            verification.discrepancies.extend(self.discrepancies(record)?);
            verification.restarted_budgets.extend(restarted_budgets(record)?);
        }
        Ok(verification)
    }

    fn discrepancies(&self, record: &Record) -> Result<Vec<Discrepancy>, StoreError> {
        let mut books = Books::default();
        for entry in self.entries_of(&record.account.id) {
            books.add_entries(entry.kind, entry.amount.atoms().into());
        }
        books.add_usage(record.usage.values().map(|total| total.atoms).sum());
        books.add_held(record.open_holds().map(|hold| i128::from(hold.amount.atoms())).sum());
        books.discrepancies(&record.account.id, record.account.totals)
    }

    fn entries_of<'a>(&'a self, id: &'a AccountId) -> impl Iterator<Item = &'a LedgerEntry> {
        self.ledger.iter().filter(move |entry| entry.account == *id)
    }
}

/// The budgets of an account that are lower than the bookings since their period began.
fn restarted_budgets(record: &Record) -> Result<Vec<Discrepancy>, StoreError> {
    let mut found = Vec::new();
    for stored in &record.keys {
        let Some(meter) = stored.meter else { continue };
        let computed = record.spent_since(stored.key.number, meter.spent.since)?;
        found.extend(restarted_budget(&stored.key, meter.spent, computed));
    }
    Ok(found)
}

fn ledger_activity(entry: &LedgerEntry) -> Activity {
    Activity {
        id: format!("led_{}", entry.id),
        kind: ActivityKind::Ledger(entry.kind),
        amount: entry.amount,
        description: Some(entry.description.clone()),
        line: None,
        request_path: None,
        calls: 0,
        payment: entry.payment.clone(),
        key: None,
        created_at: entry.created_at,
    }
}
