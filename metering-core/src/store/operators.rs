//! The part of the storage contract for operators: operators, the audit log, and the report about the business.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::operators::audit::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};
use crate::operators::operator::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use crate::operators::report::OperationsReport;
use crate::store::{Store, StoreError};
use crate::usage::DayRange;

/// Stores operators and the audit log, and makes the report about the business.
///
/// As in [`Store`], each method is one atomic operation, and expected outcomes are values.
///
/// ```
/// use metering_core::operators::{NewOperator, OperatorToken, Role};
/// use metering_core::store::OperatorStore;
/// use metering_core::{Clock, SystemClock, SystemRandomness};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = SqliteStore::in_memory()?;
/// let token = OperatorToken::generate(&SystemRandomness);
/// let (name, created_at) = ("jo".parse()?, SystemClock.now());
/// store.create_operator(NewOperator { name, role: Role::Viewer, token: token.hash(), created_at }).await?;
/// assert_eq!(store.operator_by_token(&token.hash()).await?.unwrap().role, Role::Viewer);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait OperatorStore: Store {
    /// Creates an operator. `None`, and nothing changes, when an operator has that name, revoked or not. A token that
    /// an operator has or had when revoked is an error.
    async fn create_operator(&self, operator: NewOperator) -> Result<Option<Operator>, StoreError>;

    /// The operator with that token, unless revoked.
    async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>, StoreError>;

    /// All operators, sorted by the bytes of their names, revoked ones too.
    async fn operators(&self) -> Result<Vec<Operator>, StoreError>;

    /// Revokes an operator. A second call changes nothing and returns the operator. `None` when there is no such
    /// operator.
    async fn revoke_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>, StoreError>;

    /// Gives an operator another token; the old one stops working. `None`, and nothing changes, when there is no such
    /// operator, or the operator is revoked. A token that is in use is an error.
    async fn rotate_operator_token(
        &self,
        name: &OperatorName,
        token: &OperatorTokenHash,
    ) -> Result<Option<Operator>, StoreError>;

    /// Logs an action with its outcome, in the action's own transaction
    /// ([`FullStore::transact`](crate::FullStore::transact)). Ids increase with time.
    async fn log_action(&self, entry: NewAuditEntry, outcome: AuditOutcome) -> Result<AuditId, StoreError>;

    /// Entries of the audit log, newest first, at most `limit`.
    async fn audit_log(&self, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Adds up the business of a range of days, as one consistent read.
    ///
    /// Reads the daily totals, ledger entries and payments of those days, of all accounts. An error when a sum exceeds
    /// the range of [`Credits`](crate::Credits).
    async fn operations_report(&self, days: DayRange) -> Result<OperationsReport, StoreError>;
}
