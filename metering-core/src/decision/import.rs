//! Imports an account of another service.

use super::{Decided, OwnerFacts};
use crate::access::account::{Account, AccountId, Totals};
use crate::access::budget::Spent;
use crate::access::issued_key::Key;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_record::KeyRecord;
use crate::access::secret_record::SecretRecord;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::charging::key_meter::KeyMeter;
use crate::clock::Timestamp;
use crate::imports::{
    AccountImported, ImportConflict, ImportedAccount, ImportedEntry, ImportedKey, ImportedSecret, ImportedUsage,
    UsedTransaction,
};
use crate::money::credits::Credits;
use crate::payments::payment::{Payment, PaymentRecord, PaymentUse};
use crate::usage::DailyTotal;

/// The rows read before an account is imported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportFacts {
    /// The account with its id, revoked or not.
    pub account: Option<Account>,
    /// The accounts that have, or had, its secrets: for each secret that is in use.
    pub holders: Vec<AccountId>,
    /// The ids of its keys that are in use.
    pub key_ids_in_use: Vec<KeyId>,
    /// Whether its email address and payer are free.
    pub owner: OwnerFacts,
    /// Its used transactions that have a record, and the account of each record.
    pub used: Vec<(TxRef, AccountId)>,
}

/// The rows to write for an imported account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportChanges {
    /// The account. Its totals include entries and usage.
    pub account: Account,
    /// Its keys, each after its parent, with the usage that counts against their terms.
    pub keys: Vec<KeyRecord>,
    /// The secrets of its keys.
    pub secrets: Vec<SecretRecord>,
    /// Its ledger entries, in the order to write them.
    pub entries: Vec<ImportedEntry>,
    /// Its daily totals.
    pub usage: Vec<DailyTotal>,
    /// The records of its used transactions.
    pub payments: Vec<PaymentRecord>,
    /// The parts that were not imported, because another account has them.
    pub conflicts: Vec<ImportConflict>,
}

/// The ids of an account's keys.
#[must_use]
pub fn imported_key_ids(new: &ImportedAccount) -> Vec<KeyId> {
    new.keys.iter().enumerate().map(|(position, key)| key_id(new, position, key)).collect()
}

/// Decides [`ImportStore::import_accounts`](crate::store::ImportStore::import_accounts) for one account.
///
/// Refused, in this order: [`AccountImported::AlreadyThere`], [`AccountImported::IdInUse`],
/// [`AccountImported::KeyInUse`], [`AccountImported::KeyIdInUse`], [`AccountImported::OutOfRange`]. Only the
/// conflicting parts are left out: the account keeps its balance and its keys.
pub fn import_account(
    new: ImportedAccount,
    facts: ImportFacts,
    now: Timestamp,
) -> Decided<Box<ImportChanges>, AccountImported> {
    if let Some(account) = facts.account {
        let is_same = new.secrets().next().is_none() || facts.holders.contains(&account.id);
        let refusal = if is_same { AccountImported::AlreadyThere(account) } else { AccountImported::IdInUse };
        return Decided::Refused(refusal);
    }
    if let Some(holder) = facts.holders.into_iter().next() {
        return Decided::Refused(AccountImported::KeyInUse(holder));
    }
    if let Some(id) = facts.key_ids_in_use.into_iter().next() {
        return Decided::Refused(AccountImported::KeyIdInUse(id));
    }
    let Some(totals) = totals(&new) else { return Decided::Refused(AccountImported::OutOfRange) };
    let (keys, secrets) = (keys(&new, now), secrets(&new));
    let usage = new.usage.iter().map(|usage| daily_total(&new.id, usage)).collect();
    let mut conflicts = Vec::new();
    // A revoked account holds nothing, so it takes nothing from others.
    let holds = new.revoked_at.is_none();
    let email = new.email.clone().filter(|email| {
        let taken = holds && facts.owner.email_taken && new.email_status.is_holding();
        if taken {
            conflicts.push(ImportConflict::EmailTaken(email.clone()));
        }
        !taken
    });
    let email_status = if email.is_some() { new.email_status } else { Default::default() };
    let payer = new.payer.filter(|payer| {
        let taken = holds && facts.owner.payer_taken;
        if taken {
            conflicts.push(ImportConflict::PayerTaken(payer.address));
        }
        !taken
    });
    let owner_of = |tx: &TxRef| facts.used.iter().find(|(used, _)| used == tx).map(|(_, owner)| owner.clone());
    let mut payments = Vec::new();
    for used in &new.used_transactions {
        match owner_of(&used.tx) {
            Some(owner) => conflicts.push(ImportConflict::TransactionUsed(used.tx, owner)),
            None => payments.push(payment_record(&new, used, now)),
        }
    }
    let entries = new.entries.iter().cloned().map(|entry| without_used(entry, |tx| owner_of(tx).is_some())).collect();
    let ImportedAccount { id, agent_name, limits, tokens_per_minute, created_at, revoked_at, .. } = new;
    let account = Account::new(id, agent_name, created_at);
    let account = Account { email, email_status, payer, limits, tokens_per_minute, totals, revoked_at, ..account };
    Decided::Accepted(Box::new(ImportChanges { account, keys, secrets, entries, usage, payments, conflicts }))
}

/// An entry of a transaction that counted before keeps its credits, which are in the balance of the source, but not its
/// transaction, which may have one purchase only.
fn without_used(mut imported: ImportedEntry, is_used: impl Fn(&TxRef) -> bool) -> ImportedEntry {
    imported.entry.payment = imported.entry.payment.filter(|payment| !is_used(&payment.tx));
    imported
}

fn totals(new: &ImportedAccount) -> Option<Totals> {
    let granted = new.entries.iter().try_fold(Totals::default(), |totals, entry| entry.entry.applied_to(totals))?;
    let used = new.usage.iter().try_fold(Credits::ZERO, |sum, usage| sum.checked_add(usage.credits_used))?;
    Some(Totals { balance: granted.balance.checked_sub(used)?, used, ..granted })
}

fn daily_total(account: &AccountId, usage: &ImportedUsage) -> DailyTotal {
    let ImportedUsage { day, line, calls, credits_used } = usage.clone();
    DailyTotal { account: account.clone(), day, line, key: KeyNumber::FIRST, calls, credits_used }
}

fn key_id(new: &ImportedAccount, position: usize, key: &ImportedKey) -> KeyId {
    key.id.clone().unwrap_or_else(|| match key.secrets.first() {
        Some(secret) => KeyId::of_first(&secret.hash),
        None => KeyId::of_import(&new.id, position),
    })
}

fn number(position: usize) -> KeyNumber {
    KeyNumber::new(u32::try_from(position).unwrap_or(u32::MAX))
}

fn keys(new: &ImportedAccount, now: Timestamp) -> Vec<KeyRecord> {
    let record = |(position, key): (usize, &ImportedKey)| KeyRecord {
        meter: meter(new, position, key, now),
        key: Key {
            id: key_id(new, position, key),
            number: number(position),
            account: new.id.clone(),
            parent: if position == 0 { None } else { Some(number(key.parent.unwrap_or(0))) },
            terms: key.terms.clone(),
            created_at: key.created_at,
            leaked_at: key.leaked_at,
            revoked_at: None,
            hint: key.secrets.iter().find(|secret| secret.expires_at.is_none()).and_then(|secret| secret.hash.hint()),
        },
    };
    new.keys.iter().enumerate().map(record).collect()
}

/// All imported usage belongs to the first key.
fn meter(new: &ImportedAccount, position: usize, key: &ImportedKey, now: Timestamp) -> Option<KeyMeter> {
    if !key.terms.is_counted() {
        return None;
    }
    let spent = key.terms.budget.map_or_else(Spent::default, |budget| {
        let since = budget.first_day(now.day());
        let counted = new.usage.iter().filter(|usage| position == 0 && usage.day >= since);
        // The sum of all usage is in range.
        let amount = counted.fold(Credits::ZERO, |sum, usage| sum.checked_add(usage.credits_used).unwrap_or(sum));
        Spent { since, amount }
    });
    Some(KeyMeter { spent, ..KeyMeter::default() })
}

fn secrets(new: &ImportedAccount) -> Vec<SecretRecord> {
    let of_key = |(position, key): (usize, &ImportedKey)| {
        let record = |secret: &ImportedSecret| SecretRecord {
            hash: secret.hash,
            hash_kind: secret.hash_kind,
            account: new.id.clone(),
            key: number(position),
            created_at: key.created_at,
            expires_at: secret.expires_at,
            revoked_at: new.revoked_at.or(key.leaked_at),
        };
        key.secrets.iter().map(record).collect::<Vec<_>>()
    };
    new.keys.iter().enumerate().flat_map(of_key).collect()
}

/// The source does not report the amount and recipient of each payment, so recipient and token are zero, and the record
/// is final: the payment is not looked up on its chain.
fn payment_record(new: &ImportedAccount, used: &UsedTransaction, now: Timestamp) -> PaymentRecord {
    let entry = new.entries.iter().filter_map(|entry| entry.entry.payment.as_ref()).find(|paid| paid.tx == used.tx);
    let payment = Payment {
        tx: used.tx,
        payer: new.payer.map_or(Address::ZERO, |payer| payer.address),
        recipient: Address::ZERO,
        token: Address::ZERO,
        amount: TokenUnits::ZERO,
        block_number: 0,
        block_hash: None,
        mined_at: used.credited_at,
    };
    PaymentRecord {
        plan_id: entry.and_then(|payment| payment.plan_id.clone()),
        ..PaymentRecord::of(payment, new.id.clone(), PaymentUse::Imported, now)
    }
}
