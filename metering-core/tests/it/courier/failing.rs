//! Webhooks on a store that can break down.

use std::time::Duration;

use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryBacklog, DeliveryCounts, DeliveryFilter, DeliveryId, DeliveryShares, DueDelivery,
    Event, NewWebhook, Webhook, WebhookChange, WebhookHealth, WebhookId, WebhookOwner, WebhookTerms,
};
use metering_core::store::{Cursor, EventStore, Page, WebhookCreated};
use metering_core::{Account, AccountId, Credits, Timestamp};

use crate::delegated::delegated;
use crate::meter::gated::Gated;

delegated! {
    impl<S: EventStore> EventStore for Gated<S> by (working()?) {}
    set_balance_alert(id: &AccountId, threshold: Option<Credits>) -> Option<Account>;
    create_webhook(new: NewWebhook) -> WebhookCreated;
    set_operator_webhook(terms: Option<WebhookTerms>, now: Timestamp) -> ();
    disable_operator_webhook() -> bool;
    webhooks(account: ?AccountId) -> Vec<Webhook>;
    change_webhook(account: &AccountId, id: &WebhookId, change: WebhookChange, now: Timestamp) -> Option<Webhook>;
    delete_webhook(account: &AccountId, id: &WebhookId) -> bool;
    test_webhook(account: ?AccountId, id: &WebhookId, now: Timestamp) -> Option<Delivery>;
    events(account: &AccountId, after: ?Cursor, limit: u32) -> Page<Event>;
    deliveries(account: ?AccountId, filter: DeliveryFilter, after: ?Cursor, limit: u32) -> Page<Delivery>;
    webhook_health(id: &WebhookId) -> WebhookHealth;
    delivery_counts(id: &WebhookId, since: Timestamp) -> DeliveryCounts;
    delivery_backlog(now: Timestamp) -> DeliveryBacklog;
    claim_shared(now: Timestamp, lease: Duration, limit: u32, owner: WebhookOwner, shares: DeliveryShares)
        -> Vec<DueDelivery>;
    finish_delivery(id: DeliveryId, attempt: u32, outcome: AttemptOutcome, now: Timestamp) -> Option<Delivery>;
    resend(account: ?AccountId, id: DeliveryId, now: Timestamp) -> Option<Delivery>;
}
