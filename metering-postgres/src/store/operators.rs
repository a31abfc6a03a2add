//! Implements the part of the storage contract for operators. Each method runs in a transaction.

use async_trait::async_trait;
use metering_core::operators::{
    AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry, NewOperator, OperationsReport, Operator,
    OperatorName, OperatorTokenHash,
};
use metering_core::usage::DayRange;
use metering_core::{OperatorStore, StoreError, Timestamp};

use crate::charging::known::SharedKnown;
use crate::operators::{audit, operator, report};
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl OperatorStore for PostgresStore {
    async fn create_operator(&self, new: NewOperator) -> Result<Option<Operator>> {
        self.write(|write| Box::pin(operator::create(write, new.clone()))).await
    }

    async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>> {
        let token = *token;
        self.read(move |client| Box::pin(async move { operator::by_token(client, &token).await })).await
    }

    async fn operators(&self) -> Result<Vec<Operator>> {
        self.read(|client| Box::pin(operator::list(client))).await
    }

    async fn revoke_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>> {
        self.write(|write| {
            let name = name.clone();
            Box::pin(async move { operator::revoke(write, &name, now).await })
        })
        .await
    }

    async fn rotate_operator_token(&self, name: &OperatorName, token: &OperatorTokenHash) -> Result<Option<Operator>> {
        self.write(|write| {
            let (name, token) = (name.clone(), *token);
            Box::pin(async move { operator::rotate_token(write, &name, token).await })
        })
        .await
    }

    async fn begin_audit(&self, entry: NewAuditEntry) -> Result<AuditId> {
        self.write(|write| {
            let entry = entry.clone();
            Box::pin(async move { audit::begin(write, &entry).await })
        })
        .await
    }

    async fn end_audit(&self, id: AuditId, outcome: AuditOutcome) -> Result<()> {
        self.write(|write| {
            let outcome = outcome.clone();
            Box::pin(async move { audit::end(write, id, &outcome).await })
        })
        .await
    }

    async fn audit_log(&self, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>> {
        self.read(|client| {
            let query = query.clone();
            Box::pin(async move { audit::list(client, &query, limit).await })
        })
        .await
    }

    async fn operations_report(&self, days: DayRange) -> Result<OperationsReport> {
        self.read_at_once(|transaction| {
            let known = SharedKnown::clone(&self.known);
            Box::pin(async move { report::report(transaction, &known, days).await })
        })
        .await
    }
}
