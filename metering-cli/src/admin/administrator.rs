//! Who carries out the commands: the store itself, or a server that is asked over HTTP.

mod local;
mod remote;

use async_trait::async_trait;
use metering_core::access::Email;
use metering_core::operators::{OperatorName, OperatorToken, Role};
use metering_core::payments::{Plan, PlanKey};
use metering_core::wire::admin::{
    AccountDocument, AuditDocument, CreateAccountRequest, EntryRequest, LimitsRequest, OperatorDocument,
};
use metering_core::{AccountId, ApiKey};

use crate::failure::Failure;

pub(super) use local::Local;
pub(super) use remote::Remote;

/// Carries out the commands. Each method is one use case; changes are in the audit log with the run's reason.
#[async_trait]
pub(super) trait Administrator: Send + Sync {
    /// All accounts, oldest first.
    async fn accounts(&self) -> Result<Vec<AccountDocument>, Failure>;
    /// An account.
    async fn account(&self, id: &AccountId) -> Result<AccountDocument, Failure>;
    /// The account that holds the address; if none does, the newest that waits for its verification.
    async fn account_by_email(&self, email: &Email) -> Result<AccountDocument, Failure>;
    async fn create_account(&self, request: CreateAccountRequest) -> Result<(AccountDocument, ApiKey), Failure>;
    async fn grant(&self, id: &AccountId, entry: EntryRequest) -> Result<AccountDocument, Failure>;
    async fn adjust(&self, id: &AccountId, entry: EntryRequest) -> Result<AccountDocument, Failure>;
    async fn set_limits(&self, id: &AccountId, limits: LimitsRequest) -> Result<AccountDocument, Failure>;
    async fn revoke_account(&self, id: &AccountId) -> Result<AccountDocument, Failure>;
    async fn rotate_key(&self, id: &AccountId) -> Result<(AccountDocument, ApiKey), Failure>;
    /// All plans, on sale or not.
    async fn plans(&self) -> Result<Vec<Plan>, Failure>;
    /// Saves plans. A store saves all or none; a server saves them one after the other.
    async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), Failure>;
    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<(), Failure>;
    async fn remove_plan(&self, key: &PlanKey) -> Result<(), Failure>;
    async fn operators(&self) -> Result<Vec<OperatorDocument>, Failure>;
    async fn create_operator(
        &self,
        name: &OperatorName,
        role: Role,
    ) -> Result<(OperatorDocument, OperatorToken), Failure>;
    async fn revoke_operator(&self, name: &OperatorName) -> Result<OperatorDocument, Failure>;
    /// Entries of the audit log, newest first.
    async fn audit_log(&self, subject: Option<&str>, before: Option<i64>, limit: u32)
    -> Result<AuditDocument, Failure>;
}
