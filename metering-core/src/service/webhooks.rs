//! Webhooks of an account, their deliveries, and the account's events.

mod alert;
mod deliveries;
mod mail_channel;
mod setup;

use std::sync::Arc;

pub(super) use setup::WebhookSetup;

use crate::access::account::{Account, AccountId};
use crate::access::credentials::Caller;
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::events::{
    Delivery, DeliveryCounts, DeliveryFilter, DeliveryId, EventKind, EventKinds, NewWebhook, Webhook, WebhookChange,
    WebhookId, WebhookSecret, WebhookState, WebhookTerms, WebhookUrl,
};
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::fields::{Fields, known_cursor, within};
use crate::service::metering::Service;
use crate::service::{Access, WebhookSettings, end_of_grace};
use crate::store::{Cursor, EventStore, Page, StoreError, WebhookCreated};
use crate::wire::{
    BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse, EventDocument,
    EventsDocument, IssuedWebhookResponse, RotateWebhookRequest, WebhookDocument, WebhookHealthDocument,
    WebhookResponse, WebhooksDocument,
};

/// The most events or deliveries in one response.
const MAX_ENTRIES: u32 = 100;

/// For how long webhooks are signed with the old secret too, by default: a day.
const DEFAULT_GRACE_SECONDS: u32 = 24 * 60 * 60;

/// A script with an empty list by mistake must not subscribe to everything.
const NO_EVENTS: &str = "must have at least one event; leave it out, or send null, for all of them";

/// Mail and requests are different webhooks.
const URL_TO_MAIL: &str = "cannot be changed to an email address; create a webhook with the address instead";
const MAIL_TO_URL: &str = "cannot be changed from an email address; create a webhook with the URL instead";

/// The webhooks and events of accounts, from [`Service::webhooks`].
#[derive(Debug, Clone, Copy)]
pub struct Webhooks<'s> {
    access: &'s Access,
    setup: &'s WebhookSetup,
}

impl Service {
    /// Offers webhooks, events and balance alerts. Without this, the service refuses them.
    ///
    /// `store` must be the service's own store. To deliver the events, run a
    /// [`Courier`](crate::events::Courier); [`Webhooks::create`] has an example.
    #[must_use]
    pub fn with_webhooks(mut self, store: Arc<dyn EventStore>, settings: WebhookSettings) -> Self {
        self.webhooks = WebhookSetup { store: Some(store), settings };
        self
    }

    /// The webhooks and events of accounts.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks { access: &self.access, setup: &self.webhooks }
    }
}

impl Webhooks<'_> {
    /// Creates a webhook of the caller's account. The response is the only one with its secret.
    ///
    /// `mailto:` and the account's verified address is a webhook, too, where the service sends mail: for the events that
    /// mean that credits run out.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::service::WebhookSettings;
    /// use metering_core::Service;
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let service = Service::with_defaults(store.clone()).with_webhooks(store, WebhookSettings::default());
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let request = serde_json::from_str(r#"{"url": "https://hooks.example.com/", "events": ["balance.low"]}"#)?;
    /// let issued = service.webhooks().create(Some(&key), &request).await?;
    /// assert!(issued.secret.secret().expose().starts_with("whsec_"));
    ///
    /// // A test is an event too. A courier delivers both: see `metering_core::events::Courier`.
    /// let test = service.webhooks().test(Some(&key), &issued.data.id).await?;
    /// assert_eq!(test.data.event.kind, "webhook.test");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not manage the account,
    /// [`Error::ValidationFailed`], [`Error::TooManyWebhooks`], [`Error::WebhooksNotOffered`], or when the store fails.
    pub async fn create(
        self,
        caller: impl Into<Caller<'_>>,
        request: &CreateWebhookRequest,
    ) -> Result<IssuedWebhookResponse, Error> {
        let account = self.owner(caller, Right::Develop).await?;
        if self.setup.settings.max_per_account == 0 {
            return Err(Error::WebhooksNotOffered);
        }
        let mut fields = Fields::default();
        let url = fields.required("url", request.url.as_deref());
        let kinds = request.events.as_deref().map(|events| read_kinds(&mut fields, events));
        let (url, kinds) = match url {
            Some(text) if is_mail(text) => {
                let url = self.setup.read_mail(&mut fields, text, &account).await?;
                (url, self.setup.mailed(&mut fields, kinds))
            }
            text => (text.and_then(|text| self.read_url(&mut fields, text)), kinds.unwrap_or_default()),
        };
        let Some(url) = url.filter(|_| fields.is_empty()) else { return Err(fields.into_error()) };
        let secret = WebhookSecret::generate(&SystemRandomness);
        let now = self.access.now();
        let new = NewWebhook {
            id: WebhookId::generate(&SystemRandomness),
            account: account.id,
            terms: WebhookTerms { url, kinds },
            secret: secret.clone(),
            max_webhooks: self.setup.settings.max_per_account,
            created_at: now,
        };
        match self.setup.store()?.create_webhook(new).await? {
            WebhookCreated::Webhook(webhook) => {
                Ok(IssuedWebhookResponse { secret: secret.into(), data: WebhookDocument::new(&webhook, now) })
            }
            WebhookCreated::NoSuchAccount => Err(Error::Unauthorized),
            WebhookCreated::TooMany => Err(Error::TooManyWebhooks),
        }
    }

    /// The webhooks of the caller's account, oldest first, each with how its deliveries are doing.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not read, or when the store
    /// fails.
    pub async fn list(self, caller: impl Into<Caller<'_>>) -> Result<WebhooksDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let webhooks = self.setup.store()?.webhooks(Some(&account.id)).await?;
        let mut data = Vec::with_capacity(webhooks.len());
        for webhook in &webhooks {
            data.push(described_webhook(self.setup.store()?, webhook, self.access.now()).await?);
        }
        Ok(WebhooksDocument { data })
    }

    /// One webhook of the caller's account.
    ///
    /// # Errors
    /// As [`Webhooks::list`], and [`Error::NoSuchWebhook`].
    pub async fn get(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<WebhookResponse, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let webhook = self.find(&account.id, id).await?;
        Ok(WebhookResponse { data: described_webhook(self.setup.store()?, &webhook, self.access.now()).await? })
    }

    /// Changes a webhook of the caller's account.
    ///
    /// # Errors
    /// As [`Webhooks::create`], and [`Error::NoSuchWebhook`].
    pub async fn change(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &ChangeWebhookRequest,
    ) -> Result<WebhookResponse, Error> {
        let account = self.owner(caller, Right::Develop).await?;
        let is_mailed = self.find(&account.id, id).await?.terms.url.email().is_some();
        let mut fields = Fields::default();
        let kinds = request.events.as_ref();
        let kinds = kinds.map(|events| events.as_deref().map(|events| read_kinds(&mut fields, events)));
        let url = match request.url.as_deref() {
            Some(text) if is_mailed || is_mail(text) => {
                fields.wrong("url", if is_mailed { MAIL_TO_URL } else { URL_TO_MAIL });
                None
            }
            text => text.and_then(|text| self.read_url(&mut fields, text)),
        };
        let kinds = match is_mailed {
            true => kinds.map(|kinds| self.setup.mailed(&mut fields, kinds)),
            false => kinds.map(Option::unwrap_or_default),
        };
        if !fields.is_empty() {
            return Err(fields.into_error());
        }
        let change = WebhookChange::Terms { url, kinds, disabled: request.disabled };
        let webhook = self.changed(&account.id, id, change).await?;
        self.setup.settings.wake.wake();
        Ok(WebhookResponse { data: WebhookDocument::new(&webhook, self.access.now()) })
    }

    /// Deletes a webhook of the caller's account, with its deliveries.
    ///
    /// # Errors
    /// As [`Webhooks::create`], and [`Error::NoSuchWebhook`].
    pub async fn delete(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<DeletedWebhookResponse, Error> {
        let account = self.owner(caller, Right::Develop).await?;
        let deleted = self.setup.store()?.delete_webhook(&account.id, &read_id(id)?).await?;
        if deleted { Ok(DeletedWebhookResponse { deleted }) } else { Err(Error::NoSuchWebhook) }
    }

    /// Replaces the secret of a webhook of the caller's account. During a grace period, webhooks are signed with both
    /// secrets. The response is the only one with the new secret.
    ///
    /// # Errors
    /// As [`Webhooks::create`], and [`Error::NoSuchWebhook`].
    pub async fn rotate(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &RotateWebhookRequest,
    ) -> Result<IssuedWebhookResponse, Error> {
        let account = self.owner(caller, Right::Develop).await?;
        let now = self.access.now();
        let old_until = end_of_grace(request.grace_seconds.or(Some(DEFAULT_GRACE_SECONDS)), now)?;
        let secret = WebhookSecret::generate(&SystemRandomness);
        let change = WebhookChange::Rotate { secret: secret.clone(), old_until };
        let webhook = self.changed(&account.id, id, change).await?;
        Ok(IssuedWebhookResponse { secret: secret.into(), data: WebhookDocument::new(&webhook, now) })
    }

    /// The events of the caller's account, newest first: at most `limit` (1 to 100) after `after`.
    ///
    /// # Errors
    /// As [`Webhooks::list`], and [`Error::ValidationFailed`].
    pub async fn events(
        self,
        caller: impl Into<Caller<'_>>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<EventsDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let after = after.map(Cursor::new);
        let page = self.setup.store()?.events(&account.id, after.as_ref(), limit).await;
        let Page { items, next } = known_cursor(page)?;
        let data = items.iter().map(EventDocument::new).collect::<Option<_>>().ok_or(Error::Internal)?;
        Ok(EventsDocument { org_id: account.id.to_string(), data, next: next.map(|next| next.as_str().to_owned()) })
    }

    /// The account, if the caller has its first key. Webhooks cover the whole account and outlive the key that made
    /// them, so a key that was passed on must not control them.
    async fn owner(self, caller: impl Into<Caller<'_>>, right: Right) -> Result<Account, Error> {
        Ok(self.access.first_holder(caller.into(), right).await?.account)
    }

    async fn find(self, account: &AccountId, id: &str) -> Result<Webhook, Error> {
        let id = read_id(id)?;
        let webhooks = self.setup.store()?.webhooks(Some(account)).await?;
        webhooks.into_iter().find(|webhook| webhook.id == id).ok_or(Error::NoSuchWebhook)
    }

    async fn find_active(self, account: &AccountId, id: &str) -> Result<Webhook, Error> {
        let webhook = self.find(account, id).await?;
        if webhook.state == WebhookState::Active { Ok(webhook) } else { Err(Error::WebhookInactive) }
    }

    async fn changed(self, account: &AccountId, id: &str, change: WebhookChange) -> Result<Webhook, Error> {
        let now = self.access.now();
        let changed = self.setup.store()?.change_webhook(account, &read_id(id)?, change, now).await?;
        changed.ok_or(Error::NoSuchWebhook)
    }

    fn read_url(self, fields: &mut Fields, text: &str) -> Option<WebhookUrl> {
        WebhookUrl::parse(text, &self.setup.settings.addresses).map_err(|problem| fields.wrong("url", problem)).ok()
    }
}

fn is_mail(url: &str) -> bool {
    url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("mailto:"))
}

fn read_id(id: &str) -> Result<WebhookId, Error> {
    id.parse().map_err(|_| Error::NoSuchWebhook)
}

fn read_kinds(fields: &mut Fields, events: &[String]) -> EventKinds {
    if events.is_empty() {
        fields.wrong("events", NO_EVENTS);
    }
    let kinds = events.iter().map(|name| name.parse::<EventKind>()).collect::<Result<_, _>>();
    kinds.unwrap_or_else(|problem| {
        fields.wrong("events", format_args!("has {problem}"));
        EventKinds::default()
    })
}

/// A webhook, with how its deliveries are doing.
///
/// # Errors
/// When the store fails.
pub async fn described_webhook(
    store: &dyn EventStore,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<WebhookDocument, StoreError> {
    let health = store.webhook_health(&webhook.id).await?;
    let recent = store.delivery_counts(&webhook.id, now.saturating_sub(DeliveryCounts::PERIOD)).await?;
    let health = Some(WebhookHealthDocument::new(&health, recent));
    Ok(WebhookDocument { health, ..WebhookDocument::new(webhook, now) })
}

/// The delivery with this number, if the filter finds it.
///
/// # Errors
/// When the store fails.
pub async fn find_delivery(
    store: &dyn EventStore,
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    id: DeliveryId,
) -> Result<Option<Delivery>, StoreError> {
    // The newest one before the next number.
    let after = Cursor::new(id.get().saturating_add(1).to_string());
    let found = store.deliveries(account, filter, Some(&after), 1).await?;
    Ok(found.items.into_iter().next().filter(|found| found.id == id))
}

/// The threshold of `balance.low`.
///
/// # Errors
/// [`Error::ValidationFailed`].
pub fn read_threshold(request: &BalanceAlertRequest) -> Result<Option<Credits>, Error> {
    let below = request.below.ok_or_else(|| Error::field("below", "is required; send null for never"))?;
    if below.is_some_and(|below| !below.is_positive()) {
        return Err(Error::field("below", "must be above 0, or null for never"));
    }
    Ok(below)
}
