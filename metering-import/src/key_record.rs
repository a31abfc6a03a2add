//! Keys and used transactions in the `accounts` format: JSON arrays in a field of the account's record.

use std::fmt::Display;
use std::str::FromStr;

use metering_core::access::{Budget, BudgetReset, Key, KeyHash, KeyHint, KeyTerms, RateLimits, SecretRecord};
use metering_core::chains::TxRef;
use metering_core::clock::Timestamp;
use metering_core::imports::{ImportedKey, ImportedSecret, UsedTransaction};
use metering_core::money::Credits;
use serde::{Deserialize, Serialize};

use crate::time::parse_time;

/// The problem with a key or a transaction of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct KeyRecordError {
    field: String,
    problem: String,
}

impl KeyRecordError {
    fn new(field: impl Into<String>, problem: impl Display) -> Self {
        Self { field: field.into(), problem: problem.to_string() }
    }
}

/// A key. Missing fields default to a key with all rights.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyDocument {
    id: Option<String>,
    /// The position of the parent in the list; the first key has none.
    parent: Option<usize>,
    name: Option<String>,
    scopes: Option<String>,
    #[serde(default)]
    routes: String,
    #[serde(default)]
    networks: String,
    expires_at: Option<String>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    requests_per_minute: u32,
    #[serde(default)]
    requests_per_day: u32,
    #[serde(default)]
    tokens_per_minute: u32,
    #[serde(default)]
    max_in_flight: u32,
    budget_atoms: Option<i64>,
    budget_reset: Option<String>,
    alert_below_atoms: Option<i64>,
    created_at: Option<String>,
    leaked_at: Option<String>,
    /// The visible part of the secret that does not expire.
    hint: Option<String>,
    #[serde(default)]
    secrets: Vec<SecretDocument>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretDocument {
    hash: String,
    hash_kind: String,
    expires_at: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsedDocument {
    chain_id: u64,
    tx_hash: String,
    credited_at: Option<String>,
}

/// The keys of an account that are not revoked, as the export writes them. `keys` are in the order of their numbers.
#[must_use]
pub fn keys_as_json(keys: &[Key], secrets: &[SecretRecord]) -> String {
    let position = |number| keys.iter().position(|key| key.number == number);
    let document = |key: &Key| {
        let terms = &key.terms;
        let of_key = secrets.iter().filter(|secret| secret.key == key.number);
        let secret = |secret: &SecretRecord| SecretDocument {
            hash: hex::encode(secret.hash.as_bytes()),
            hash_kind: secret.hash_kind.to_string(),
            expires_at: secret.expires_at.map(|at| at.to_string()),
        };
        KeyDocument {
            id: Some(key.id.to_string()),
            parent: key.parent.and_then(position),
            name: Some(terms.name.as_str().to_owned()),
            scopes: Some(terms.scopes.to_string()),
            routes: terms.routes.to_string(),
            networks: terms.networks.to_string(),
            expires_at: terms.expires_at.map(|at| at.to_string()),
            disabled: terms.disabled,
            requests_per_minute: terms.limits.requests_per_minute,
            requests_per_day: terms.limits.requests_per_day,
            tokens_per_minute: terms.tokens_per_minute,
            max_in_flight: terms.max_in_flight,
            budget_atoms: terms.budget.map(|budget| budget.limit.atoms()),
            budget_reset: terms.budget.and_then(|budget| budget.reset).map(|reset| reset.to_string()),
            alert_below_atoms: terms.alert_below.map(Credits::atoms),
            created_at: Some(key.created_at.to_string()),
            leaked_at: key.leaked_at.map(|at| at.to_string()),
            hint: key.hint.map(|hint| hint.to_string()),
            secrets: of_key.map(secret).collect(),
        }
    };
    let documents: Vec<_> = keys.iter().map(document).collect();
    serde_json::to_string(&documents).unwrap_or_else(|_| "[]".to_owned())
}

/// Used transactions, as the export writes them.
#[must_use]
pub fn used_as_json(used: &[UsedTransaction]) -> String {
    let document = |used: &UsedTransaction| UsedDocument {
        chain_id: used.tx.chain_id,
        tx_hash: used.tx.hash.to_string(),
        credited_at: Some(used.credited_at.to_string()),
    };
    let documents: Vec<_> = used.iter().map(document).collect();
    serde_json::to_string(&documents).unwrap_or_else(|_| "[]".to_owned())
}

/// Reads the keys of an account that was created at `created_at`.
pub(crate) fn keys_from_json(text: &str, created_at: Timestamp) -> Result<Vec<ImportedKey>, KeyRecordError> {
    let documents: Vec<KeyDocument> = serde_json::from_str(text).map_err(|error| KeyRecordError::new("keys", error))?;
    let read = |(position, document)| key(position, document, created_at);
    documents.into_iter().enumerate().map(read).collect()
}

fn key(position: usize, document: KeyDocument, created_at: Timestamp) -> Result<ImportedKey, KeyRecordError> {
    let named = |field: &str| format!("keys[{position}].{field}");
    let first = KeyTerms::first();
    let parent = match (position, document.parent) {
        (0, None) => None,
        (0, Some(_)) => return Err(KeyRecordError::new(named("parent"), "the first key has no parent")),
        (_, parent) => Some(parent.unwrap_or(0)),
    };
    if parent.is_some_and(|parent| parent >= position) {
        return Err(KeyRecordError::new(named("parent"), "must be the position of an earlier key"));
    }
    let time = |field: &str, value: Option<&str>| match value {
        None => Ok(None),
        Some(text) => parse_time(text).map(Some).ok_or_else(|| KeyRecordError::new(named(field), "is not a time")),
    };
    let atoms = |field: &str, value: Option<i64>| match value {
        Some(atoms) if atoms < 0 => Err(KeyRecordError::new(named(field), "must not be below zero")),
        other => Ok(other.map(Credits::from_atoms)),
    };
    let reset: Option<BudgetReset> =
        document.budget_reset.as_deref().map(|text| parse(&named("budget_reset"), text)).transpose()?;
    let limit = atoms("budget_atoms", document.budget_atoms)?;
    if limit.is_none() && reset.is_some() {
        return Err(KeyRecordError::new(named("budget_reset"), "needs budget_atoms"));
    }
    let terms = KeyTerms {
        name: document.name.as_deref().map_or(Ok(first.name), |text| parse(&named("name"), text))?,
        scopes: document.scopes.as_deref().map_or(Ok(first.scopes), |text| parse(&named("scopes"), text))?,
        routes: parse(&named("routes"), &document.routes)?,
        networks: parse(&named("networks"), &document.networks)?,
        expires_at: time("expires_at", document.expires_at.as_deref())?,
        disabled: document.disabled,
        limits: RateLimits::per_minute(document.requests_per_minute).and_per_day(document.requests_per_day),
        tokens_per_minute: document.tokens_per_minute,
        max_in_flight: document.max_in_flight,
        budget: limit.map(|limit| Budget { limit, reset }),
        alert_below: atoms("alert_below_atoms", document.alert_below_atoms)?,
    };
    let hint: Option<KeyHint> = document.hint.as_deref().map(|text| parse(&named("hint"), text)).transpose()?;
    let secret = |secret: SecretDocument| {
        let hash = hash(&secret.hash).ok_or_else(|| KeyRecordError::new(named("secrets"), HASH_PROBLEM))?;
        let hash = hint.filter(|_| secret.expires_at.is_none()).map_or(hash, |hint| hash.with_hint(hint));
        let hash_kind = parse(&named("hash_kind"), &secret.hash_kind)?;
        Ok(ImportedSecret { hash, hash_kind, expires_at: time("secrets.expires_at", secret.expires_at.as_deref())? })
    };
    let working = document.secrets.iter().filter(|secret| secret.expires_at.is_none()).count();
    if working != usize::from(document.leaked_at.is_none()) {
        let problem = "a key has one hash that does not expire; one that leaked has none";
        return Err(KeyRecordError::new(named("secrets"), problem));
    }
    Ok(ImportedKey {
        id: document.id.as_deref().map(|text| parse(&named("id"), text)).transpose()?,
        parent,
        terms,
        created_at: time("created_at", document.created_at.as_deref())?.unwrap_or(created_at),
        leaked_at: time("leaked_at", document.leaked_at.as_deref())?,
        secrets: document.secrets.into_iter().map(secret).collect::<Result<_, _>>()?,
    })
}

/// Reads used transactions.
pub(crate) fn used_from_json(text: &str, created_at: Timestamp) -> Result<Vec<UsedTransaction>, KeyRecordError> {
    let field = "used_transactions";
    let documents: Vec<UsedDocument> = serde_json::from_str(text).map_err(|error| KeyRecordError::new(field, error))?;
    let read = |document: UsedDocument| {
        let hash = document.tx_hash.parse().map_err(|error| KeyRecordError::new(field, error))?;
        let credited_at = match document.credited_at.as_deref() {
            Some(text) => parse_time(text).ok_or_else(|| KeyRecordError::new(field, "credited_at is not a time"))?,
            None => created_at,
        };
        Ok(UsedTransaction { tx: TxRef { chain_id: document.chain_id, hash }, credited_at })
    };
    documents.into_iter().map(read).collect()
}

pub(crate) const HASH_PROBLEM: &str = "a key hash is 64 lower-case hex digits";

/// Reads a hash: 64 lower-case hex digits, so a key itself is never accepted as a hash.
pub(crate) fn hash(text: &str) -> Option<KeyHash> {
    let bytes = hex::decode(text).ok().filter(|bytes| hex::encode(bytes) == text)?;
    Some(KeyHash::from_bytes(bytes.try_into().ok()?))
}

fn parse<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, KeyRecordError> {
    text.parse().map_err(|error| KeyRecordError::new(field, error))
}
