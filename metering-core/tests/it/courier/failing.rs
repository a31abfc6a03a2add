//! Webhooks on a store that can break down.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryBacklog, DeliveryCounts, DeliveryFilter, DeliveryId, DeliveryShares, DueDelivery,
    Event, NewWebhook, Webhook, WebhookChange, WebhookHealth, WebhookId, WebhookOwner, WebhookTerms,
};
use metering_core::store::{Cursor, EventStore, Page, WebhookCreated};
use metering_core::{Account, AccountId, Credits, StoreError, Timestamp};

use crate::meter::gated::Gated;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl<S: EventStore + 'static> EventStore for Gated<S> {
    async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
        self.working()?.set_balance_alert(id, threshold).await
    }
    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
        self.working()?.create_webhook(new).await
    }
    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
        self.working()?.set_operator_webhook(terms, now).await
    }
    async fn disable_operator_webhook(&self) -> Result<bool> {
        self.working()?.disable_operator_webhook().await
    }
    async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
        self.working()?.webhooks(account).await
    }
    async fn change_webhook(
        &self,
        account: &AccountId,
        id: &WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>> {
        self.working()?.change_webhook(account, id, change, now).await
    }
    async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool> {
        self.working()?.delete_webhook(account, id).await
    }
    async fn test_webhook(
        &self,
        account: Option<&AccountId>,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        self.working()?.test_webhook(account, id, now).await
    }
    async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
        self.working()?.events(account, after, limit).await
    }
    async fn deliveries(
        &self,
        account: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Delivery>> {
        self.working()?.deliveries(account, filter, after, limit).await
    }
    async fn webhook_health(&self, id: &WebhookId) -> Result<WebhookHealth> {
        self.working()?.webhook_health(id).await
    }
    async fn delivery_counts(&self, id: &WebhookId, since: Timestamp) -> Result<DeliveryCounts> {
        self.working()?.delivery_counts(id, since).await
    }
    async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog> {
        self.working()?.delivery_backlog(now).await
    }
    async fn claim_shared(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
        shares: DeliveryShares,
    ) -> Result<Vec<DueDelivery>> {
        self.working()?.claim_shared(now, lease, limit, owner, shares).await
    }
    async fn finish_delivery(
        &self,
        id: DeliveryId,
        attempt: u32,
        outcome: AttemptOutcome,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        self.working()?.finish_delivery(id, attempt, outcome, now).await
    }
    async fn resend(&self, account: Option<&AccountId>, id: DeliveryId, now: Timestamp) -> Result<Option<Delivery>> {
        self.working()?.resend(account, id, now).await
    }
}
