//! The operators and the audit log of a memory store.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::decision::{self, Decided, OperatorFacts};
use crate::operators::audit::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};
use crate::operators::operator::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use crate::store::{StoreError, backend};

/// The state for operators.
#[derive(Debug, Default)]
pub(super) struct OperatorState {
    pub(super) operators: BTreeMap<OperatorName, Operator>,
    /// In the order written: the entry with number n is at n − 1.
    audit: Vec<AuditEntry>,
}

impl OperatorState {
    pub(super) fn create(&mut self, new: NewOperator) -> Result<Option<Operator>, StoreError> {
        let facts = OperatorFacts {
            name_in_use: self.operators.contains_key(&new.name),
            token_in_use: self.token_in_use(&new.token),
        };
        let operator = decision::create_operator(new, facts)?;
        self.operators.extend(operator.clone().map(|operator| (operator.name.clone(), operator)));
        Ok(operator)
    }

    pub(super) fn revoke(&mut self, name: &OperatorName, now: Timestamp) -> Option<Operator> {
        match decision::revoke_operator(self.operators.get(name).cloned(), now) {
            Decided::Accepted(revoked) => {
                self.operators.insert(name.clone(), revoked.clone());
                Some(revoked)
            }
            Decided::Refused(found) => found,
        }
    }

    pub(super) fn rotate_token(
        &mut self,
        name: &OperatorName,
        token: OperatorTokenHash,
    ) -> Result<Option<Operator>, StoreError> {
        let in_use = self.token_in_use(&token);
        let operator = decision::rotate_operator_token(self.operators.get(name).cloned(), token, in_use)?;
        self.operators.extend(operator.clone().map(|operator| (name.clone(), operator)));
        Ok(operator)
    }

    fn token_in_use(&self, token: &OperatorTokenHash) -> bool {
        self.operators.values().any(|operator| operator.token == *token)
    }

    pub(super) fn begin(&mut self, entry: NewAuditEntry) -> AuditId {
        let id = AuditId(i64::try_from(self.audit.len()).unwrap_or(i64::MAX) + 1);
        self.audit.push(AuditEntry { id, entry, outcome: None });
        id
    }

    pub(super) fn end(&mut self, id: AuditId, outcome: AuditOutcome) -> Result<(), StoreError> {
        let in_progress = |entry: &&mut AuditEntry| entry.id == id && entry.outcome.is_none();
        let entry = self.audit.iter_mut().find(in_progress).ok_or_else(|| backend::audit_entry_is_closed(id))?;
        entry.outcome = Some(outcome);
        Ok(())
    }

    pub(super) fn log(&self, query: &AuditQuery, limit: u32) -> Vec<AuditEntry> {
        let asked = |entry: &&AuditEntry| {
            query.before.is_none_or(|before| entry.id < before)
                && query.subject.as_ref().is_none_or(|subject| entry.entry.subject == *subject)
        };
        self.audit.iter().rev().filter(asked).take(limit as usize).cloned().collect()
    }
}
