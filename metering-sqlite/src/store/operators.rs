//! Implements the part of the storage contract for operators. Each method goes to the writer or to a reader.

use async_trait::async_trait;
use metering_core::operators::{
    AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry, NewOperator, OperationsReport, Operator,
    OperatorName, OperatorTokenHash,
};
use metering_core::usage::DayRange;
use metering_core::{OperatorStore, Timestamp};

use crate::error::Result;
use crate::journal::Snapshot;
use crate::operators::{audit, operator, report};
use crate::store::SqliteStore;

#[async_trait]
impl OperatorStore for SqliteStore {
    async fn create_operator(&self, new: NewOperator) -> Result<Option<Operator>> {
        self.writer.write(move |connection: &Snapshot<'_>| operator::create(connection, new)).await
    }

    async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>> {
        let token = *token;
        self.read(move |connection| operator::by_token(connection, &token)).await
    }

    async fn operators(&self) -> Result<Vec<Operator>> {
        self.read(|connection| operator::list(connection)).await
    }

    async fn revoke_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>> {
        let name = name.clone();
        self.writer.write(move |connection: &Snapshot<'_>| operator::revoke(connection, &name, now)).await
    }

    async fn rotate_operator_token(&self, name: &OperatorName, token: &OperatorTokenHash) -> Result<Option<Operator>> {
        let (name, token) = (name.clone(), *token);
        self.writer.write(move |connection: &Snapshot<'_>| operator::rotate_token(connection, &name, token)).await
    }

    async fn begin_audit(&self, entry: NewAuditEntry) -> Result<AuditId> {
        self.writer.write(move |connection: &Snapshot<'_>| audit::begin(connection, &entry)).await
    }

    async fn end_audit(&self, id: AuditId, outcome: AuditOutcome) -> Result<()> {
        self.writer.write(move |connection: &Snapshot<'_>| audit::end(connection, id, &outcome)).await
    }

    async fn audit_log(&self, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>> {
        let query = query.clone();
        self.read(move |connection| audit::list(connection, &query, limit)).await
    }

    async fn operations_report(&self, days: DayRange) -> Result<OperationsReport> {
        self.read(move |snapshot| report::report(snapshot, days)).await
    }
}
