//! Events, webhooks and deliveries on a memory store.

use std::time::Duration;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::clock::Timestamp;
use crate::events::delivery::{AttemptOutcome, Delivery, DeliveryBacklog, DeliveryFilter, DeliveryId, DueDelivery};
use crate::events::delivery_shares::DeliveryShares;
use crate::events::event::{Event, EventData, NewEvent};
use crate::events::webhook::{NewWebhook, Webhook, WebhookChange, WebhookId, WebhookOwner, WebhookState, WebhookTerms};
use crate::money::credits::Credits;
use crate::store::backend::{one_more_than, page_of_rows, row_of_cursor};
use crate::store::{Cursor, EventStore, Page, StoreError, WebhookCreated};

use super::MemoryStore;

#[async_trait]
impl EventStore for MemoryStore {
    async fn set_balance_alert(
        &self,
        id: &AccountId,
        threshold: Option<Credits>,
    ) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.record_mut(id).map(|record| {
            let Account { alert, totals, .. } = record.account;
            record.account.alert = alert.with_threshold(threshold, totals.unspent());
            record.account.clone()
        }))
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated, StoreError> {
        let mut state = self.state()?;
        let account = state.found(&new.account).filter(|(_, account)| account.revoked_at.is_none());
        if account.is_none() {
            return Ok(WebhookCreated::NoSuchAccount);
        }
        let own = state.events.webhooks.iter().filter(|webhook| webhook.account.as_ref() == Some(&new.account)).count();
        if u32::try_from(own).is_ok_and(|own| own < new.max_webhooks) {
            let webhook = new.into_webhook();
            state.events.webhooks.push(webhook.clone());
            return Ok(WebhookCreated::Webhook(webhook));
        }
        Ok(WebhookCreated::TooMany)
    }

    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<(), StoreError> {
        let events = &mut self.state()?.events;
        let known = events.webhooks.iter_mut().find(|webhook| webhook.account.is_none());
        match (known, terms) {
            (Some(webhook), Some(terms)) => webhook.terms = terms,
            (None, Some(terms)) => {
                let (id, state) = (WebhookId::OPERATOR, WebhookState::Active);
                let webhook = Webhook { id, account: None, terms, state, secrets: Vec::new(), created_at: now };
                events.webhooks.push(webhook);
            }
            (_, None) => events.remove_webhook(&WebhookId::OPERATOR),
        }
        Ok(())
    }

    async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>, StoreError> {
        let state = self.state()?;
        let webhooks = state.events.webhooks.iter();
        Ok(webhooks.filter(|webhook| webhook.account.as_ref() == account).cloned().collect())
    }

    async fn change_webhook(
        &self,
        account: &AccountId,
        id: &WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        let events = &mut self.state()?.events;
        let mut webhooks = events.webhooks.iter_mut();
        let Some(webhook) = webhooks.find(|webhook| webhook.id == *id && webhook.account.as_ref() == Some(account))
        else {
            return Ok(None);
        };
        let before = webhook.clone();
        *webhook = before.clone().after(change, now);
        let after = webhook.clone();
        if after.may_be_repaired(&before) {
            events.hasten(id, now);
        }
        Ok(Some(after))
    }

    async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool, StoreError> {
        let events = &mut self.state()?.events;
        let is_there = events.webhook(Some(account), id).is_some();
        if is_there {
            events.remove_webhook(id);
        }
        Ok(is_there)
    }

    async fn test_webhook(
        &self,
        account: Option<&AccountId>,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        let events = &mut self.state()?.events;
        if events.webhook(account, id).is_none() {
            return Ok(None);
        }
        let test = NewEvent { account: account.cloned(), data: EventData::TEST, created_at: now };
        Ok(events.write_for(*id, &test))
    }

    async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>, StoreError> {
        let state = self.state()?;
        let before = before(after)?;
        let own = |event: &&Event| event.account.as_ref() == Some(account) && event.number < before;
        let newest = state.events.events.values().rev().filter(own).take(rows(limit));
        Ok(page_of_rows(newest.map(|event| (event.number, event.clone())).collect(), limit))
    }

    async fn deliveries(
        &self,
        account: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Delivery>, StoreError> {
        let state = self.state()?;
        let before = before(after)?;
        let newest = state.events.listed(account, filter).filter(|delivery| delivery.id.get() < before);
        Ok(page_of_rows(newest.take(rows(limit)).map(|delivery| (delivery.id.get(), delivery)).collect(), limit))
    }

    async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog, StoreError> {
        Ok(self.state()?.events.backlog(now))
    }

    async fn claim_shared(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
        mut shares: DeliveryShares,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        Ok(self.state()?.events.claim(now, lease, limit, owner, &mut shares))
    }

    async fn finish_delivery(
        &self,
        id: DeliveryId,
        attempt: u32,
        outcome: AttemptOutcome,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        Ok(self.state()?.events.finish(id, attempt, &outcome, now))
    }

    async fn resend(
        &self,
        account: Option<&AccountId>,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        let events = &mut self.state()?.events;
        let Some(delivery) = events.delivery(id).filter(|_| events.is_of(id, account)) else { return Ok(None) };
        events.set_progress(id, delivery.progress.resent(now));
        Ok(events.delivery(id))
    }
}

/// Lists are newest first: a page begins below the last number of the page before.
fn before(after: Option<&Cursor>) -> Result<i64, StoreError> {
    if after.is_none() { Ok(i64::MAX) } else { row_of_cursor(after) }
}

fn rows(limit: u32) -> usize {
    usize::try_from(one_more_than(limit)).unwrap_or(usize::MAX)
}
