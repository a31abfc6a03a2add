//! The audit log.

use metering_core::operators::{AuditEntry, AuditOutcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::wire::document::document;

/// A page of the audit log, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditDocument {
    /// The entries.
    pub entries: Vec<AuditEntryDocument>,
    /// The value of `before` for older entries; null when there are none.
    pub next: Option<i64>,
}

document! {
    /// An action.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct AuditEntryDocument from found: AuditEntry;

    /// The entry's number; numbers increase with time.
    id: i64 = found.id.0,
    /// When, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    at: String = found.entry.at.to_string(),
    /// Who: `operator:NAME`, `oidc:MAIL (SUB at ISSUER)`, `command_line:USER`, or `processor:NAME`.
    actor: String = found.entry.actor.to_string(),
    /// The kind of action, such as `account.grant`.
    action: String = found.entry.action,
    /// The target: an account's id, `plan:ID@CHAIN_ID`, `payment:CHAIN_ID:HASH` or `operator:NAME`.
    subject: String = found.entry.subject,
    /// Why; empty if the command line gave no reason.
    reason: String = found.entry.reason,
    /// The parameters of the action: amounts, notes, limits. Never a secret.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    request: Option<Box<RawValue>> = raw(Some(found.entry.request)),
    /// The subject before the action; null if it did not exist.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    before: Option<Box<RawValue>> = raw(found.entry.before),
    /// How it ended; null if an earlier version wrote the entry, and stopped before it wrote the outcome. It is then
    /// unknown whether the action was taken.
    outcome: Option<AuditOutcomeDocument> = found.outcome.map(AuditOutcomeDocument::from),
}

document! {
    /// How an action ended.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct AuditOutcomeDocument from outcome: AuditOutcome;

    /// When, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    at: String = outcome.at.to_string(),
    /// `done`, `refused` (nothing changed), or `unknown` in entries of earlier versions (the store failed during the
    /// commit).
    result: String = outcome.result.as_str().to_owned(),
    /// Why it was refused; empty if it was taken.
    detail: String = outcome.detail,
    /// The subject after the action, if the action was taken.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    after: Option<Box<RawValue>> = raw(outcome.after),
}

/// Text that is not JSON cannot be stored by this program; it is shown as absent.
fn raw(json: Option<String>) -> Option<Box<RawValue>> {
    json.and_then(|json| RawValue::from_string(json).ok())
}
