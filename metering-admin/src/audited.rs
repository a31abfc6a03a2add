//! An action and its entry in the audit log are one transaction (ADR 42).

use std::error::Error;

use metering_core::clock::Timestamp;
use metering_core::operators::{AuditOutcome, AuditResult, NewAuditEntry};
use metering_core::store::{FullStore, Pending, StoreError, in_transaction};
use serde::Serialize;

use crate::action::Action;
use crate::administration::Administration;
use crate::call::{AdminCall, Audit};

/// The name of an action and what it is about.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    name: &'static str,
    subject: String,
    /// The request, as JSON.
    request: String,
    action: &'a Action,
}

impl<'a> Target<'a> {
    /// The target of a call that is logged, without parameters.
    pub(crate) fn of<C: AdminCall>(subject: impl ToString, action: &'a Action) -> Self {
        let audit = const { C::AUDIT.expect("the call is an action") };
        Self::named(audit, subject, action)
    }

    /// The same, for an action that is not a call.
    pub(crate) fn named(audit: Audit, subject: impl ToString, action: &'a Action) -> Self {
        Self { name: audit.name, subject: subject.to_string(), request: NOTHING.to_owned(), action }
    }

    /// The same, with the request, as JSON.
    pub(crate) fn asked(self, request: String) -> Self {
        Self { request, ..self }
    }

    pub(crate) fn entry(self, at: Timestamp) -> NewAuditEntry {
        let Self { name, subject, request, action } = self;
        let (actor, reason) = (action.actor().clone(), action.reason().to_owned());
        NewAuditEntry { at, actor, action: name.to_owned(), subject, reason, request, before: None }
    }
}

/// The request of an action without parameters.
const NOTHING: &str = "{}";

/// A request for the audit log, without its reason, which is in a separate field.
pub(crate) fn requested(request: &impl Serialize) -> String {
    json(request).unwrap_or_else(|| NOTHING.to_owned())
}

/// A document for the audit log.
pub(crate) fn json(document: &impl Serialize) -> Option<String> {
    serde_json::to_string(document).ok()
}

/// A step of an action, which only reads and writes the store of its transaction.
pub(crate) type Step<A, T, E> = for<'a> fn(&'a dyn FullStore, &'a A) -> Pending<'a, Result<T, E>>;

/// The step before an action whose subject does not exist yet.
pub(crate) fn nothing<'a, A, E>(_: &'a dyn FullStore, _: &'a A) -> Pending<'a, Result<Option<String>, E>>
where
    E: Send + 'static,
{
    Box::pin(std::future::ready(Ok(None)))
}

/// The steps of an action in its transaction.
struct Steps<A, T, E> {
    entry: NewAuditEntry,
    args: A,
    before: Step<A, Option<String>, E>,
    act: Step<A, T, E>,
    after: fn(&T) -> Option<String>,
}

/// Why an action was not taken. As an error of a step it undoes what the others wrote.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct Refusal<E: Error> {
    error: E,
    /// `None` if there is no subject.
    entry: Option<NewAuditEntry>,
}

impl<A, T, E: Error + Send + Sync + 'static> Steps<A, T, E> {
    async fn take(&self, store: &dyn FullStore) -> Result<T, StoreError> {
        let undone = |error, entry| StoreError::Unavailable(Box::new(Refusal { error, entry }));
        let before = (self.before)(store, &self.args).await.map_err(|error| undone(error, None))?;
        let entry = NewAuditEntry { before, ..self.entry.clone() };
        match (self.act)(store, &self.args).await {
            Ok(value) => {
                store.log_action(entry.clone(), done(entry.at, (self.after)(&value))).await?;
                Ok(value)
            }
            Err(error) => Err(undone(error, Some(entry))),
        }
    }
}

pub(crate) const fn done(at: Timestamp, after: Option<String>) -> AuditOutcome {
    AuditOutcome { at, result: AuditResult::Done, detail: String::new(), after }
}

impl Administration {
    /// Takes an action and logs it, in one transaction. `before` describes its subject, and `after` what became of it.
    ///
    /// If `before` fails, there is no subject, and nothing to log. If `act` fails, nothing that it wrote stays, and the
    /// refusal is logged. If the store fails, neither the action nor an entry stays, unless the outcome of the commit
    /// is unknown: then the log shows whether the action was taken.
    pub(crate) async fn audited<A, T, E>(
        &self,
        target: Target<'_>,
        args: A,
        before: Step<A, Option<String>, E>,
        act: Step<A, T, E>,
        after: fn(&T) -> Option<String>,
    ) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + Sync + 'static,
        E: Error + From<StoreError> + Send + Sync + 'static,
    {
        let steps = Steps { entry: target.entry(self.clock.now()), args, before, act, after };
        let result = in_transaction(&*self.store, steps, |store, steps| Box::pin(steps.take(store))).await;
        let failure = match result {
            Err(StoreError::Unavailable(cause)) => cause,
            result => return Ok(result?),
        };
        let Refusal { error, entry } = match failure.downcast::<Refusal<E>>() {
            Ok(refusal) => *refusal,
            Err(failure) => return Err(StoreError::Unavailable(failure).into()),
        };
        if let Some(entry) = entry {
            self.log_refusal(entry, &error).await;
        }
        Err(error)
    }

    /// Logs an action that was refused.
    pub(crate) async fn log_refusal(&self, entry: NewAuditEntry, refusal: &impl Error) {
        let detail = refusal.to_string();
        let outcome = AuditOutcome { at: entry.at, result: AuditResult::Refused, detail, after: None };
        if let Err(error) = self.store.log_action(entry, outcome).await {
            tracing::error!(%error, "could not write a refused action to the audit log");
        }
    }
}
