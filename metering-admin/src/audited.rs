//! An action is logged before it is taken and again with its outcome.

use std::fmt;

use metering_core::operators::{AuditId, AuditOutcome, AuditResult, NewAuditEntry};
use metering_core::store::StoreError;
use serde::Serialize;

use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Call};
use crate::error::AdminError;
use crate::payments::AssignError;

/// The name of an action and what it is about.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    name: &'static str,
    subject: String,
    /// The request, as JSON.
    request: String,
    /// What the subject is before the action, as JSON.
    before: Option<String>,
    action: &'a Action,
}

impl<'a> Target<'a> {
    /// The target of a call that is logged: without parameters, and nothing before.
    pub(crate) fn of<C: Call>(subject: impl ToString, action: &'a Action) -> Self {
        let audit = const { C::AUDIT.expect("the call is an action") };
        Self::named(audit, subject, action)
    }

    /// The same of an action that is no call.
    pub(crate) fn named(audit: Audit, subject: impl ToString, action: &'a Action) -> Self {
        Self { name: audit.name, subject: subject.to_string(), request: NOTHING.to_owned(), before: None, action }
    }

    /// The same, with the request, as JSON.
    pub(crate) fn asked(self, request: String) -> Self {
        Self { request, ..self }
    }

    /// The same, with what the subject is before, as JSON.
    pub(crate) fn before(self, before: Option<String>) -> Self {
        Self { before, ..self }
    }
}

/// Why an action was not taken.
pub(crate) trait Failure: fmt::Display + From<StoreError> {
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
const NOTHING: &str = "{}";

/// A request for the audit log, without its reason, which has a place of its own.
pub(crate) fn requested(request: &impl Serialize) -> String {
    json(request).unwrap_or_else(|| NOTHING.to_owned())
}

/// A document for the audit log.
pub(crate) fn json(document: &impl Serialize) -> Option<String> {
    serde_json::to_string(document).ok()
}

impl Administration {
    /// Logs an action, takes it, and logs its outcome. `after` describes the subject once the action was taken.
    ///
    /// If the first entry cannot be written, the action is not taken. If the second cannot be, the result is returned
    /// all the same: the log then says that the outcome is not known, which is true.
    pub(crate) async fn audited<T, E: Failure>(
        &self,
        target: Target<'_>,
        taken: impl Future<Output = Result<T, E>>,
        after: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, E> {
        let Target { name, subject, request, before, action } = target;
        let (actor, reason) = (action.actor().clone(), action.reason().to_owned());
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
