//! The result of an import, and the proof that the balances are equal.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use metering_core::imports::{AccountImported, ImportConflict};
use metering_core::money::CreditSum;
use metering_core::store::Verification;
use metering_core::{Account, Credits};
use metering_import::{ImportFinding, ImportFindingKind, PlannedAccount};
use serde::Serialize;

use super::source::Item;
use crate::failure::Failure;
use crate::output::{Format, write_json};

/// How many roundings are listed for people, the largest first.
const ROUNDINGS_SHOWN: usize = 10;

/// The report.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    dry_run: bool,
    /// How many accounts the file has.
    accounts: u64,
    created: u64,
    /// Imported by an earlier run.
    already_there: u64,
    refused: u64,
    /// Accounts whose balance in the store equals the file's.
    equal: u64,
    /// Accounts that were used or changed since their import.
    changed_since: u64,
    /// Accounts whose balance differs, or that are missing.
    unequal: u64,
    balance_in_file: CreditSum,
    balance_in_store: CreditSum,
    /// Accounts with an entry for rounding, and the sum of these entries.
    rounded_accounts: u64,
    rounding: CreditSum,
    rounding_by_account: BTreeMap<String, Credits>,
    /// Totals in the store that differ from the sum of ledger and usage.
    discrepancies: u64,
    /// Open quotes that were imported, and those that an earlier run had imported.
    quotes: u64,
    quotes_already_there: u64,
    oddities: Vec<ImportFinding>,
    /// The accounts that a dry run has seen in the file; a real import looks in the store.
    #[serde(skip)]
    seen: HashSet<String>,
    /// The ids of the accounts that an import has processed.
    #[serde(skip)]
    dealt_with: HashSet<String>,
}

impl Report {
    pub(super) fn new(dry_run: bool) -> Self {
        Self { dry_run, ..Self::default() }
    }

    /// Counts an account of the file.
    pub(super) fn found(&mut self, item: &Item) {
        self.accounts += 1;
        match item {
            Item::Refused(oddity) => {
                self.refused += 1;
                self.oddities.push(oddity.clone());
            }
            Item::Account(planned) => {
                self.balance_in_file.add(planned.balance);
                self.oddities.extend(planned.oddities.iter().cloned());
                if planned.rounding != Credits::ZERO {
                    self.rounded_accounts += 1;
                    self.rounding.add(planned.rounding);
                    self.rounding_by_account.insert(planned.subject.clone(), planned.rounding);
                }
                if self.dry_run {
                    self.repeated(planned);
                }
            }
        }
    }

    /// The value that an account shares with an earlier account of the file.
    fn repeated(&mut self, planned: &PlannedAccount) {
        let account = &planned.account;
        let mut is_repeated = |what: String| !self.seen.insert(what);
        let hashes: Vec<_> = account.secrets().map(|secret| hex::encode(secret.hash.as_bytes())).collect();
        let mut found = Vec::new();
        if is_repeated(account.id.to_string()) || hashes.into_iter().any(&mut is_repeated) {
            let detail = "an earlier account of the file has its id or key hash; it would not be imported";
            found.push((ImportFindingKind::Refused, detail));
        }
        let live = account.revoked_at.is_none();
        if account.email.as_ref().is_some_and(|email| live && is_repeated(email.folded())) {
            let detail = "an earlier account of the file has its email address; it would be imported without it";
            found.push((ImportFindingKind::DuplicateEmail, detail));
        }
        if account.payer.is_some_and(|payer| live && is_repeated(payer.address.to_string())) {
            let detail = "an earlier account of the file has its wallet; it would be imported without it";
            found.push((ImportFindingKind::DuplicatePayer, detail));
        }
        let new = found.into_iter().map(|(kind, detail)| ImportFinding::new(&planned.subject, kind, detail));
        self.oddities.extend(new);
    }

    pub(super) fn oddities(&mut self, oddities: Vec<ImportFinding>) {
        self.oddities.extend(oddities);
    }

    /// Counts an open quote that was imported.
    pub(super) const fn quote_opened(&mut self) {
        self.quotes += 1;
    }

    /// Counts an open quote that an earlier run imported.
    pub(super) const fn quote_already_there(&mut self) {
        self.quotes_already_there += 1;
    }

    /// Counts the outcome for an account.
    pub(super) fn imported(&mut self, planned: &PlannedAccount, outcome: &AccountImported) {
        // An account without an id gets one derived from its key hash.
        let is_repeated = !self.dry_run && !self.dealt_with.insert(planned.account.id.to_string());
        let mut refuse = |kind, detail: String| {
            self.refused += 1;
            self.oddities.push(ImportFinding::new(&planned.subject, kind, format!("{detail}; it was not imported")));
        };
        match outcome {
            AccountImported::Created { conflicts, .. } => {
                self.created += 1;
                self.oddities.extend(conflicts.iter().map(|conflict| of_conflict(planned, conflict)));
            }
            AccountImported::AlreadyThere(_) if is_repeated => {
                refuse(
                    ImportFindingKind::DuplicateId,
                    "an earlier account of the file has its id or key hash".to_owned(),
                );
            }
            AccountImported::AlreadyThere(_) => self.already_there += 1,
            AccountImported::IdInUse => {
                let id = &planned.account.id;
                refuse(ImportFindingKind::DuplicateId, format!("another account has the id {id}, with another key"));
            }
            AccountImported::KeyInUse(holder) => {
                refuse(ImportFindingKind::Refused, format!("its key hash belongs to {holder}"));
            }
            AccountImported::KeyIdInUse(id) => {
                refuse(ImportFindingKind::Refused, format!("a key of another account has the id {id}"));
            }
            AccountImported::OutOfRange => {
                refuse(ImportFindingKind::Refused, "its amounts add up to more than a balance can be".to_owned());
            }
        }
    }

    /// Compares an account of the file with the store.
    pub(super) fn compared(&mut self, planned: &PlannedAccount, found: Option<&Account>, changed: bool) {
        let Some(account) = found else {
            self.unequal += 1;
            return;
        };
        self.balance_in_store.add(account.totals.balance);
        if planned.is_proved_by(&account.totals) {
            self.equal += 1;
        } else if changed {
            self.changed_since += 1;
            let (here, there) = (account.totals.balance, planned.balance);
            let detail = format!("imported before with {there} credits, and has {here} now; it was left as it is");
            self.oddities.push(ImportFinding::new(&planned.subject, ImportFindingKind::ChangedSince, detail));
        } else {
            self.unequal += 1;
            let (here, there) = (account.totals.balance, planned.balance);
            let detail = format!("the file says {there} credits, and the store has {here}");
            self.oddities.push(ImportFinding::new(&planned.subject, ImportFindingKind::BalanceDiffers, detail));
        }
    }

    pub(super) fn verified(&mut self, verification: &Verification) {
        self.discrepancies = verification.discrepancies.len() as u64;
    }

    pub(super) fn finish(self, format: &Format, out: &mut dyn Write) -> Result<(), Failure> {
        if format.json {
            write_json(out, &self)?;
        } else {
            self.print(out)?;
        }
        if self.refused + self.unequal + self.discrepancies == 0 {
            return Ok(());
        }
        Err(Failure::Discrepancies(format!(
            "{} of {} accounts were not imported, {} differ from the file, and {} totals of the store do not add up; the \
             report lists them",
            self.refused, self.accounts, self.unequal, self.discrepancies
        )))
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for ImportFinding { subject, kind, detail } in &self.oddities {
            writeln!(out, "{}  {subject}: {detail}", kind.as_str())?;
        }
        for (subject, amount) in self.largest_roundings() {
            writeln!(out, "rounding  {subject}: {} atoms", amount.atoms())?;
        }
        if let Some(more @ 1..) = self.rounding_by_account.len().checked_sub(ROUNDINGS_SHOWN) {
            let noun = if more == 1 { "account" } else { "accounts" };
            writeln!(out, "rounding  {more} more {noun}; --json lists them all")?;
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        self.oddities.iter().for_each(|oddity| *counts.entry(oddity.kind.as_str()).or_default() += 1);
        if !counts.is_empty() {
            let counts: Vec<_> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            writeln!(out, "Oddities: {}.", counts.join(", "))?;
        }
        let Self { accounts, created, already_there, refused, .. } = self;
        let verb = if self.dry_run { "would be imported" } else { "imported" };
        writeln!(
            out,
            "{accounts} accounts in the file: {created} {verb}, {already_there} imported before, {refused} refused."
        )?;
        if self.quotes + self.quotes_already_there > 0 {
            let (quotes, before) = (self.quotes, self.quotes_already_there);
            writeln!(out, "Open quotes: {quotes} {verb}, {before} imported before.")?;
        }
        if self.rounded_accounts > 0 {
            writeln!(out, "Rounding: {} credits in {} accounts.", self.rounding, self.rounded_accounts)?;
        }
        if self.dry_run {
            return Ok(writeln!(out, "Balance in the file: {} credits. Nothing was written.", self.balance_in_file)?);
        }
        let Self { equal, changed_since, unequal, .. } = self;
        writeln!(out, "Balances: {equal} equal, {changed_since} changed since their import, {unequal} not equal.")?;
        Ok(writeln!(out, "In the file: {} credits. In the store: {}.", self.balance_in_file, self.balance_in_store)?)
    }
}

impl Report {
    /// The accounts with the largest roundings, largest first. Equal ones are sorted by name.
    fn largest_roundings(&self) -> impl Iterator<Item = (&String, &Credits)> {
        let mut roundings: Vec<_> = self.rounding_by_account.iter().collect();
        roundings.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.atoms().unsigned_abs()));
        roundings.into_iter().take(ROUNDINGS_SHOWN)
    }
}

fn of_conflict(planned: &PlannedAccount, conflict: &ImportConflict) -> ImportFinding {
    let (kind, detail) = match conflict {
        ImportConflict::EmailTaken(email) => (
            ImportFindingKind::DuplicateEmail,
            format!("another account has {email}; it was imported without an address"),
        ),
        ImportConflict::PayerTaken(payer) => (
            ImportFindingKind::DuplicatePayer,
            format!("another account has the wallet {payer}; it was imported without one"),
        ),
        ImportConflict::TransactionUsed(tx, owner) => (
            ImportFindingKind::DuplicateTransaction,
            format!("{tx} was credited to {owner} before; its credits stay in the balance"),
        ),
    };
    ImportFinding::new(&planned.subject, kind, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_largest_roundings_are_printed_and_the_others_are_counted() {
        let mut report = Report::new(true);
        for number in 1..=12 {
            let amount = Credits::from_atoms(if number % 2 == 0 { number } else { -number });
            report.rounding_by_account.insert(format!("account {number:02}"), amount);
        }
        let mut out = Vec::new();
        report.print(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("rounding")).collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[..2], ["rounding  account 12: 12 atoms", "rounding  account 11: -11 atoms"]);
        assert_eq!(lines[9..], ["rounding  account 03: -3 atoms", "rounding  2 more accounts; --json lists them all"]);
    }
}
