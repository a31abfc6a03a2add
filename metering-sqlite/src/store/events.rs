//! Implements the part of the storage contract for events and webhooks.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryBacklog, DeliveryFilter, DeliveryId, DeliveryShares, DueDelivery, Event,
    NewWebhook, Webhook, WebhookChange, WebhookId, WebhookOwner, WebhookTerms,
};
use metering_core::store::{Cursor, EventStore, Page, WebhookCreated};
use metering_core::{Account, AccountId, Credits, Timestamp};
use metering_sql::accounts;

use crate::error::Result;
use crate::events::{backlog, deliveries, due, event, webhooks};
use crate::journal::Snapshot;
use crate::store::SqliteStore;

/// How many deliveries one transaction deletes: charges wait for it.
const SLICE: usize = 1_000;

impl SqliteStore {
    async fn remove_webhook(&self, account: Option<AccountId>, id: WebhookId) -> Result<bool> {
        let switch_off = move |snapshot: &Snapshot<'_>| webhooks::switch_off(snapshot, account.as_ref(), &id);
        let Some(row) = self.writer.write(switch_off).await? else { return Ok(false) };
        while !self.writer.write(move |snapshot: &Snapshot<'_>| webhooks::delete_slice(snapshot, row, SLICE)).await? {}
        Ok(true)
    }
}

#[async_trait]
impl EventStore for SqliteStore {
    async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
        let args = (id.clone(), threshold);
        metering_sql::write(self, args, |db, (id, below)| Box::pin(accounts::set_alert(db, id, *below))).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
        self.writer.write(move |snapshot| webhooks::create(snapshot, new)).await
    }

    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
        match terms {
            Some(terms) => {
                self.writer.write(move |snapshot: &Snapshot<'_>| webhooks::set_operators(snapshot, terms, now)).await
            }
            None => self.remove_webhook(None, WebhookId::OPERATOR).await.map(drop),
        }
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
        self.remove_webhook(Some(account.clone()), *id).await
    }

    async fn test_webhook(
        &self,
        account: Option<&AccountId>,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Delivery>> {
        let (account, id) = (account.cloned(), *id);
        self.writer.write(move |snapshot: &Snapshot<'_>| deliveries::test(snapshot, account.as_ref(), &id, now)).await
    }

    async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
        let (account, after) = (account.clone(), after.cloned());
        self.read(move |snapshot| event::list(snapshot, &account, after.as_ref(), limit)).await
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

    async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog> {
        self.read(move |snapshot| backlog::backlog(snapshot, now)).await
    }

    async fn claim_shared(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
        mut shares: DeliveryShares,
    ) -> Result<Vec<DueDelivery>> {
        let find = move |snapshot: &Snapshot<'_>| match owner {
            WebhookOwner::Customers if !shares.is_unlimited() => due::due_within(snapshot, now, limit, &mut shares),
            _ => due::due(snapshot, now, limit, owner),
        };
        let ids = self.read(find).await?;
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
