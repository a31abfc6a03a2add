//! Operators, the audit log and the operators' report, on a memory store.

use std::collections::HashMap;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::operators::audit::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};
use crate::operators::operator::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use crate::operators::report::OperationsReport;
use crate::store::backend::OperationsSums;
use crate::store::{OperatorStore, StoreError};
use crate::usage::DayRange;

use super::MemoryStore;
use super::state::State;

impl State {
    fn operations_report(&self, days: DayRange) -> Result<OperationsReport, StoreError> {
        let (mut sums, mut lines) = (OperationsSums::new(days), HashMap::new());
        for (index, record) in self.accounts.iter().enumerate() {
            sums.add_accounts(record.account.created_at.day(), 1);
            for ((day, line, _), total) in &record.usage {
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

    async fn rotate_operator_token(
        &self,
        name: &OperatorName,
        token: &OperatorTokenHash,
    ) -> Result<Option<Operator>, StoreError> {
        self.state()?.operators.rotate_token(name, *token)
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
