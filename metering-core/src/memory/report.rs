//! What is read over many records: usage reports, recent activity, and the proof that all money adds up.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::account::{AccountId, Totals};
use crate::clock::Day;
use crate::credits::Credits;
use crate::ledger::LedgerEntry;
use crate::store::{Discrepancy, StoreError, Verification};
use crate::usage::{Activity, ActivityKind, DayRange, DayUsage, EndpointUsage, UsageReport};

use super::state::{DayTotal, Record, State};

/// The amount of so many atoms.
pub(super) fn credits(atoms: i128) -> Result<Credits, StoreError> {
    let atoms = i64::try_from(atoms).map_err(|_| StoreError::Corrupt(format!("{atoms} atoms are out of range")))?;
    Ok(Credits::from_atoms(atoms))
}

impl DayTotal {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.atoms += other.atoms;
    }
}

impl State {
    pub(super) fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>, StoreError> {
        let Some(record) = self.record(id) else {
            return Ok(None);
        };
        let mut by_day: BTreeMap<Day, DayTotal> = BTreeMap::new();
        let mut by_endpoint: BTreeMap<(&Arc<str>, &Arc<str>), DayTotal> = BTreeMap::new();
        for ((day, line), total) in record.usage.iter().filter(|((day, _), _)| days.contains(*day)) {
            by_day.entry(*day).or_default().add(total);
            by_endpoint.entry((&line.route_template, &line.http_method)).or_default().add(total);
        }
        let mut endpoints: Vec<_> = by_endpoint.into_iter().collect();
        // A stable sort: equals stay in the order of template and method.
        endpoints.sort_by_key(|(_, total)| Reverse((total.atoms, total.calls)));
        let day =
            |(day, DayTotal { calls, atoms })| Ok(DayUsage { day, usage_events: calls, credits_used: credits(atoms)? });
        let endpoint = |((template, method), DayTotal { calls, atoms }): ((&Arc<str>, &Arc<str>), DayTotal)| {
            Ok(EndpointUsage {
                route_template: Arc::clone(template),
                http_method: Arc::clone(method),
                call_count: calls,
                credits_used: credits(atoms)?,
            })
        };
        let added = self.entries_of(id).filter(|entry| days.contains(entry.created_at.day()));
        Ok(Some(UsageReport {
            account: record.account.clone(),
            by_day: by_day.into_iter().rev().map(day).collect::<Result<_, StoreError>>()?,
            by_endpoint: endpoints.into_iter().map(endpoint).collect::<Result<_, StoreError>>()?,
            credits_added: credits(added.map(|entry| i128::from(entry.amount.atoms())).sum())?,
        }))
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
        let mut verification = Verification { accounts: 0, discrepancies: Vec::new() };
        for record in &self.accounts {
            verification.accounts += 1;
            verification.discrepancies.extend(self.discrepancies(record)?);
        }
        Ok(verification)
    }

    fn discrepancies(&self, record: &Record) -> Result<Vec<Discrepancy>, StoreError> {
        let (mut purchased, mut granted) = (0_i128, 0_i128);
        for entry in self.entries_of(&record.account.id) {
            let sum = if entry.kind.is_purchase() { &mut purchased } else { &mut granted };
            *sum += i128::from(entry.amount.atoms());
        }
        let used: i128 = record.usage.values().map(|total| total.atoms).sum();
        let Totals { balance: recorded, purchased: bought, granted: given, used: spent } = record.account.totals;
        let amounts = [
            ("balance", recorded, purchased + granted - used),
            ("purchased", bought, purchased),
            ("granted", given, granted),
            ("used", spent, used),
        ];
        let mut found = Vec::new();
        for (amount, recorded, computed) in amounts {
            let computed = credits(computed)?;
            if recorded != computed {
                found.push(Discrepancy { account: record.account.id.clone(), amount, recorded, computed });
            }
        }
        Ok(found)
    }

    fn entries_of<'a>(&'a self, id: &'a AccountId) -> impl Iterator<Item = &'a LedgerEntry> {
        self.ledger.iter().filter(move |entry| entry.account == *id)
    }
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
        created_at: entry.created_at,
    }
}
