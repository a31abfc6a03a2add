//! The `accounts` format: one record per account, as fields with text, whether they come from JSON or CSV.
//!
//! `metering admin export accounts --with-hashes` writes it, so accounts can move out as they moved in.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use metering_core::access::{AccountId, EmailStatus, HashKind, Payer, RateLimits};
use metering_core::clock::Timestamp;
use metering_core::imports::{ImportedAccount, ImportedEntry, ImportedKey, ImportedSecret, ImportedUsage};
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::usage::{ClientSource, UsageLine};

use crate::finding::{ImportFinding, ImportFindingKind};
use crate::key_record::{self, KeyRecordError};
use crate::planned::PlannedAccount;
use crate::time::parse_time;

/// The route for usage that the source has only as a sum. No request can have it: routes begin with a slash.
const OPENING_ROUTE: &str = "imported";

/// Every field that a record may have.
pub const RECORD_FIELDS: [&str; 28] = [
    "org_id",
    "agent_name",
    "email",
    "email_status",
    "email_verified_at",
    "email_credits_atoms",
    "payer_address",
    "payer_chain_id",
    "status",
    "credit_balance",
    "credit_balance_atoms",
    "total_credits_purchased",
    "total_credits_purchased_atoms",
    "total_credits_granted",
    "total_credits_granted_atoms",
    "total_credits_used",
    "total_credits_used_atoms",
    "credits_held",
    "credits_held_atoms",
    "requests_per_minute",
    "requests_per_day",
    "tokens_per_minute",
    "created_at",
    "revoked_at",
    "key_hash",
    "hash_kind",
    "keys",
    "used_transactions",
];

/// Why a record was rejected. Nothing of it was imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A field has a value that is not allowed.
    #[error("{field}: {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// There is an unknown field.
    #[error("the field {0} is not known")]
    Unknown(String),
    /// A key or a transaction is invalid.
    #[error(transparent)]
    Key(#[from] KeyRecordError),
    /// The totals do not add up to the balance.
    #[error("balance {balance} is not purchased + granted - used - held = {sum}")]
    Unequal {
        /// The balance of the record.
        balance: Credits,
        /// What it should be.
        sum: Credits,
    },
}

/// The fields of a record.
struct Fields<'a>(&'a BTreeMap<String, String>);

impl Fields<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str).filter(|text| !text.is_empty())
    }

    fn parsed<T: FromStr<Err: Display>>(&self, field: &'static str) -> Result<Option<T>, RecordError> {
        let parse = |text: &str| text.parse().map_err(|error| invalid(field, error));
        self.text(field).map(parse).transpose()
    }

    fn time(&self, field: &'static str) -> Result<Option<Timestamp>, RecordError> {
        let parse =
            |text: &str| parse_time(text).ok_or_else(|| invalid(field, "is not a time, such as 2026-11-21T08:00:00Z"));
        self.text(field).map(parse).transpose()
    }

    /// An amount: exactly in atoms, or else in credits.
    fn amount(&self, atoms: &'static str, credits: &'static str) -> Result<Option<Credits>, RecordError> {
        if let Some(atoms) = self.parsed::<i64>(atoms)? {
            return Ok(Some(Credits::from_atoms(atoms)));
        }
        let parse = |text| Credits::from_printed(text).map_err(|error| invalid(credits, error));
        self.text(credits).map(parse).transpose()
    }
}

fn invalid(field: &'static str, problem: impl Display) -> RecordError {
    RecordError::Field { field, problem: problem.to_string() }
}

/// Reads a record, and plans the import of its account. `now` is the time of creation if the record has none.
///
/// # Errors
/// When the record is not an account. Nothing is guessed about money: totals that do not add up are an error.
pub fn plan_record(fields: &BTreeMap<String, String>, now: Timestamp) -> Result<PlannedAccount, RecordError> {
    if let Some(unknown) = fields.keys().find(|field| !RECORD_FIELDS.contains(&field.as_str())) {
        return Err(RecordError::Unknown(unknown.clone()));
    }
    let fields = Fields(fields);
    let created_at = fields.time("created_at")?.unwrap_or(now);
    let keys = keys(&fields, created_at)?;
    let id = match fields.parsed::<AccountId>("org_id")? {
        Some(id) => id,
        None => {
            let first = keys.iter().flat_map(|key| &key.secrets).next().ok_or(RecordError::Missing("key_hash"))?;
            ImportedAccount::derived_id("accounts", &hex::encode(first.hash.as_bytes()))
        }
    };
    let revoked_at = fields.time("revoked_at")?;
    if fields.text("status") == Some("revoked") && revoked_at.is_none() {
        return Err(RecordError::Missing("revoked_at"));
    }
    if keys.iter().all(|key| key.secrets.is_empty()) && revoked_at.is_none() && fields.text("org_id").is_none() {
        return Err(RecordError::Missing("key_hash"));
    }
    let (email, email_status) = (fields.parsed("email")?, email_status(&fields)?);
    let amounts = Amounts::of(&fields)?;
    let used_transactions =
        fields.text("used_transactions").map_or(Ok(Vec::new()), |text| key_record::used_from_json(text, created_at))?;
    let paid = used_transactions.iter().map(|used| ImportedEntry {
        entry: NewLedgerEntry {
            payment: Some(PaymentRef { tx: used.tx, plan_id: None }),
            ..NewLedgerEntry::new(LedgerKind::PurchaseImported, Credits::ZERO, "Payment credited before the import")
        },
        created_at: used.credited_at,
    });
    let subject = id.to_string();
    let mut oddities = Vec::new();
    if amounts.held != Credits::ZERO {
        let detail = format!("{} credits were held by requests in flight; they are in the balance here", amounts.held);
        oddities.push(ImportFinding::new(&subject, ImportFindingKind::Held, detail));
    }
    if amounts.balance < Credits::ZERO {
        let detail = format!("the balance is {}; it is imported as it is", amounts.balance);
        oddities.push(ImportFinding::new(&subject, ImportFindingKind::NegativeBalance, detail));
    }
    let account = ImportedAccount {
        entries: amounts.entries(created_at).into_iter().chain(paid).collect(),
        usage: amounts.usage(created_at),
        id,
        agent_name: fields.parsed("agent_name")?.ok_or(RecordError::Missing("agent_name"))?,
        email,
        email_status,
        payer: payer(&fields)?,
        limits: RateLimits::per_minute(fields.parsed("requests_per_minute")?.unwrap_or_default())
            .and_per_day(fields.parsed("requests_per_day")?.unwrap_or_default()),
        tokens_per_minute: fields.parsed("tokens_per_minute")?.unwrap_or_default(),
        keys,
        used_transactions,
        created_at,
        revoked_at,
    };
    Ok(PlannedAccount { subject, account, balance: amounts.balance, rounding: Credits::ZERO, oddities })
}

fn keys(fields: &Fields<'_>, created_at: Timestamp) -> Result<Vec<ImportedKey>, RecordError> {
    match (fields.text("keys"), fields.text("key_hash")) {
        (Some(_), Some(_)) => Err(invalid("key_hash", "give either key_hash or keys")),
        (Some(keys), None) => {
            let keys = key_record::keys_from_json(keys, created_at)?;
            if keys.is_empty() { Err(invalid("keys", "an account has at least one key")) } else { Ok(keys) }
        }
        (None, Some(text)) => {
            let hash = key_record::hash(text).ok_or_else(|| invalid("key_hash", key_record::HASH_PROBLEM))?;
            let hash_kind: HashKind = fields.parsed("hash_kind")?.ok_or(RecordError::Missing("hash_kind"))?;
            let secret = ImportedSecret { hash, hash_kind, expires_at: None };
            Ok(vec![ImportedKey::first(secret, created_at)])
        }
        (None, None) => Err(RecordError::Missing("key_hash")),
    }
}

fn email_status(fields: &Fields<'_>) -> Result<EmailStatus, RecordError> {
    let verified_at = fields.time("email_verified_at")?;
    let pending = fields.parsed::<i64>("email_credits_atoms")?;
    match (verified_at, pending) {
        (Some(_), Some(_)) => Err(invalid("email_credits_atoms", "an address that is verified waits for nothing")),
        (Some(at), None) => Ok(EmailStatus::Verified { at }),
        (None, Some(atoms)) if atoms < 0 => Err(invalid("email_credits_atoms", "must not be below zero")),
        (None, Some(atoms)) => Ok(EmailStatus::Pending { free_credits: Credits::from_atoms(atoms) }),
        (None, None) => Ok(EmailStatus::Unchecked),
    }
}

fn payer(fields: &Fields<'_>) -> Result<Option<Payer>, RecordError> {
    let Some(address) = fields.parsed("payer_address")? else { return Ok(None) };
    let chain_id = fields.parsed("payer_chain_id")?.ok_or(RecordError::Missing("payer_chain_id"))?;
    Ok(Some(Payer { address, chain_id }))
}

/// The amounts of a record. The balance includes held credits.
struct Amounts {
    balance: Credits,
    purchased: Credits,
    granted: Credits,
    used: Credits,
    held: Credits,
}

impl Amounts {
    fn of(fields: &Fields<'_>) -> Result<Self, RecordError> {
        let balance = fields.amount("credit_balance_atoms", "credit_balance")?;
        let balance = balance.ok_or(RecordError::Missing("credit_balance_atoms"))?;
        let held = fields.amount("credits_held_atoms", "credits_held")?.unwrap_or_default();
        let purchased = fields.amount("total_credits_purchased_atoms", "total_credits_purchased")?.unwrap_or_default();
        let used = fields.amount("total_credits_used_atoms", "total_credits_used")?.unwrap_or_default();
        for (field, amount) in
            [("credits_held", held), ("total_credits_purchased", purchased), ("total_credits_used", used)]
        {
            if amount < Credits::ZERO {
                return Err(invalid(field, "must not be below zero"));
            }
        }
        let range = || invalid("credit_balance", "is out of range");
        let balance_before_holds = balance.checked_add(held).ok_or_else(range)?;
        let rest = balance_before_holds.checked_add(used).and_then(|sum| sum.checked_sub(purchased));
        let rest = rest.ok_or_else(range)?;
        match fields.amount("total_credits_granted_atoms", "total_credits_granted")? {
            Some(granted) if granted != rest => {
                let sum = purchased.checked_add(granted).and_then(|sum| sum.checked_sub(used));
                let sum = sum.and_then(|sum| sum.checked_sub(held)).ok_or_else(range)?;
                Err(RecordError::Unequal { balance, sum })
            }
            _ => Ok(Self { balance: balance_before_holds, purchased, granted: rest, used, held }),
        }
    }

    fn entries(&self, created_at: Timestamp) -> Vec<ImportedEntry> {
        let table = [
            (LedgerKind::PurchaseImported, self.purchased, "Purchased before the import"),
            (LedgerKind::Adjustment, self.granted, "Granted before the import"),
        ];
        let entry = |(kind, amount, description)| ImportedEntry {
            entry: NewLedgerEntry::new(kind, amount, description),
            created_at,
        };
        table.into_iter().filter(|(_, amount, _)| *amount != Credits::ZERO).map(entry).collect()
    }

    fn usage(&self, created_at: Timestamp) -> Vec<ImportedUsage> {
        if self.used == Credits::ZERO {
            return Vec::new();
        }
        vec![opening_usage(created_at, self.used)]
    }
}

/// Usage that the source has only as a sum.
pub(crate) fn opening_usage(at: Timestamp, credits_used: Credits) -> ImportedUsage {
    let line =
        UsageLine { route_template: OPENING_ROUTE.into(), http_method: "IMPORT".into(), source: ClientSource::Direct };
    ImportedUsage { day: at.day(), line, calls: 0, credits_used }
}
