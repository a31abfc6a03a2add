//! The operators and the audit log of a memory store, and the report for operators.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::decision::{self, Decided, OperatorFacts};
use crate::operators::audit::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};
use crate::operators::operator::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use crate::operators::report::OperationsReport;
use crate::store::backend::{self, OperationsSums};
use crate::store::{OperatorStore, StoreError};
use crate::usage::DayRange;

use super::MemoryStore;
use super::state::State;

/// The state for operators.
#[derive(Debug, Default)]
pub(super) struct OperatorState {
    operators: BTreeMap<OperatorName, Operator>,
    /// In the order written: the entry with number n is at n − 1.
    audit: Vec<AuditEntry>,
}

impl OperatorState {
    fn create(&mut self, new: NewOperator) -> Result<Option<Operator>, StoreError> {
        let facts = OperatorFacts {
            name_in_use: self.operators.contains_key(&new.name),
            token_in_use: self.operators.values().any(|operator| operator.token == new.token),
        };
        let operator = decision::create_operator(new, facts)?;
        self.operators.extend(operator.clone().map(|operator| (operator.name.clone(), operator)));
        Ok(operator)
    }

    fn revoke(&mut self, name: &OperatorName, now: Timestamp) -> Option<Operator> {
        match decision::revoke_operator(self.operators.get(name).cloned(), now) {
            Decided::Accepted(revoked) => {
                self.operators.insert(name.clone(), revoked.clone());
                Some(revoked)
            }
            Decided::Refused(found) => found,
        }
    }

    fn begin(&mut self, entry: NewAuditEntry) -> AuditId {
        let id = AuditId(i64::try_from(self.audit.len()).unwrap_or(i64::MAX) + 1);
        self.audit.push(AuditEntry { id, entry, outcome: None });
        id
    }

    fn end(&mut self, id: AuditId, outcome: AuditOutcome) -> Result<(), StoreError> {
        let under_way = |entry: &&mut AuditEntry| entry.id == id && entry.outcome.is_none();
        let entry = self.audit.iter_mut().find(under_way).ok_or_else(|| backend::not_under_way(id))?;
        entry.outcome = Some(outcome);
        Ok(())
    }

    fn log(&self, query: &AuditQuery, limit: u32) -> Vec<AuditEntry> {
        let asked = |entry: &&AuditEntry| {
            query.before.is_none_or(|before| entry.id < before)
                && query.subject.as_ref().is_none_or(|subject| entry.entry.subject == *subject)
        };
        self.audit.iter().rev().filter(asked).take(limit as usize).cloned().collect()
    }
}

impl State {
    fn operations_report(&self, days: DayRange) -> Result<OperationsReport, StoreError> {
        let (mut sums, mut lines) = (OperationsSums::new(days), HashMap::new());
        for (index, record) in self.accounts.iter().enumerate() {
            sums.add_accounts(record.account.created_at.day(), 1);
            for ((day, line), total) in &record.usage {
                sums.add_usage(*day, index, line, total.calls, total.atoms);
                lines.insert(line, line.clone());
            }
        }
        for entry in &self.ledger {
            let tx = entry.payment.as_ref().map(|payment| payment.tx);
            sums.add_entries(entry.created_at.day(), entry.kind, entry.amount.atoms().into(), tx);
        }
        self.payments.payments.iter().for_each(|record| sums.add_payment(record.clone()));
        let name = |index: usize| {
            let account = &self.accounts[index].account;
            (index, (account.id.clone(), account.agent_name.clone()))
        };
        let names = sums.top_accounts().into_iter().map(name).collect();
        sums.report(&names, &lines)
    }
}

#[async_trait]
impl OperatorStore for MemoryStore {
    async fn create_operator(&self, operator: NewOperator) -> Result<Option<Operator>, StoreError> {
        self.state()?.operators.create(operator)
    }

    async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>, StoreError> {
        let state = self.state()?;
        let live = |operator: &&Operator| operator.token == *token && operator.revoked_at.is_none();
        Ok(state.operators.operators.values().find(live).cloned())
    }

    async fn operators(&self) -> Result<Vec<Operator>, StoreError> {
        Ok(self.state()?.operators.operators.values().cloned().collect())
    }

    async fn revoke_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>, StoreError> {
        Ok(self.state()?.operators.revoke(name, now))
    }

    async fn begin_audit(&self, entry: NewAuditEntry) -> Result<AuditId, StoreError> {
        Ok(self.state()?.operators.begin(entry))
    }

    async fn end_audit(&self, id: AuditId, outcome: AuditOutcome) -> Result<(), StoreError> {
        self.state()?.operators.end(id, outcome)
    }

    async fn audit_log(&self, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.state()?.operators.log(query, limit))
    }

    async fn operations_report(&self, days: DayRange) -> Result<OperationsReport, StoreError> {
        self.state()?.operations_report(days)
    }
}
