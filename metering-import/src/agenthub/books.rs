//! The money of a key: entries and daily totals in atoms, and the adjustments that make them equal to the source's
//! balance.

use std::collections::BTreeMap;

use metering_core::clock::{Day, Timestamp};
use metering_core::imports::{ImportedEntry, ImportedUsage};
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::usage::{ClientSource, UsageLine};

use super::{AgentHubTransaction, Cell};
use crate::amount::Real;
use crate::finding::{ImportFinding, ImportFindingKind};
use crate::record::opening_usage;

/// The longest description of an entry, in characters.
const MAX_DESCRIPTION: usize = 300;
/// The longest route, in characters.
const MAX_ROUTE: usize = 200;

/// The sign of usage that is a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageSign {
    /// Negative ones, as changes of the balance.
    Negative,
    /// Positive ones, as prices. For a database in which no usage is negative.
    Positive,
}

/// The entries and the usage of a key.
#[derive(Debug)]
pub(super) struct Books {
    balance: Real,
    sign: UsageSign,
    created_at: Timestamp,
    last_at: Timestamp,
    entries: Vec<ImportedEntry>,
    usage: BTreeMap<(Day, UsageLine), (u64, i128)>,
    rows: i64,
    entered: i128,
    purchased: i128,
    used: i128,
    /// The sum of the remainders of entries minus usage.
    remainders: i128,
}

/// Entries and usage that add up to the balance.
pub(super) struct Balanced {
    pub(super) balance: Credits,
    pub(super) rounding: Credits,
    pub(super) entries: Vec<ImportedEntry>,
    pub(super) usage: Vec<ImportedUsage>,
}

impl Books {
    pub(super) fn new(balance: Real, sign: UsageSign, created_at: Timestamp) -> Self {
        Self {
            balance,
            sign,
            created_at,
            last_at: created_at,
            entries: Vec::new(),
            usage: BTreeMap::new(),
            rows: 0,
            entered: 0,
            purchased: 0,
            used: 0,
            remainders: 0,
        }
    }

    pub(super) fn add_usage(&mut self, row: &AgentHubTransaction, amount: Real, at: Timestamp) {
        let (atoms, remainder) = (i128::from(amount.credits.atoms()), i128::from(amount.remainder));
        let (charged, remainder) = match self.sign {
            UsageSign::Negative => (-atoms, remainder),
            UsageSign::Positive => (atoms, -remainder),
        };
        let text = |text: Option<&str>, otherwise: &str| match text.map(str::trim) {
            Some(text) if !text.is_empty() => text.chars().take(MAX_ROUTE).collect::<String>(),
            _ => otherwise.to_owned(),
        };
        let line = UsageLine {
            route_template: text(row.route_template.as_deref(), "unknown").into(),
            http_method: text(row.http_method.as_deref(), "GET").to_uppercase().into(),
            source: ClientSource::from_name(row.client_source.as_deref().unwrap_or_default()),
        };
        let total = self.usage.entry((at.day(), line)).or_default();
        *total = (total.0 + 1, total.1 + charged);
        self.rows += 1;
        self.used += charged;
        self.remainders += remainder;
        self.last_at = self.last_at.max(at);
    }

    pub(super) fn add_entry(
        &mut self,
        kind: LedgerKind,
        row: &AgentHubTransaction,
        amount: Real,
        payment: Option<PaymentRef>,
        at: Timestamp,
    ) {
        let described = row.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let text: String =
            described.unwrap_or(&row.kind).chars().filter(|c| !c.is_control()).take(MAX_DESCRIPTION).collect();
        let entry = NewLedgerEntry { payment, ..NewLedgerEntry::new(kind, amount.credits, text) };
        self.entries.push(ImportedEntry { entry, created_at: at });
        let atoms = i128::from(amount.credits.atoms());
        self.rows += 1;
        self.entered += atoms;
        self.purchased += if kind.is_purchase() { atoms } else { 0 };
        self.remainders += i128::from(amount.remainder);
        self.last_at = self.last_at.max(at);
    }

    /// Adds the adjustments that make entries and usage equal to the balance. `None` when an amount is out of range.
    pub(super) fn balanced(
        mut self,
        purchased: &Cell,
        used: &Cell,
        subject: &str,
        oddities: &mut Vec<ImportFinding>,
    ) -> Option<Balanced> {
        let balance = self.balance.credits;
        if balance < Credits::ZERO {
            let detail = format!("the balance is {balance}; it is imported as it is");
            oddities.push(ImportFinding::new(subject, ImportFindingKind::NegativeBalance, detail));
        }
        let tolerance = self.tolerance(purchased, used);
        let missing = i128::from(balance.atoms()) - (self.entered - self.used);
        let opening = self.opening(used, missing, tolerance, subject, oddities)?;
        check_purchased(purchased, self.purchased, tolerance, subject, oddities)?;
        let difference = missing + opening;
        let (rounding, rest) = if difference.abs() <= tolerance {
            (difference, 0)
        } else {
            let rounding = Real::atoms_of_remainders(self.remainders - i128::from(self.balance.remainder));
            (rounding, difference - rounding)
        };
        let (rounding, rest) = (credits(rounding)?, credits(rest)?);
        if rest != Credits::ZERO {
            let detail =
                format!("balance and transactions differ by {rest} credits, which are booked as an adjustment");
            oddities.push(ImportFinding::new(subject, ImportFindingKind::BalanceDiffers, detail));
        }
        self.adjust(rounding, "Rounding of imported amounts");
        self.adjust(rest, "Difference between balance and transactions before the import");
        let mut usage = Vec::with_capacity(self.usage.len() + 1);
        for ((day, line), (calls, atoms)) in self.usage {
            usage.push(ImportedUsage { day, line, calls, credits_used: credits(atoms)? });
        }
        if opening > 0 {
            usage.push(opening_usage(self.created_at, credits(opening)?));
        }
        Some(Balanced { balance, rounding, entries: self.entries, usage })
    }

    /// The difference in atoms that rounding and floating-point drift can explain.
    fn tolerance(&self, purchased: &Cell, used: &Cell) -> i128 {
        let totals = [purchased, used].into_iter().filter_map(|cell| cell.real().ok()).map(|real| real.step);
        let step = totals.fold(self.balance.step.max(1), i64::max);
        i128::from(self.rows + 2) * i128::from(step)
    }

    /// Usage that is only in the total, as far as the balance confirms it. Never less than zero: a total below the
    /// usage is not a refund.
    fn opening(
        &self,
        used: &Cell,
        missing: i128,
        tolerance: i128,
        subject: &str,
        oddities: &mut Vec<ImportFinding>,
    ) -> Option<i128> {
        let Ok(total) = used.real() else {
            oddities.push(ImportFinding::new(
                subject,
                ImportFindingKind::InvalidAmount,
                "total_credits_used is not an amount",
            ));
            return Some(0);
        };
        let unlisted = i128::from(total.credits.atoms()) - self.used;
        if unlisted.abs() <= tolerance {
            return Some(0);
        }
        let opening = if missing < -tolerance { unlisted.min(-missing).max(0) } else { 0 };
        let (listed, booked) = (credits(self.used)?, credits(opening)?);
        let detail = format!(
            "total_credits_used is {}, and the usage adds up to {listed}; {booked} are booked as usage of route imported",
            total.credits
        );
        oddities.push(ImportFinding::new(subject, ImportFindingKind::UsedDiffers, detail));
        Some(opening)
    }

    fn adjust(&mut self, amount: Credits, description: &str) {
        if amount != Credits::ZERO {
            let entry = NewLedgerEntry::new(LedgerKind::Adjustment, amount, description);
            self.entries.push(ImportedEntry { entry, created_at: self.last_at });
        }
    }
}

fn check_purchased(
    total: &Cell,
    listed: i128,
    tolerance: i128,
    subject: &str,
    oddities: &mut Vec<ImportFinding>,
) -> Option<()> {
    let Ok(total) = total.real() else {
        oddities.push(ImportFinding::new(
            subject,
            ImportFindingKind::InvalidAmount,
            "total_credits_purchased is not an amount",
        ));
        return Some(());
    };
    if (i128::from(total.credits.atoms()) - listed).abs() > tolerance {
        let listed = credits(listed)?;
        let detail = format!("total_credits_purchased is {}, and the purchases add up to {listed}", total.credits);
        oddities.push(ImportFinding::new(subject, ImportFindingKind::PurchasedDiffers, detail));
    }
    Some(())
}

fn credits(atoms: i128) -> Option<Credits> {
    i64::try_from(atoms).ok().map(Credits::from_atoms)
}
