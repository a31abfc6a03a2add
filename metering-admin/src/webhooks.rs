//! Webhooks and their deliveries: lists them, and sends a delivery again; and balance alerts of accounts.

use metering_core::Credits;
use metering_core::access::AccountId;
use metering_core::clock::Timestamp;
use metering_core::events::{Delivery, DeliveryFilter, DeliveryId, Webhook, WebhookId, WebhookState};
use metering_core::service::{described_webhook, find_delivery, read_threshold};
use metering_core::store::{Cursor, FullStore, Page, StoreError};
use metering_core::wire::{
    BalanceAlertDocument, BalanceAlertRequest, DeliveriesDocument, DeliveryDocument, WebhookDocument, WebhooksDocument,
};

use crate::action::Action;
use crate::administration::{Administration, locked, no_account};
use crate::audited::{Step, Target, json, nothing, requested};
use crate::calls::webhooks::{RemoveWebhook, ResendDelivery, SetAlert, TestWebhook};
use crate::error::AdminError;
use crate::keys::invalid;

impl Administration {
    /// The webhooks of an account, oldest first, each with how its deliveries are doing; with `None`, the operator's own.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn webhooks(&self, account: Option<&AccountId>) -> Result<WebhooksDocument, AdminError> {
        if let Some(id) = account {
            self.account(id).await?;
        }
        let (now, mut data) = (self.clock.now(), Vec::new());
        for webhook in self.store.webhooks(account).await? {
            data.push(described_webhook(&*self.store, &webhook, now).await?);
        }
        Ok(WebhooksDocument { data })
    }

    /// Deliveries to the webhooks of an account, or with `None` to all webhooks, newest first: at most `limit` after
    /// `after`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails, or `after` is not a cursor of this list.
    pub async fn deliveries(
        &self,
        account: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<DeliveriesDocument, AdminError> {
        if let Some(id) = account {
            self.account(id).await?;
        }
        let Page { items, next } = self.store.deliveries(account, filter, after, limit).await?;
        let data = items.into_iter().map(document).collect::<Result<_, _>>()?;
        Ok(DeliveriesDocument { data, next: next.map(|next| next.as_str().to_owned()) })
    }

    /// Sends a delivery of any account again, regardless of its state.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::Conflict`] when the webhook is disabled or gone, or when the store fails.
    pub async fn resend_delivery(&self, action: &Action, id: DeliveryId) -> Result<DeliveryDocument, AdminError> {
        let found = find(&*self.store, id).await?;
        let subject = found.event.account.as_ref().map_or_else(|| found.webhook.to_string(), ToString::to_string);
        let target = Target::of::<ResendDelivery>(subject, action);
        let resend: Step<(DeliveryId, Timestamp), _, _> = |store, (id, now)| {
            Box::pin(async move { document(store.resend(None, *id, *now).await?.ok_or_else(|| missing(*id))?) })
        };
        let args = (id, self.clock.now());
        self.audited(target, args, |store, (id, _)| Box::pin(active(store, *id)), resend, json).await
    }

    /// Sends a test event to the operator's own webhook.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] when there is none, or when the store fails.
    pub async fn test_webhook(&self, action: &Action) -> Result<DeliveryDocument, AdminError> {
        let target = Target::of::<TestWebhook>(WebhookId::OPERATOR, action);
        let test: Step<Timestamp, _, _> = |store, now| {
            Box::pin(async move {
                let sent = store.test_webhook(None, &WebhookId::OPERATOR, *now).await?;
                let missing = || AdminError::NotFound("the operator has no webhook; configure webhooks.url".to_owned());
                document(sent.ok_or_else(missing)?)
            })
        };
        self.audited(target, self.clock.now(), nothing, test, json).await
    }

    /// Removes the operator's own webhook with its deliveries. A server that is configured to have one stores it again
    /// when it starts.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] when there is none, or when the store fails.
    pub async fn remove_operator_webhook(&self, action: &Action) -> Result<(), AdminError> {
        let target = Target::of::<RemoveWebhook>(WebhookId::OPERATOR, action);
        let before: Step<Timestamp, _, _> = |store, now| {
            Box::pin(async move {
                let stored = store.webhooks(None).await?;
                let missing = || AdminError::NotFound("the operator has no webhook".to_owned());
                Ok(json(&WebhookDocument::new(stored.first().ok_or_else(missing)?, *now)))
            })
        };
        let disable: Step<Timestamp, _, AdminError> =
            |store, _| Box::pin(async move { Ok(store.disable_operator_webhook().await.map(drop)?) });
        let now = self.clock.now();
        self.audited(target, now, before, disable, |()| None).await?;
        // Its deliveries may be many, and are deleted in several transactions, which can be repeated.
        Ok(self.store.set_operator_webhook(None, now).await?)
    }

    /// Sets the balance below which the event `balance.low` of an account is sent.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn set_balance_alert(
        &self,
        action: &Action,
        id: &AccountId,
        request: &BalanceAlertRequest,
    ) -> Result<BalanceAlertDocument, AdminError> {
        let below = read_threshold(request).map_err(invalid)?;
        let target = Target::of::<SetAlert>(id, action).asked(requested(request));
        let before: Step<(AccountId, Option<Credits>), _, _> = |store, (id, _)| {
            Box::pin(async move { Ok(json(&BalanceAlertDocument::new(id, locked(store, id).await?.alert, None))) })
        };
        let set: Step<(AccountId, Option<Credits>), _, _> = |store, (id, below)| {
            Box::pin(async move {
                let changed = store.set_balance_alert(id, *below).await?.ok_or_else(|| no_account(id))?;
                Ok(BalanceAlertDocument::new(&changed.id, changed.alert, None))
            })
        };
        self.audited(target, (id.clone(), below), before, set, json).await
    }
}

async fn find(store: &dyn FullStore, id: DeliveryId) -> Result<Delivery, AdminError> {
    find_delivery(store, None, DeliveryFilter::default(), id).await?.ok_or_else(|| missing(id))
}

fn missing(id: DeliveryId) -> AdminError {
    AdminError::NotFound(format!("no delivery {}; deliveries are kept for 30 days", id.get()))
}

/// A delivery to an active webhook, before an action.
async fn active(store: &dyn FullStore, id: DeliveryId) -> Result<Option<String>, AdminError> {
    let found = find(store, id).await?;
    let owner = if found.webhook == WebhookId::OPERATOR { None } else { found.event.account.as_ref() };
    let webhooks = store.webhooks(owner).await?;
    let is_active = |webhook: &Webhook| webhook.id == found.webhook && webhook.state == WebhookState::Active;
    if !webhooks.iter().any(is_active) {
        let webhook = found.webhook;
        return Err(AdminError::Conflict(format!("webhook {webhook} is disabled or gone, so nothing is sent to it")));
    }
    Ok(json(&document(found)?))
}

fn document(delivery: Delivery) -> Result<DeliveryDocument, AdminError> {
    let number = delivery.event.number;
    let corrupt = || StoreError::Corrupt(format!("the data of event {number} is not JSON"));
    Ok(DeliveryDocument::new(delivery).ok_or_else(corrupt)?)
}
