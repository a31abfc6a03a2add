//! Accounts of an `agenthub` database, whose wire protocol is ours and whose amounts are floating point.
//!
//! Rows are read in stored order, one at a time, so that memory does not grow with the number of transactions. Keys
//! have balances there, so each key becomes an account.

mod books;
mod cell;
mod file;
mod owner;
mod quotes;
mod rows;

pub use books::UsageSign;
pub use cell::Cell;
pub use file::AgentHubFile;
pub use quotes::{AgentHubQuote, plan_quote};
pub use rows::{AgentHubKey, AgentHubTransaction};

use std::collections::BTreeSet;

use metering_core::access::{EmailStatus, HashKind, Payer};
use metering_core::chains::{Address, TxRef};
use metering_core::clock::Timestamp;
use metering_core::imports::{ImportedAccount, ImportedKey, ImportedSecret, UsedTransaction};
use metering_core::money::{LedgerKind, PaymentRef};

use crate::finding::{ImportFinding, ImportFindingKind};
use crate::key_record;
use crate::planned::PlannedAccount;

use books::Books;

/// Plans the import of one key: takes its transactions one by one.
#[derive(Debug)]
pub struct AgentHubPlanner {
    key: AgentHubKey,
    subject: String,
    secret: ImportedSecret,
    created_at: Timestamp,
    books: Books,
    used: Vec<UsedTransaction>,
    seen: BTreeSet<(u64, String)>,
    oddities: Vec<ImportFinding>,
}

impl AgentHubPlanner {
    /// Begins with the key's row. `sign` is the sign of usage that is a charge; `now` replaces a time that cannot be
    /// read.
    ///
    /// # Errors
    /// When the row cannot be imported because its hash or its balance is invalid.
    pub fn new(key: AgentHubKey, sign: UsageSign, now: Timestamp) -> Result<Self, ImportFinding> {
        let subject = format!("api_keys {}", key.id);
        let refused = |problem: String| {
            ImportFinding::new(&subject, ImportFindingKind::Refused, format!("{problem}; it was not imported"))
        };
        let hash = key_record::hash(&key.hash).ok_or_else(|| refused(key_record::HASH_PROBLEM.to_owned()))?;
        let balance = key.balance.real().map_err(|problem| refused(format!("credit_balance {problem}")))?;
        let mut oddities = Vec::new();
        let created_at = owner::time(key.created_at.as_deref(), now, &subject, &mut oddities);
        let secret = ImportedSecret { hash, hash_kind: HashKind::Sha256, expires_at: None };
        let books = Books::new(balance, sign, created_at);
        Ok(Self { key, subject, secret, created_at, books, used: Vec::new(), seen: BTreeSet::new(), oddities })
    }

    /// Adds a transaction.
    pub fn add(&mut self, row: &AgentHubTransaction) {
        let subject = format!("credit_transactions {} of {}", row.id, self.subject);
        let amount = match row.amount.real() {
            Ok(amount) => amount,
            Err(problem) => {
                let detail =
                    format!("amount {problem}; the row is left out, and shows in the difference of the balance");
                self.oddities.push(ImportFinding::new(&subject, ImportFindingKind::InvalidAmount, detail));
                return;
            }
        };
        let at = owner::time(row.created_at.as_deref(), self.created_at, &subject, &mut self.oddities);
        let kind = match row.kind.as_str() {
            "usage" => return self.books.add_usage(row, amount, at),
            "signup_bonus" => LedgerKind::SignupBonus,
            kind if kind.starts_with("purchase") => LedgerKind::PurchaseImported,
            kind if kind.ends_with("bonus") || is_grant(kind) => LedgerKind::Adjustment,
            kind => {
                let detail = format!("type {kind:?} is not known; its amount is booked as an adjustment");
                self.oddities.push(ImportFinding::new(&subject, ImportFindingKind::UnknownType, detail));
                LedgerKind::Adjustment
            }
        };
        let payment = self.payment(row, kind, at, &subject);
        self.books.add_entry(kind, row, amount, payment, at);
    }

    fn payment(
        &mut self,
        row: &AgentHubTransaction,
        kind: LedgerKind,
        at: Timestamp,
        subject: &str,
    ) -> Option<PaymentRef> {
        let text = row.tx_hash.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
        let chain_id = row.chain_id.whole().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
        let (Some(chain_id), Ok(hash)) = (chain_id, text.parse()) else {
            let detail = "tx_hash and chain_id name no transaction, so nothing keeps it from being credited again";
            self.oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidTransaction, detail));
            return None;
        };
        let tx = TxRef { chain_id, hash };
        if self.seen.insert((chain_id, tx.hash.to_string())) {
            self.used.push(UsedTransaction { tx, credited_at: at });
        } else if kind == LedgerKind::PurchaseImported {
            let detail = format!("{tx} was credited before; its credits stay in the balance");
            self.oddities.push(ImportFinding::new(subject, ImportFindingKind::DuplicateTransaction, detail));
        }
        Some(PaymentRef { tx, plan_id: row.plan_id.clone() })
    }

    /// The account to import.
    ///
    /// # Errors
    /// When its amounts are out of range.
    pub fn finish(mut self) -> Result<PlannedAccount, ImportFinding> {
        let (subject, oddities) = (self.subject, &mut self.oddities);
        let balanced = self.books.balanced(&self.key.purchased, &self.key.used, &subject, oddities);
        let balanced = balanced.ok_or_else(|| {
            let detail = "its amounts add up to more than a balance can be; it was not imported";
            ImportFinding::new(&subject, ImportFindingKind::Refused, detail)
        })?;
        let payer = payer(&self.key, self.used.first().map(|used| used.tx.chain_id), &subject, oddities);
        let revoked_at = self.key.revoked_at.as_deref().filter(|text| !text.trim().is_empty());
        // A key that was revoked at an unknown time is revoked.
        let revoked_at = revoked_at.map(|text| owner::time(Some(text), self.created_at, &subject, oddities));
        let account = ImportedAccount {
            id: owner::id(&self.key, &subject, oddities),
            agent_name: owner::name(&self.key, &subject, oddities),
            email: owner::email(&self.key, &subject, oddities),
            email_status: EmailStatus::Unchecked,
            payer,
            limits: owner::limits(&self.key, &subject, oddities),
            tokens_per_minute: 0,
            keys: vec![ImportedKey::first(self.secret, self.created_at)],
            entries: balanced.entries,
            usage: balanced.usage,
            used_transactions: self.used,
            created_at: self.created_at,
            revoked_at,
        };
        let (balance, rounding) = (balanced.balance, balanced.rounding);
        Ok(PlannedAccount { subject, account, balance, rounding, oddities: self.oddities })
    }
}

/// Types of transactions that change a balance without a payment.
fn is_grant(kind: &str) -> bool {
    ["adjustment", "grant", "refund", "usage_refund", "refill", "promo"].contains(&kind)
}

fn payer(key: &AgentHubKey, chain_id: Option<u64>, subject: &str, oddities: &mut Vec<ImportFinding>) -> Option<Payer> {
    let text = key.payer.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
    let address = text.parse::<Address>().ok().filter(|address| *address != Address::ZERO);
    match (address, chain_id) {
        (Some(address), Some(chain_id)) => Some(Payer { address, chain_id }),
        (address, _) => {
            let problem =
                if address.is_none() { "is no wallet" } else { "has no payment that says on which chain it is" };
            let detail = format!("payer_address {text:?} {problem}; it was imported without a wallet");
            oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidPayer, detail));
            None
        }
    }
}

#[cfg(test)]
mod tests;
