//! Adds up the business of a range of days from the rows of a store.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::report::{Sum, by_endpoint};
use crate::access::account::{AccountId, AgentName};
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::clock::Day;
use crate::money::credits::Credits;
use crate::money::ledger::LedgerKind;
use crate::operators::report::{AccountTotal, DayRevenue, DaySales, DayValue, OperationsReport, PlanSales};
use crate::payments::exchange_rate::CurrencyAmount;
use crate::payments::payment::{PaymentRecord, PaymentSettlement, PaymentUse};
use crate::store::StoreError;
use crate::usage::{DayRange, UsageLine};

/// The sums behind an [`OperationsReport`]. `A` is the backend's key for an account, ascending in the order of
/// creation, and `L` its key for a usage line.
///
/// Feed it the rows of one snapshot: payments in the order written, all others in any order. Rows outside the range are
/// ignored.
#[derive(Debug)]
pub struct OperationsSums<A, L> {
    days: DayRange,
    accounts: u64,
    by_day: BTreeMap<Day, DaySum>,
    lines: HashMap<L, Sum>,
    users: HashMap<A, Sum>,
    /// The credits that each payment bought, by its transaction.
    bought: HashMap<TxRef, i128>,
    payments: Vec<PaymentRecord>,
}

#[derive(Debug, Default)]
struct DaySum {
    new_accounts: u64,
    sold: i128,
    granted: i128,
    usage: Sum,
}

/// Chain, plan and token.
type SaleKey = (u64, Option<String>, Address);

impl<A: Copy + Ord + Hash, L: Copy + Eq + Hash> OperationsSums<A, L> {
    /// Nothing has been added yet.
    #[must_use]
    pub fn new(days: DayRange) -> Self {
        Self {
            days,
            accounts: 0,
            by_day: BTreeMap::new(),
            lines: HashMap::new(),
            users: HashMap::new(),
            bought: HashMap::new(),
            payments: Vec::new(),
        }
    }

    /// Adds accounts that were created on a day, in the range or not.
    pub fn add_accounts(&mut self, created_on: Day, count: u64) {
        self.accounts += count;
        if self.days.contains(created_on) {
            self.day(created_on).new_accounts += count;
        }
    }

    /// Adds a part of a daily total.
    pub fn add_usage(&mut self, day: Day, account: A, line: L, calls: u64, atoms: i128) {
        if self.days.contains(day) {
            self.add_usage_of_day(day, calls, atoms);
            self.add_usage_of_line(line, calls, atoms);
            self.add_usage_of_account(account, calls, atoms);
        }
    }

    /// Adds a part of a day's usage, for a database that adds up itself. The same usage must also be added by line and
    /// by account.
    pub fn add_usage_of_day(&mut self, day: Day, calls: u64, atoms: i128) {
        if self.days.contains(day) {
            self.day(day).usage.add(Sum { calls, atoms });
        }
    }

    /// Adds a part of a line's usage on the days of the range: see [`OperationsSums::add_usage_of_day`].
    pub fn add_usage_of_line(&mut self, line: L, calls: u64, atoms: i128) {
        self.lines.entry(line).or_default().add(Sum { calls, atoms });
    }

    /// Adds a part of an account's usage on the days of the range: see [`OperationsSums::add_usage_of_day`].
    pub fn add_usage_of_account(&mut self, account: A, calls: u64, atoms: i128) {
        self.users.entry(account).or_default().add(Sum { calls, atoms });
    }

    /// Adds ledger entries of one day, kind and payment, given their sum.
    pub fn add_entries(&mut self, day: Day, kind: LedgerKind, atoms: i128, payment: Option<TxRef>) {
        if !self.days.contains(day) {
            return;
        }
        let sum = self.day(day);
        if kind.is_purchase() {
            sum.sold += atoms;
        } else {
            sum.granted += atoms;
        }
        if let Some(tx) = payment.filter(|_| LedgerKind::PURCHASES.contains(&kind)) {
            *self.bought.entry(tx).or_default() += atoms;
        }
    }

    /// Adds a payment. Its ledger entry has the credits.
    pub fn add_payment(&mut self, record: PaymentRecord) {
        let is_reversed = matches!(record.settlement, PaymentSettlement::Reversed { .. });
        // The other service sold the imported credits, and does not report for how much.
        let is_imported = record.used_as == PaymentUse::Imported;
        if self.days.contains(record.recorded_at.day()) && !is_reversed && !is_imported {
            self.payments.push(record);
        }
    }

    /// The lines that have usage, each once, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = L> + '_ {
        self.lines.keys().copied()
    }

    /// The accounts that the report lists. Accounts with equal usage are in the order of creation.
    #[must_use]
    pub fn top_accounts(&self) -> Vec<A> {
        let mut users: Vec<(&A, &Sum)> = self.users.iter().collect();
        users.sort_unstable_by_key(|(account, sum)| (Reverse((sum.atoms, sum.calls)), **account));
        users.into_iter().take(OperationsReport::TOP).map(|(account, _)| *account).collect()
    }

    /// The accounts with the most credits used, most first, with what they used in atoms; at most `most`.
    #[must_use]
    pub fn heaviest_users(&self, most: usize) -> Vec<(A, i128)> {
        let mut users: Vec<_> = self.users.iter().map(|(account, sum)| (*account, sum.atoms)).collect();
        users.sort_unstable_by_key(|(account, atoms)| (Reverse(*atoms), *account));
        users.truncate(most);
        users
    }

    /// Builds the report. `lines` maps each key of [`OperationsSums::lines`] to its line, `names` each of
    /// [`OperationsSums::top_accounts`] to its account.
    ///
    /// # Errors
    /// When a sum is more than [`Credits`] can hold, or a line or name is missing.
    pub fn report(
        self,
        names: &HashMap<A, (AccountId, AgentName)>,
        lines: &HashMap<L, UsageLine>,
    ) -> Result<OperationsReport, StoreError> {
        let top_accounts = self.top_accounts();
        let of_account = |account: A| {
            let missing = || StoreError::Corrupt("usage has an account that does not exist".to_owned());
            let (id, agent_name) = names.get(&account).cloned().ok_or_else(missing)?;
            let sum = self.users.get(&account).copied().unwrap_or_default();
            Ok(AccountTotal { account: id, agent_name, usage_events: sum.calls, used: credits(sum.atoms)? })
        };
        let top_accounts = top_accounts.into_iter().map(of_account).collect::<Result<_, StoreError>>()?;
        let mut top_routes = by_endpoint(self.lines, lines, credits)?;
        top_routes.truncate(OperationsReport::TOP);
        Ok(OperationsReport {
            accounts: self.accounts,
            by_day: self.by_day.into_iter().map(of_day).collect::<Result<_, _>>()?,
            revenue: revenue(&self.payments),
            values: values(&self.payments)?,
            sales: sales(self.payments, &self.bought)?,
            top_routes,
            top_accounts,
        })
    }

    fn day(&mut self, day: Day) -> &mut DaySum {
        self.by_day.entry(day).or_default()
    }
}

fn of_day((day, sum): (Day, DaySum)) -> Result<DaySales, StoreError> {
    Ok(DaySales {
        day,
        new_accounts: sum.new_accounts,
        sold: credits(sum.sold)?,
        granted: credits(sum.granted)?,
        usage_events: sum.usage.calls,
        used: credits(sum.usage.atoms)?,
    })
}

fn sales(payments: Vec<PaymentRecord>, bought: &HashMap<TxRef, i128>) -> Result<Vec<PlanSales>, StoreError> {
    let mut sums: BTreeMap<SaleKey, (PlanSales, i128)> = BTreeMap::new();
    for PaymentRecord { payment, plan_id, sold, .. } in payments {
        let (chain_id, token) = (payment.tx.chain_id, payment.token);
        let (sales, atoms) = sums.entry((chain_id, plan_id.clone(), token)).or_insert_with(|| {
            let (payments, amount, credits) = (0, TokenUnits::ZERO, Credits::ZERO);
            (PlanSales { chain_id, plan_id, token, unit: None, payments, amount, credits }, 0)
        });
        sales.payments += 1;
        sales.amount = TokenUnits::new(sales.amount.get().saturating_add(payment.amount.get()));
        // The newest wins: a plan may have been corrected.
        sales.unit = sold.map(|sold| (sold.token_symbol, sold.token_decimals)).or(sales.unit.take());
        *atoms += bought.get(&payment.tx).copied().unwrap_or_default();
    }
    let finished = sums.into_values().map(|(sales, atoms)| Ok(PlanSales { credits: credits(atoms)?, ..sales }));
    let mut finished = finished.collect::<Result<Vec<PlanSales>, StoreError>>()?;
    // Stable, so equal sums keep the order of chain, plan and token.
    finished.sort_by_key(|sales| Reverse(sales.credits));
    Ok(finished)
}

fn revenue(payments: &[PaymentRecord]) -> Vec<DayRevenue> {
    let mut days: BTreeMap<(Day, u64, Address), DayRevenue> = BTreeMap::new();
    for PaymentRecord { payment, sold, recorded_at, .. } in payments {
        let (day, chain_id, token) = (recorded_at.day(), payment.tx.chain_id, payment.token);
        let revenue = days.entry((day, chain_id, token)).or_insert_with(|| {
            let (unit, payments, amount) = (None, 0, TokenUnits::ZERO);
            DayRevenue { day, chain_id, token, unit, payments, amount }
        });
        revenue.payments += 1;
        revenue.amount = TokenUnits::new(revenue.amount.get().saturating_add(payment.amount.get()));
        // The newest wins: a plan may have been corrected.
        let unit = sold.as_ref().map(|sold| (sold.token_symbol.clone(), sold.token_decimals));
        revenue.unit = unit.or(revenue.unit.take());
    }
    days.into_values().collect()
}

fn values(payments: &[PaymentRecord]) -> Result<Vec<DayValue>, StoreError> {
    let mut days: BTreeMap<(Day, &str), DayValue> = BTreeMap::new();
    for payment in payments {
        let Some((currency, amount)) = payment.worth() else { continue };
        let day = payment.recorded_at.day();
        let none = DayValue { day, currency, payments: 0, amount: CurrencyAmount::ZERO };
        let value = days.entry((day, currency.code())).or_insert(none);
        value.payments += 1;
        value.amount = value.amount.plus(amount).ok_or_else(too_large)?;
    }
    Ok(days.into_values().collect())
}

/// A sum of many accounts may be more than one balance can hold.
fn credits(atoms: i128) -> Result<Credits, StoreError> {
    i64::try_from(atoms).map(Credits::from_atoms).map_err(|_| too_large())
}

fn too_large() -> StoreError {
    StoreError::OutOfRange("a sum is too large; ask for fewer days".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ClientSource;

    /// Two accounts can use more of a route than one balance can hold, and no data is corrupt then.
    #[test]
    fn sum_over_accounts_that_is_too_large_asks_for_fewer_days() {
        let day: Day = "2026-11-25".parse().unwrap();
        let route = |line: u8| {
            let route_template = format!("/{line}").into();
            (line, UsageLine { route_template, http_method: "GET".into(), source: ClientSource::Direct })
        };
        let name = |account: u8| (account, (format!("org_x{account:019}").parse().unwrap(), "agent".parse().unwrap()));
        let mut sums = OperationsSums::new(DayRange { first: day, last: day });
        for (account, line) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
            sums.add_usage(day, account, line, 1, Credits::MAX.atoms().into());
        }
        let report = sums.report(&[1, 2, 3, 4].map(name).into(), &[1, 2].map(route).into());
        let error = report.unwrap_err();
        assert!(matches!(&error, StoreError::OutOfRange(_)), "{error:?}");
    }
}
