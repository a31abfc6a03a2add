//! The part of the storage contract for events and webhooks.

use std::time::Duration;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::clock::Timestamp;
use crate::events::delivery::{AttemptOutcome, Delivery, DeliveryBacklog, DeliveryFilter, DeliveryId, DueDelivery};
use crate::events::delivery_shares::DeliveryShares;
use crate::events::event::Event;
use crate::events::webhook::{NewWebhook, Webhook, WebhookChange, WebhookId, WebhookOwner, WebhookTerms};
use crate::events::webhook_health::{DeliveryCounts, WebhookHealth};
use crate::money::credits::Credits;
use crate::store::{Cursor, Page, Store, StoreError};

/// Stores webhooks, and delivers events to them.
///
/// Every method that changes an account writes the events of that change in the same transaction: those that
/// [`decide`](crate::charging::decide) and the functions of [`decision`](crate::backend::decision) return. Each event
/// is written with a delivery for each webhook that [receives](Webhook::receives) it: the account's own, and the
/// operator's. Events are kept for [`Event::RETENTION`], and at most [`Event::MAX_PER_ACCOUNT`] of an account;
/// [`Store::forget_expired`] deletes the others with their deliveries.
#[async_trait]
pub trait EventStore: Store {
    /// Sets the threshold of an account's [`BalanceAlert`](crate::money::BalanceAlert); `None` for never. `None` when
    /// there is no such account.
    async fn set_balance_alert(
        &self,
        id: &AccountId,
        threshold: Option<Credits>,
    ) -> Result<Option<Account>, StoreError>;

    /// Creates a webhook of an account. At most one of its webhooks [is mail](crate::events::WebhookUrl::email).
    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated, StoreError>;

    /// Sets the operator's own webhook ([`WebhookId::OPERATOR`]), or removes it with its deliveries.
    async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<(), StoreError>;

    /// Turns the operator's own webhook off: it gets no more deliveries until it is set or removed. Whether there is
    /// one.
    async fn disable_operator_webhook(&self) -> Result<bool, StoreError>;

    /// The webhooks of an account, in the order of creation; with `None`, the operator's own.
    async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>, StoreError>;

    /// Changes a webhook of an account, as [`Webhook::after`] decides. If it [may be
    /// repaired](Webhook::may_be_repaired), its first pending delivery is [due now](crate::events::Progress::hastened).
    /// `None` when the account has no such webhook.
    async fn change_webhook(
        &self,
        account: &AccountId,
        id: &WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError>;

    /// Deletes a webhook of an account, and its deliveries. Whether there was one. Not one transaction, because it may
    /// have many deliveries: it is switched off first, and if the process ends, the deletion can be repeated.
    async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool, StoreError>;

    /// Writes a test event for one webhook only, even if it does not subscribe to that event. It belongs to the
    /// webhook's account. `None` when the account, or with `None` the operator, has no such webhook.
    async fn test_webhook(
        &self,
        account: Option<&AccountId>,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError>;

    /// The events of an account, newest first, at most `limit` after `after`.
    async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>, StoreError>;

    /// The deliveries to the webhooks of an account, newest first, at most `limit` after `after`; with `None`, those to
    /// all webhooks, of the operator and of all accounts.
    async fn deliveries(
        &self,
        account: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Delivery>, StoreError>;

    /// How the deliveries to a webhook are doing; the default for an unknown one. Counts its pending deliveries. For the
    /// operator's webhook, the first delivery is that of one account; other accounts do not wait for it.
    async fn webhook_health(&self, id: &WebhookId) -> Result<WebhookHealth, StoreError>;

    /// How the deliveries to a webhook ended whose last attempt ended at `since` or later. Reads all of its deliveries.
    async fn delivery_counts(&self, id: &WebhookId, since: Timestamp) -> Result<DeliveryCounts, StoreError>;

    /// How many deliveries wait, and since when the oldest one has been due that
    /// [`claim_deliveries`](Self::claim_deliveries) would claim at `now`. Counts every pending and parked delivery, so
    /// do not call it often.
    async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog, StoreError>;

    /// Claims at most `limit` deliveries that are due at `now`, oldest first ([`Progress::claimed`]), for a process
    /// that sends them within `lease`, all to webhooks of one owner, so slow webhooks of customers do not hold up the
    /// operator's. If several callers compete, only one gets each.
    ///
    /// Due is a pending delivery to an active webhook whose [`Progress::next_at`] has come, and that no pending
    /// delivery precedes: an earlier event of the same account to the same webhook. An unreadable one is logged and
    /// postponed for an hour, so it does not stop the others.
    ///
    /// [`Progress::claimed`]: crate::events::Progress::claimed
    /// [`Progress::next_at`]: crate::events::Progress::next_at
    async fn claim_deliveries(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        self.claim_shared(now, lease, limit, owner, DeliveryShares::unlimited()).await
    }

    /// The same, only for those deliveries that [`DeliveryShares::take`] has room for, tried in their order: the others
    /// are left for the next call. May leave out deliveries that come after 20,000 deliveries without room.
    async fn claim_shared(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
        shares: DeliveryShares,
    ) -> Result<Vec<DueDelivery>, StoreError>;

    /// Records how an attempt ended ([`Progress::finished`](crate::events::Progress::finished)). If the webhook
    /// [is gone](AttemptOutcome::Gone), its state becomes [`WebhookState::Gone`](crate::events::WebhookState::Gone),
    /// unless it is the operator's own. `None`, and nothing changes, if the attempt is not the current one, or the
    /// delivery no longer exists.
    async fn finish_delivery(
        &self,
        id: DeliveryId,
        attempt: u32,
        outcome: AttemptOutcome,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError>;

    /// Sends a delivery of an account's webhooks again, or with `None` any delivery
    /// ([`Progress::resent`](crate::events::Progress::resent)). `None` when there is no such delivery.
    async fn resend(
        &self,
        account: Option<&AccountId>,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError>;
}

/// The outcome of [`EventStore::create_webhook`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookCreated {
    /// It was created.
    Webhook(Webhook),
    /// There is no such account, or it is revoked; nothing was created.
    NoSuchAccount,
    /// The account has reached its limit of webhooks, or has a mail webhook already; nothing was created.
    TooMany,
}
