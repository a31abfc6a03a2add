//! Implements the part of the storage contract for events and webhooks.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryFilter, DeliveryId, DueDelivery, Event, NewWebhook, Webhook, WebhookChange,
    WebhookId, WebhookTerms,
};
use metering_core::store::{Cursor, EventStore, Page, WebhookCreated};
use metering_core::{Account, AccountId, Credits, Timestamp};

use crate::access::accounts;
use crate::error::Result;
use crate::events::{deliveries, due, outbox, webhooks};
use crate::journal::Snapshot;
use crate::store::SqliteStore;

#[async_trait]
impl EventStore for SqliteStore {
    async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
        let id = id.clone();
        self.writer.write(move |snapshot| accounts::set_balance_alert(snapshot, &id, threshold)).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
        self.writer.write(move |snapshot| webhooks::create(snapshot, new)).await
    }

    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
        self.writer.write(move |snapshot: &Snapshot<'_>| webhooks::set_operators(snapshot, terms, now)).await
    }

    async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
        let account = account.cloned();
        self.read(move |snapshot| webhooks::list(snapshot, account.as_ref())).await
    }

    async fn change_webhook(
        &self,
        account: &AccountId,
        id: &WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>> {
        let (account, id) = (account.clone(), *id);
        let write = move |snapshot: &Snapshot<'_>| webhooks::change(snapshot, &account, &id, change, now);
        self.writer.write(write).await
    }

    async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool> {
        let (account, id) = (account.clone(), *id);
        self.writer.write(move |snapshot: &Snapshot<'_>| webhooks::delete(snapshot, &account, &id)).await
    }

    async fn test_webhook(
        &self,
        account: Option<&AccountId>,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        let (account, id) = (account.cloned(), *id);
        self.writer.write(move |snapshot: &Snapshot<'_>| webhooks::test(snapshot, account.as_ref(), &id, now)).await
    }

    async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
        let (account, after) = (account.clone(), after.cloned());
        self.read(move |snapshot| outbox::list(snapshot, &account, after.as_ref(), limit)).await
    }

    async fn deliveries(
        &self,
        account: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Delivery>> {
        let (account, after) = (account.cloned(), after.cloned());
        self.read(move |snapshot| deliveries::list(snapshot, account.as_ref(), filter, after.as_ref(), limit)).await
    }

    async fn claim_deliveries(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        for_operator: bool,
    ) -> Result<Vec<DueDelivery>> {
        let ids = self.read(move |snapshot| due::due(snapshot, now, limit, for_operator)).await?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.writer.write(move |snapshot: &Snapshot<'_>| due::claim(snapshot, &ids, now, lease)).await
    }

    async fn finish_delivery(
        &self,
        id: DeliveryId,
        attempt: u32,
        outcome: AttemptOutcome,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        let write = move |snapshot: &Snapshot<'_>| deliveries::finish(snapshot, id, attempt, &outcome, now);
        self.writer.write(write).await
    }

    async fn resend(&self, account: Option<&AccountId>, id: DeliveryId, now: Timestamp) -> Result<Option<Delivery>> {
        let account = account.cloned();
        self.writer.write(move |snapshot: &Snapshot<'_>| deliveries::resend(snapshot, account.as_ref(), id, now)).await
    }
}
