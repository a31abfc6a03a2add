//! The audit log.

use metering_core::operators::{AuditEntry, AuditOutcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A page of the audit log, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditDocument {
    /// The entries.
    pub entries: Vec<AuditEntryDocument>,
    /// The value of `before` for older entries; null when there are none.
    pub next: Option<i64>,
}

/// An action.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntryDocument {
    /// The entry's number; numbers increase with time.
    pub id: i64,
    /// When, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// Who: `operator:NAME`, `oidc:MAIL (SUB at ISSUER)`, `command_line:USER`, or `processor:NAME`.
    pub actor: String,
    /// The kind of action, such as `account.grant`.
    pub action: String,
    /// The target: an account's id, `plan:ID@CHAIN_ID`, `payment:CHAIN_ID:HASH` or `operator:NAME`.
    pub subject: String,
    /// Why; empty if the command line gave no reason.
    pub reason: String,
    /// The parameters of the action: amounts, notes, limits. Never a secret.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub request: Option<Box<RawValue>>,
    /// What the subject was before; null if it did not exist.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub before: Option<Box<RawValue>>,
    /// How it ended; null if an earlier version wrote the entry, and stopped before it wrote the outcome. It is then
    /// unknown whether the action was taken.
    pub outcome: Option<AuditOutcomeDocument>,
}

/// How an action ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditOutcomeDocument {
    /// When, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// `done`, `refused` (nothing changed), or `unknown` in entries of earlier versions (the store failed during the
    /// commit).
    pub result: String,
    /// Why it was refused; empty if it was taken.
    pub detail: String,
    /// What the subject was afterwards, if the action was taken.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub after: Option<Box<RawValue>>,
}

/// Text that is not JSON cannot be stored by this program; it is shown as absent.
fn raw(json: Option<String>) -> Option<Box<RawValue>> {
    json.and_then(|json| RawValue::from_string(json).ok())
}

impl From<AuditEntry> for AuditEntryDocument {
    fn from(AuditEntry { id, entry, outcome }: AuditEntry) -> Self {
        Self {
            id: id.0,
            at: entry.at.to_string(),
            actor: entry.actor.to_string(),
            action: entry.action,
            subject: entry.subject,
            reason: entry.reason,
            request: raw(Some(entry.request)),
            before: raw(entry.before),
            outcome: outcome.map(AuditOutcomeDocument::from),
        }
    }
}

impl From<AuditOutcome> for AuditOutcomeDocument {
    fn from(outcome: AuditOutcome) -> Self {
        Self {
            at: outcome.at.to_string(),
            result: outcome.result.as_str().to_owned(),
            detail: outcome.detail,
            after: raw(outcome.after),
        }
    }
}
