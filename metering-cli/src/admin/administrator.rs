//! Who carries out the commands: the store itself, or a server that is asked over HTTP.

mod local;
mod remote;

use async_trait::async_trait;
use metering_core::access::{Email, KeyId};
use metering_core::administration::payments::{Assignment, ScanRequest};
use metering_core::charging::HoldId;
use metering_core::events::{DeliveryFilter, DeliveryId};
use metering_core::money::Refill;
use metering_core::operators::{OperatorName, OperatorToken, Role};
use metering_core::payments::{Plan, PlanKey};
use metering_core::prices::PriceNumber;
use metering_core::wire::admin::{
    AccountDocument, AccountRequestDocument, AccountRequestsDocument, AccountUsageDocument, AuditDocument,
    CreateAccountRequest, EntryRequest, LimitsRequest, OperatorDocument, PriceVersionDocument, PriceVersionsDocument,
    ReloadDocument, VerificationDocument,
};
use metering_core::wire::{
    ArrivalsDocument, AssignmentDocument, BalanceAlertDocument, ChangeKeyRequest, CreateKeyRequest, DeliveriesDocument,
    DeliveryDocument, KeyDocument, PaymentRecordsDocument, RotateKeyRequest, UsageSummary, WebhooksDocument,
};
use metering_core::{AccountId, ApiKey, Credits, Timestamp};

use super::payments::chains::Chains;
use crate::failure::Failure;

pub(super) use local::Local;
pub(super) use remote::{Remote, refused};

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
    /// The keys of an account, oldest first.
    async fn keys(&self, id: &AccountId) -> Result<Vec<KeyDocument>, Failure>;
    async fn key(&self, id: &AccountId, key: &KeyId) -> Result<KeyDocument, Failure>;
    /// Creates a key below the account's first one.
    async fn create_key(&self, id: &AccountId, key: CreateKeyRequest) -> Result<(KeyDocument, ApiKey), Failure>;
    async fn change_key(&self, id: &AccountId, key: &KeyId, change: ChangeKeyRequest) -> Result<KeyDocument, Failure>;
    async fn rotate_key_by_id(
        &self,
        id: &AccountId,
        key: &KeyId,
        rotation: RotateKeyRequest,
    ) -> Result<(KeyDocument, ApiKey), Failure>;
    async fn delete_key(&self, id: &AccountId, key: &KeyId) -> Result<(), Failure>;
    /// The requests of an account whose credits are held now, newest first, at most `limit`.
    async fn held_requests(&self, id: &AccountId, limit: u32) -> Result<AccountRequestsDocument, Failure>;
    /// A request whose credits are or were held, of any account.
    async fn request(&self, id: &HoldId) -> Result<AccountRequestDocument, Failure>;
    /// The webhooks of an account, oldest first; with `None`, the operator's own.
    async fn webhooks(&self, id: Option<&AccountId>) -> Result<WebhooksDocument, Failure>;
    /// Deliveries to the webhooks of an account, or with `None` to all webhooks, newest first, at most `limit`.
    async fn deliveries(
        &self,
        id: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<DeliveriesDocument, Failure>;
    /// Sends a delivery of any account again.
    async fn resend_delivery(&self, id: DeliveryId) -> Result<DeliveryDocument, Failure>;
    /// Sends a test event to the operator's own webhook.
    async fn test_webhook(&self) -> Result<DeliveryDocument, Failure>;
    /// Removes the operator's own webhook.
    async fn remove_operator_webhook(&self) -> Result<(), Failure>;
    /// Sets the balance below which an account's webhooks get `balance.low`; `None` for never.
    async fn set_balance_alert(&self, id: &AccountId, below: Option<Credits>) -> Result<BalanceAlertDocument, Failure>;
    /// All plans, on sale or not.
    async fn plans(&self) -> Result<Vec<Plan>, Failure>;
    /// Saves plans. A store saves all or none; a server saves them one after the other.
    async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), Failure>;
    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<(), Failure>;
    async fn remove_plan(&self, key: &PlanKey) -> Result<(), Failure>;
    /// How accounts are refilled; `None` if they are not.
    async fn refill(&self) -> Result<Option<Refill>, Failure>;
    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), Failure>;
    /// All price versions, newest first.
    async fn price_versions(&self) -> Result<PriceVersionsDocument, Failure>;
    /// The text of a version's catalogue.
    async fn price_catalogue(&self, number: PriceNumber) -> Result<String, Failure>;
    /// Has all nodes serve a catalogue from a time on.
    async fn apply_catalogue(&self, catalogue: &str, at: Option<Timestamp>) -> Result<PriceVersionDocument, Failure>;
    /// Cancels a version that has not taken effect.
    async fn cancel_catalogue(&self, number: PriceNumber) -> Result<PriceVersionDocument, Failure>;
    async fn operators(&self) -> Result<Vec<OperatorDocument>, Failure>;
    async fn create_operator(
        &self,
        name: &OperatorName,
        role: Role,
    ) -> Result<(OperatorDocument, OperatorToken), Failure>;
    async fn rotate_operator_token(&self, name: &OperatorName) -> Result<(OperatorDocument, OperatorToken), Failure>;
    async fn revoke_operator(&self, name: &OperatorName) -> Result<OperatorDocument, Failure>;
    /// Has the server read its configuration again.
    async fn reload(&self) -> Result<ReloadDocument, Failure>;
    /// Entries of the audit log, newest first.
    async fn audit_log(&self, subject: Option<&str>, before: Option<i64>, limit: u32)
    -> Result<AuditDocument, Failure>;
    /// The usage of an account over the last `days` UTC days.
    async fn usage(&self, id: &AccountId, days: u32) -> Result<UsageSummary, Failure>;
    /// The usage of every account over the last `days` UTC days, in total; oldest account first.
    async fn usage_of_all(&self, days: u32) -> Result<Vec<AccountUsageDocument>, Failure>;
    /// Whether the books add up.
    async fn verify(&self) -> Result<VerificationDocument, Failure>;
    /// All payments that were credited, in the order recorded.
    async fn payment_records(&self) -> Result<PaymentRecordsDocument, Failure>;
    /// The chains; at least one can be read.
    async fn chains(&self) -> Result<Chains, Failure>;
    /// The payments that arrived on a chain, in all blocks of the request.
    async fn arrivals(&self, chain: &str, request: ScanRequest) -> Result<ArrivalsDocument, Failure>;
    /// Assigns a payment. The document has its details.
    async fn assign(&self, chain: &str, assignment: Assignment) -> Result<AssignmentDocument, Failure>;
}
