//! The storage contract for events and webhooks. Each method runs in a transaction.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryBacklog, DeliveryFilter, DeliveryId, DeliveryShares, DueDelivery, Event,
    NewWebhook, Webhook, WebhookChange, WebhookId, WebhookOwner, WebhookTerms,
};
use metering_core::store::{Cursor, EventStore, Page, WebhookCreated};
use metering_core::{Account, AccountId, Credits, StoreError, Timestamp};
use metering_sql::accounts;

use crate::events::webhooks::Deletion;
use crate::events::{backlog, deliveries, due, outbox, webhooks};
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl EventStore for PostgresStore {
    async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
        let args = (id.clone(), threshold);
        metering_sql::write(self, args, |db, (id, below)| Box::pin(accounts::set_alert(db, id, *below))).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
        self.write(|write| Box::pin(webhooks::create(write, new.clone()))).await
    }

    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
        if let Some(terms) = terms {
            return self.write(|write| Box::pin(webhooks::set_operator(write, terms.clone(), now))).await;
        }
        // If another node sets it in the meantime, that is the newer setting.
        self.delete_webhook_once(None, &WebhookId::OPERATOR).await.map(drop)
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
        loop {
            match self.delete_webhook_once(Some(account), id).await? {
                None => return Ok(false),
                Some(Deletion::Done) => return Ok(true),
                // Switched on again, or gone.
                Some(_) => {}
            }
        }
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

    async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog> {
        self.read(move |client| Box::pin(backlog::backlog(client, now))).await
    }

    async fn claim_shared(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
        shares: DeliveryShares,
    ) -> Result<Vec<DueDelivery>> {
        let is_shared = owner == WebhookOwner::Customers && !shares.is_unlimited();
        let find = self.read(move |client| {
            let shares = shares.clone();
            Box::pin(async move {
                if is_shared {
                    due::find_within(client, now, limit, shares).await
                } else {
                    due::find(client, now, limit, owner).await
                }
            })
        });
        let found = find.await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|write| {
            let found = found.clone();
            Box::pin(async move { due::claim(write, &found, now, lease).await })
        })
        .await
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

impl PostgresStore {
    /// Deletes a webhook in several short transactions, because it may have many deliveries and all other serialized writes
    /// wait for each of them. `None` if there is none.
    async fn delete_webhook_once(&self, account: Option<&AccountId>, id: &WebhookId) -> Result<Option<Deletion>> {
        let begun = self.write(|write| {
            let (account, id) = (account.cloned(), *id);
            Box::pin(async move { webhooks::begin_deletion(write, account.as_ref(), &id).await })
        });
        let Some(webhook) = begun.await? else { return Ok(None) };
        loop {
            match self.write(move |write| Box::pin(webhooks::delete_some(write, webhook))).await? {
                Deletion::Unfinished => {}
                ended => return Ok(Some(ended)),
            }
        }
    }
}
