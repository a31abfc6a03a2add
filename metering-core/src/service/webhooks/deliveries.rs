//! The deliveries to webhooks, and tests of them.

use super::{MAX_ENTRIES, Webhooks, find_delivery};
use crate::access::account::AccountId;
use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::error::Error;
use crate::events::{Delivery, DeliveryFilter, DeliveryId, DeliveryState, EventKind, WebhookId};
use crate::service::fields::{known_cursor, within};
use crate::store::{Cursor, Page};
use crate::wire::{DeliveriesDocument, DeliveryDocument, DeliveryPayloadResponse, DeliveryResponse};

impl Webhooks<'_> {
    /// Sends a test event to one webhook of the caller's account, even if it does not subscribe to that event.
    ///
    /// # Errors
    /// As [`Webhooks::create`]; [`Error::NoSuchWebhook`], and [`Error::WebhookInactive`].
    pub async fn test(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<DeliveryResponse, Error> {
        let account = self.access.authorize(caller, Scope::Manage).await?;
        let webhook = self.find_active(&account.id, id).await?;
        let now = self.access.now();
        let delivery = self.setup.store()?.test_webhook(Some(&account.id), &webhook.id, now).await?;
        self.setup.settings.wake.wake();
        self.response(&webhook.id, delivery.ok_or(Error::NoSuchWebhook)?).await
    }

    /// The deliveries to a webhook of the caller's account, newest first: at most `limit` (1 to 100) after `after`, in
    /// the state with this name if one is given, and of events of the kind with this name.
    ///
    /// # Errors
    /// As [`Webhooks::list`]; [`Error::NoSuchWebhook`], and [`Error::ValidationFailed`].
    pub async fn deliveries(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        state: Option<&str>,
        kind: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<DeliveriesDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let (state, kind) = (state.map(read_delivery_state).transpose()?, kind.map(read_event_kind).transpose()?);
        let webhook = self.find(&account.id, id).await?;
        let filter = DeliveryFilter { webhook: Some(webhook.id), state, kind };
        let after = after.map(Cursor::new);
        let page = self.setup.store()?.deliveries(Some(&account.id), filter, after.as_ref(), limit).await;
        let Page { items, next } = known_cursor(page)?;
        let health = self.setup.store()?.webhook_health(&webhook.id).await?;
        let described = items.into_iter().map(|delivery| DeliveryDocument::of(delivery, &health));
        let data = described.collect::<Option<_>>().ok_or(Error::Internal)?;
        Ok(DeliveriesDocument { data, next: next.map(|next| next.as_str().to_owned()) })
    }

    /// A delivery to a webhook of the caller's account, with the body of its requests and, if the last one failed, of the
    /// response.
    ///
    /// # Errors
    /// As [`Webhooks::list`]; [`Error::NoSuchWebhook`], and [`Error::NoSuchDelivery`].
    pub async fn delivery(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        delivery: &str,
    ) -> Result<DeliveryPayloadResponse, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let webhook = self.find(&account.id, id).await?;
        let found = self.find_delivery_to(&account.id, webhook.id, delivery).await?;
        let body = found.event.body().ok_or(Error::Internal)?;
        let response = found.progress.last.as_ref().and_then(|last| last.response.clone());
        let DeliveryResponse { data } = self.response(&webhook.id, found).await?;
        Ok(DeliveryPayloadResponse { data, body, response })
    }

    /// Sends a delivery of a webhook of the caller's account again, regardless of its state.
    ///
    /// # Errors
    /// As [`Webhooks::test`], and [`Error::NoSuchDelivery`].
    pub async fn resend(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        delivery: &str,
    ) -> Result<DeliveryResponse, Error> {
        let account = self.access.authorize(caller, Scope::Manage).await?;
        let webhook = self.find_active(&account.id, id).await?;
        let found = self.find_delivery_to(&account.id, webhook.id, delivery).await?;
        let resent = self.setup.store()?.resend(Some(&account.id), found.id, self.access.now()).await?;
        self.setup.settings.wake.wake();
        self.response(&webhook.id, resent.ok_or(Error::NoSuchDelivery)?).await
    }

    async fn find_delivery_to(
        self,
        account: &AccountId,
        webhook: WebhookId,
        delivery: &str,
    ) -> Result<Delivery, Error> {
        let number: i64 = delivery.parse().map_err(|_| Error::NoSuchDelivery)?;
        let filter = DeliveryFilter { webhook: Some(webhook), ..DeliveryFilter::default() };
        let found = find_delivery(self.setup.store()?, Some(account), filter, DeliveryId::new(number)).await?;
        found.ok_or(Error::NoSuchDelivery)
    }

    async fn response(self, webhook: &WebhookId, delivery: Delivery) -> Result<DeliveryResponse, Error> {
        let health = self.setup.store()?.webhook_health(webhook).await?;
        Ok(DeliveryResponse { data: DeliveryDocument::of(delivery, &health).ok_or(Error::Internal)? })
    }
}

/// The state of deliveries with this name.
fn read_delivery_state(name: &str) -> Result<DeliveryState, Error> {
    let names = || DeliveryState::ALL.map(DeliveryState::as_str).join(", ");
    DeliveryState::from_name(name).ok_or_else(|| Error::field("state", format_args!("must be one of {}", names())))
}

/// Includes the kind of tests, which webhooks cannot select.
fn read_event_kind(name: &str) -> Result<EventKind, Error> {
    let names = || EventKind::ALL.map(EventKind::as_str).join(", ");
    let problem = || Error::field("event", format_args!("must be webhook.test or one of {}", names()));
    EventKind::from_name(name).ok_or_else(problem)
}
