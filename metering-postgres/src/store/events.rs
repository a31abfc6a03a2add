//! The storage contract for events and webhooks. Each method runs in a transaction.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryFilter, DeliveryId, DueDelivery, Event, NewWebhook, Webhook, WebhookChange,
    WebhookId, WebhookTerms,
};
use metering_core::store::{Cursor, EventStore, Page, WebhookCreated};
use metering_core::{Account, AccountId, Credits, StoreError, Timestamp};

use crate::access::accounts;
use crate::events::{deliveries, outbox, webhooks};
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl EventStore for PostgresStore {
    async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
        self.write(|write| {
            let id = id.clone();
            Box::pin(async move { accounts::set_alert(write, &id, threshold).await })
        })
        .await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
        self.write(|write| Box::pin(webhooks::create(write, new.clone()))).await
    }

    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
        self.write(|write| Box::pin(webhooks::set_operator(write, terms.clone(), now))).await
    }

    async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
        self.read(|client| {
            let account = account.cloned();
            Box::pin(async move { webhooks::of_account(client, account.as_ref()).await })
        })
        .await
    }

    async fn change_webhook(
        &self,
        account: &AccountId,
        id: &WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>> {
        self.write(|write| {
            let (account, id, change) = (account.clone(), *id, change.clone());
            Box::pin(async move { webhooks::change(write, &account, &id, change, now).await })
        })
        .await
    }

    async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool> {
        self.write(|write| {
            let (account, id) = (account.clone(), *id);
            Box::pin(async move { webhooks::delete(write, &account, &id).await })
        })
        .await
    }

    async fn test_webhook(
        &self,
        account: Option<&AccountId>,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        self.write(|write| {
            let (account, id) = (account.cloned(), *id);
            Box::pin(async move { deliveries::test(write, account.as_ref(), &id, now).await })
        })
        .await
    }

    async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
        self.read(|client| {
            let (account, after) = (account.clone(), after.cloned());
            Box::pin(async move { outbox::list(client, &account, after.as_ref(), limit).await })
        })
        .await
    }

    async fn deliveries(
        &self,
        account: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Delivery>> {
        self.read(|client| {
            let (account, after) = (account.cloned(), after.cloned());
            Box::pin(async move { deliveries::list(client, account.as_ref(), filter, after.as_ref(), limit).await })
        })
        .await
    }

    async fn claim_deliveries(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        for_operator: bool,
    ) -> Result<Vec<DueDelivery>> {
        if !self.read(move |client| Box::pin(deliveries::is_any_due(client, now, for_operator))).await? {
            return Ok(Vec::new());
        }
        self.write(move |write| Box::pin(deliveries::claim(write, now, lease, limit, for_operator))).await
    }

    async fn finish_delivery(
        &self,
        id: DeliveryId,
        attempt: u32,
        outcome: AttemptOutcome,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        self.write(|write| {
            let outcome = outcome.clone();
            Box::pin(async move { deliveries::finish(write, id, attempt, &outcome, now).await })
        })
        .await
    }

    async fn resend(&self, account: Option<&AccountId>, id: DeliveryId, now: Timestamp) -> Result<Option<Delivery>> {
        self.write(|write| {
            let account = account.cloned();
            Box::pin(async move { deliveries::resend(write, account.as_ref(), id, now).await })
        })
        .await
    }
}
