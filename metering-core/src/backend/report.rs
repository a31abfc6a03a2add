//! Builds a usage report from daily totals.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::credits;
use crate::access::account::Account;
use crate::access::key_id::KeyNumber;
use crate::clock::Day;
use crate::money::credits::Credits;
use crate::store::StoreError;
use crate::usage::{DayUsage, EndpointUsage, KeyTotal, UsageLine, UsageReport};

/// An account's daily totals in a range of days, summed by day and by usage line, and by key. `L` is the backend's line
/// key.
#[derive(Debug, Clone)]
pub struct UsageSums<L> {
    days: BTreeMap<Day, Sum>,
    lines: HashMap<L, Sum>,
    keys: BTreeMap<KeyNumber, Sum>,
}

/// Calls and atoms. 128 bits wide, so charges and refunds can be added in any order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) calls: u64,
    pub(super) atoms: i128,
}

impl Sum {
    pub(super) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.atoms += other.atoms;
    }
}

impl<L> Default for UsageSums<L> {
    fn default() -> Self {
        Self { days: BTreeMap::new(), lines: HashMap::new(), keys: BTreeMap::new() }
    }
}

impl<L: Copy + Eq + Hash> UsageSums<L> {
    /// Adds a daily total.
    pub fn add(&mut self, day: Day, line: L, key: KeyNumber, calls: u64, atoms: i128) {
        let sum = Sum { calls, atoms };
        self.keys.entry(key).or_default().add(sum);
        self.days.entry(day).or_default().add(sum);
        self.lines.entry(line).or_default().add(sum);
    }

    /// The lines that have usage, each once, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = L> + '_ {
        self.lines.keys().copied()
    }

    /// Builds the report. `lines` maps each key of [`UsageSums::lines`] to its line.
    ///
    /// # Errors
    /// When a sum is more than [`Credits`] can hold, or `lines` lacks a line.
    pub fn report(
        self,
        account: Account,
        credits_added: Credits,
        lines: &HashMap<L, UsageLine>,
    ) -> Result<UsageReport, StoreError> {
        let day =
            |(day, sum): (Day, Sum)| Ok(DayUsage { day, usage_events: sum.calls, credits_used: credits(sum.atoms)? });
        let by_day = self.days.into_iter().rev().map(day).collect::<Result<_, StoreError>>()?;
        let by_endpoint = by_endpoint(self.lines, lines, credits)?;
        let of_key = |(key, sum): (KeyNumber, Sum)| {
            Ok(KeyTotal { key, call_count: sum.calls, credits_used: credits(sum.atoms)? })
        };
        let mut by_key = self.keys.into_iter().map(of_key).collect::<Result<Vec<_>, StoreError>>()?;
        by_key.sort_by_key(|total| std::cmp::Reverse(total.credits_used));
        Ok(UsageReport { account, by_day, by_endpoint, by_key, credits_added })
    }
}

/// The sums by route and method, most credits first. `credits` converts a sum, and returns an error when it is too
/// large.
pub(super) fn by_endpoint<L: Eq + Hash>(
    sums: HashMap<L, Sum>,
    lines: &HashMap<L, UsageLine>,
    credits: impl Fn(i128) -> Result<Credits, StoreError>,
) -> Result<Vec<EndpointUsage>, StoreError> {
    // Lines also differ by source; a report sums over sources.
    let mut endpoints: HashMap<_, Sum> = HashMap::new();
    for (line, sum) in sums {
        let missing = || StoreError::Corrupt("a usage line is missing".to_owned());
        let UsageLine { route_template, http_method, .. } = lines.get(&line).ok_or_else(missing)?;
        endpoints.entry((route_template.clone(), http_method.clone())).or_default().add(sum);
    }
    let endpoint = |((route_template, http_method), sum): (_, Sum)| {
        Ok(EndpointUsage { route_template, http_method, call_count: sum.calls, credits_used: credits(sum.atoms)? })
    };
    let mut endpoints = endpoints.into_iter().map(endpoint).collect::<Result<Vec<_>, StoreError>>()?;
    endpoints.sort_unstable_by(|a, b| {
        let most_first = (b.credits_used, b.call_count).cmp(&(a.credits_used, a.call_count));
        most_first.then_with(|| (&a.route_template, &a.http_method).cmp(&(&b.route_template, &b.http_method)))
    });
    Ok(endpoints)
}
