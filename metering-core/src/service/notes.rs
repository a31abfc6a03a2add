//! Notes of operators on accounts.
//!
//! A note is the parameter of an action in the audit log, which keeps the author and the time, and never changes. An
//! erasure removes it from there.

use std::sync::Arc;

use serde::Deserialize;

use crate::access::account::AccountId;
use crate::operators::audit::AuditQuery;
use crate::service::metering::Service;
use crate::store::{OperatorStore, StoreError};
use crate::wire::NoteDocument;

/// The action that writes a note.
const ACTION: &str = "account.note";
/// How many are read.
const NEWEST: u32 = 100;

/// The request of that action.
#[derive(Deserialize)]
struct Written {
    note: String,
}

impl Service {
    /// Exports the operators' notes on an account with its other data.
    ///
    /// `store` must be the service's own store.
    #[must_use]
    pub fn with_notes(mut self, store: Arc<dyn OperatorStore>) -> Self {
        self.notes = Some(store);
        self
    }
}

/// The notes on an account, newest first: the newest 100.
///
/// # Errors
/// When the store fails.
pub async fn account_notes(store: &dyn OperatorStore, id: &AccountId) -> Result<Vec<NoteDocument>, StoreError> {
    let query = AuditQuery { subject: Some(id.to_string()), action: Some(ACTION.to_owned()), ..AuditQuery::default() };
    let entries = store.audit_log(&query, NEWEST).await?.into_iter().map(|entry| entry.entry);
    let notes = entries.filter_map(|entry| {
        // An erased one has no text.
        let Written { note: text } = serde_json::from_str(&entry.request).ok()?;
        Some(NoteDocument { at: entry.at.to_string(), by: Some(entry.actor.to_string()), text })
    });
    Ok(notes.collect())
}
