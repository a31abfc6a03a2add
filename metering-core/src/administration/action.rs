//! An action: who does something, and why. It is logged before it is taken and again with its outcome.

use std::fmt;

use serde::Serialize;

use crate::administration::payments::{AssignError, Reason};
use crate::administration::{AdminError, Administration};
use crate::operators::audit::{Actor, AuditId, AuditOutcome, AuditResult, NewAuditEntry};
use crate::store::StoreError;

/// Who acts, and why.
///
/// ```
/// use metering_core::administration::Action;
/// use metering_core::operators::Actor;
///
/// let jo = || Actor::Operator("jo".parse().unwrap());
/// assert_eq!(Action::new(jo(), " Ticket 311 ")?.reason(), "Ticket 311");
/// assert!(Action::new(jo(), "").is_err());
/// # Ok::<(), metering_core::administration::AdminError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Action {
    actor: Actor,
    reason: String,
}

impl Action {
    /// An action with a reason. Only the command line may leave it empty.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] when the reason is missing, too long, or not one line.
    pub fn new(actor: Actor, reason: &str) -> Result<Self, AdminError> {
        let reason = reason.trim();
        if reason.is_empty() && matches!(actor, Actor::CommandLine(_)) {
            return Ok(Self { actor, reason: String::new() });
        }
        Ok(Self { actor, reason: one_line("reason", reason)? })
    }

    /// Who.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Checks a text for the ledger or the audit log.
pub(super) fn one_line(field: &str, text: &str) -> Result<String, AdminError> {
    let checked: Result<Reason, _> = text.parse();
    let checked = checked.map_err(|error| AdminError::Invalid(format!("{field} {error}")))?;
    Ok(checked.as_str().to_owned())
}

/// The name of an action and what it is about.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) name: &'static str,
    pub(super) subject: String,
    /// The request, as JSON.
    pub(super) request: String,
    /// What the subject is before the action, as JSON.
    pub(super) before: Option<String>,
    pub(super) action: &'a Action,
}

/// Why an action was not taken.
pub(super) trait Failure: fmt::Display + From<StoreError> {
    /// Whether it may have been taken all the same.
    fn outcome_is_unknown(&self) -> bool;
}

impl Failure for AdminError {
    fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::Store(error) if error.outcome_is_unknown())
    }
}

impl Failure for AssignError {
    fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::Store(error) if error.outcome_is_unknown())
    }
}

/// The failure of an action that was not taken because it could not be logged: that is certain, whatever became of the
/// entry.
fn not_begun(error: StoreError) -> StoreError {
    match error {
        StoreError::OutcomeUnknown(_) => StoreError::Unavailable(error.to_string().into()),
        error => error,
    }
}

/// The request of an action without parameters.
pub(super) const NOTHING: &str = "{}";

/// A request for the audit log, without its reason, which has a place of its own.
pub(super) fn requested(request: &impl Serialize) -> String {
    json(request).unwrap_or_else(|| NOTHING.to_owned())
}

/// A document for the audit log.
pub(super) fn json(document: &impl Serialize) -> Option<String> {
    serde_json::to_string(document).ok()
}

impl Administration {
    /// Logs an action, takes it, and logs its outcome. `after` describes the subject once the action was taken.
    ///
    /// If the first entry cannot be written, the action is not taken. If the second cannot be, the result is returned
    /// all the same: the log then says that the outcome is not known, which is true.
    pub(super) async fn audited<T, E: Failure>(
        &self,
        target: Target<'_>,
        taken: impl Future<Output = Result<T, E>>,
        after: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, E> {
        let Target { name, subject, request, before, action } = target;
        let Action { actor, reason } = action.clone();
        let at = self.clock.now();
        let entry = NewAuditEntry { at, actor, action: name.to_owned(), subject, reason, request, before };
        let id = self.store.begin_audit(entry).await.map_err(not_begun)?;
        let result = taken.await;
        let (outcome, detail, after) = match &result {
            Ok(value) => (AuditResult::Done, String::new(), after(value)),
            Err(error) if error.outcome_is_unknown() => (AuditResult::Unknown, error.to_string(), None),
            Err(error) => (AuditResult::Refused, error.to_string(), None),
        };
        self.end(id, AuditOutcome { at: self.clock.now(), result: outcome, detail, after }).await;
        result
    }

    async fn end(&self, id: AuditId, outcome: AuditOutcome) {
        if let Err(error) = self.store.end_audit(id, outcome).await {
            tracing::error!(%error, entry = id.0, "could not write the outcome of an action to the audit log");
        }
    }
}
