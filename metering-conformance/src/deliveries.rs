//! Contracts for deliveries: written with their events, and listed, resent and forgotten.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::AccountId;
use metering_core::charging::HoldAction;
use metering_core::events::EventKind::{self, BalanceLow, HoldExpired, KeyCreated, KeyLeaked};
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryBacklog, DeliveryCounts, DeliveryFilter, DeliveryId, DeliveryState, Event,
    Progress, WebhookChange, WebhookHealth, WebhookId,
};
use metering_core::store::EventStore;

use super::event_scene::{
    MANY, at, charge_each, claim, claim_one, delivered, deliveries, delivery, events, failed, finish, hook,
    operator_hook, send_tests, watched,
};
use super::hold_scene::{act, later, open};
use super::key_scene::{caller, issue};
use super::scene::{NOON, Verified, customer, new_id, paged};

async fn kinds(store: &dyn EventStore, account: Option<&AccountId>, webhook: &WebhookId) -> Vec<EventKind> {
    let all = deliveries(store, account).await.into_iter().filter(|delivery| delivery.webhook == *webhook);
    all.map(|delivery| delivery.event.kind).collect()
}

/// An event is delivered to the webhooks of its account that subscribe to its kind at that moment.
pub async fn events_go_to_webhooks_that_ask_for_them(store: Verified<dyn EventStore>) {
    let (owner, other) = (watched(&*store, 100, 50).await, watched(&*store, 100, 50).await);
    let all = hook(&*store, &owner.id, &[]).await;
    let some = hook(&*store, &owner.id, &[BalanceLow, KeyLeaked]).await;
    let off = hook(&*store, &owner.id, &[]).await;
    let of_other = hook(&*store, &other.id, &[]).await;
    let disable = WebhookChange::Terms { url: None, kinds: None, disabled: Some(true) };
    store.change_webhook(&owner.id, &off.id, disable, NOON).await.unwrap();
    charge_each(&*store, &owner, &[51]).await;
    let id = open(&*store, owner.key, 20).await;
    act(&*store, &owner.id, id, HoldAction::Expire, later(60)).await;
    issue(&*store, &owner.id, None, caller()).await;
    assert_eq!(kinds(&*store, Some(&owner.id), &all.id).await, [BalanceLow, HoldExpired, KeyCreated]);
    assert_eq!(kinds(&*store, Some(&owner.id), &some.id).await, [BalanceLow]);
    assert_eq!(kinds(&*store, Some(&owner.id), &off.id).await, []);
    assert_eq!(deliveries(&*store, Some(&other.id)).await, []);
    charge_each(&*store, &other, &[51]).await;
    assert_eq!(kinds(&*store, None, &of_other.id).await, [BalanceLow]);
    let enable = WebhookChange::Terms { url: None, kinds: None, disabled: Some(false) };
    store.change_webhook(&owner.id, &off.id, enable, NOON).await.unwrap();
    assert_eq!(kinds(&*store, Some(&owner.id), &off.id).await, [], "events of that time are not kept for it");
    let newest = events(&*store, &owner.id).await.pop().unwrap();
    let last = deliveries(&*store, Some(&owner.id)).await.pop().unwrap();
    assert_eq!((last.event, last.progress), (newest, Progress::new(NOON)));
}

/// The operator's webhook gets the events of all accounts, of the kinds that it subscribes to.
pub async fn the_operator_gets_the_events_of_all_accounts(store: Arc<dyn EventStore>) {
    operator_hook(&*store, &[KeyCreated, BalanceLow]).await;
    let (first, second) = (watched(&*store, 100, 50).await, watched(&*store, 100, 50).await);
    for customer in [&first, &second] {
        charge_each(&*store, customer, &[51]).await;
        let id = open(&*store, customer.key, 20).await;
        act(&*store, &customer.id, id, HoldAction::Expire, later(60)).await;
    }
    let found = kinds(&*store, None, &WebhookId::OPERATOR).await;
    assert_eq!(found, [KeyCreated, KeyCreated, BalanceLow, BalanceLow]);
    assert_eq!(deliveries(&*store, Some(&first.id)).await, [], "an account does not see them");
    let own = hook(&*store, &first.id, &[]).await;
    issue(&*store, &first.id, None, caller()).await;
    assert_eq!(kinds(&*store, None, &WebhookId::OPERATOR).await.len(), 5);
    assert_eq!(kinds(&*store, Some(&first.id), &own.id).await, [KeyCreated]);
    store.set_operator_webhook(None, NOON).await.unwrap();
    issue(&*store, &first.id, None, caller()).await;
    assert_eq!(kinds(&*store, None, &WebhookId::OPERATOR).await, []);
    assert_eq!(kinds(&*store, Some(&first.id), &own.id).await, [KeyCreated, KeyCreated]);
}

async fn all_pages(
    store: &dyn EventStore,
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    limit: u32,
) -> Vec<DeliveryId> {
    let found = paged(limit, async |after, limit| store.deliveries(account, filter, after, limit).await).await;
    found.into_iter().map(|delivery| delivery.id).collect()
}

/// Deliveries are listed newest first, in pages, by webhook and by state.
pub async fn deliveries_are_paged_and_filtered(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let [first, second] = [hook(&*store, &owner.id, &[]).await, hook(&*store, &owner.id, &[]).await];
    let of_other = hook(&*store, &other.id, &[]).await;
    let mut sent = Vec::new();
    for webhook in [&first, &second, &of_other, &first, &second, &of_other, &first] {
        sent.extend(send_tests(&*store, webhook, 1).await);
    }
    for due in claim(&*store, NOON).await {
        let (webhook, gone) = (due.webhook.id, AttemptOutcome::Gone);
        let outcome = if webhook == first.id {
            delivered()
        } else if webhook == second.id {
            gone
        } else {
            failed(None)
        };
        finish(&*store, &due, outcome, NOON).await.expect("the attempt is the current one");
    }
    let ids = |places: &[usize]| places.iter().rev().map(|place| sent[*place].id).collect::<Vec<_>>();
    let filter = |webhook, state| DeliveryFilter { webhook, state, kind: None };
    use DeliveryState::{Delivered, Parked, Pending};
    let (own, others) = (Some(&owner.id), Some(&other.id));
    let table = [
        (own, filter(None, None), ids(&[0, 1, 3, 4, 6])),
        (None, filter(None, None), ids(&[0, 1, 2, 3, 4, 5, 6])),
        (others, filter(None, None), ids(&[2, 5])),
        (own, filter(Some(first.id), None), ids(&[0, 3, 6])),
        (own, filter(Some(first.id), Some(Pending)), ids(&[3, 6])),
        (own, filter(None, Some(Delivered)), ids(&[0])),
        (own, filter(None, Some(Parked)), ids(&[1])),
        (None, filter(None, Some(Pending)), ids(&[2, 3, 4, 5, 6])),
        (None, filter(Some(second.id), Some(Pending)), ids(&[4])),
        (own, filter(Some(of_other.id), None), ids(&[])),
        (Some(&new_id()), filter(None, None), ids(&[])),
        (own, filter(Some(WebhookId::OPERATOR), None), ids(&[])),
    ];
    for (account, filter, expected) in table {
        for limit in [1, 2, MANY] {
            assert_eq!(all_pages(&*store, account, filter, limit).await, expected, "{account:?} {filter:?} {limit}");
        }
    }
    let unknown = metering_core::store::Cursor::new("not a cursor".to_owned());
    store.deliveries(own, DeliveryFilter::default(), Some(&unknown), 10).await.unwrap_err();
}

/// Deliveries are listed by the kind of their events, with the other filters.
pub async fn deliveries_are_filtered_by_kind(store: Arc<dyn EventStore>) {
    let owner = watched(&*store, 10, 8).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let mut tests = send_tests(&*store, &webhook, 1).await;
    charge_each(&*store, &owner, &[3]).await;
    tests.extend(send_tests(&*store, &webhook, 2).await);
    finish(&*store, &claim_one(&*store, NOON).await, delivered(), NOON).await.unwrap();
    let all = deliveries(&*store, Some(&owner.id)).await;
    let low: Vec<_> = all.iter().filter(|one| one.event.kind == EventKind::BalanceLow).map(|one| one.id).collect();
    assert_eq!((all.len(), low.len()), (4, 1));
    let filter = |webhook, state, kind| DeliveryFilter { webhook, state, kind: Some(kind) };
    let ids = |places: &[usize]| places.iter().map(|place| tests[*place].id).collect::<Vec<_>>();
    let (own, to, pending) = (Some(&owner.id), Some(webhook.id), Some(DeliveryState::Pending));
    let table = [
        (own, filter(to, None, EventKind::WebhookTest), ids(&[2, 1, 0])),
        (own, filter(to, pending, EventKind::WebhookTest), ids(&[2, 1])),
        (own, filter(None, None, EventKind::BalanceLow), low.clone()),
        (None, filter(to, None, EventKind::BalanceLow), low.clone()),
        (None, filter(None, pending, EventKind::BalanceLow), low),
        (own, filter(to, None, EventKind::KeyLeaked), Vec::new()),
    ];
    for (account, filter, expected) in table {
        for limit in [1, MANY] {
            assert_eq!(all_pages(&*store, account, filter, limit).await, expected, "{account:?} {filter:?} {limit}");
        }
    }
}

/// A delivery can be resent, whether it was delivered or parked, and keeps its place.
pub async fn a_delivery_is_resent(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let webhook = hook(&*store, &owner.id, &[]).await;
    let id = send_tests(&*store, &webhook, 1).await[0].id;
    finish(&*store, &claim_one(&*store, NOON).await, delivered(), at(1)).await.unwrap();
    assert_eq!(claim(&*store, at(9_999)).await, []);
    assert_eq!(store.resend(Some(&other.id), id, at(5)).await.unwrap(), None, "another account's");
    assert_eq!(store.resend(Some(&owner.id), DeliveryId::new(i64::MAX), at(5)).await.unwrap(), None);
    let again = store.resend(Some(&owner.id), id, at(5)).await.unwrap().expect("it is the account's own");
    assert_eq!(
        (again.progress.state, again.progress.since, again.progress.attempts),
        (DeliveryState::Pending, at(5), 1)
    );
    assert_eq!(again, delivery(&*store, id).await);
    assert_eq!(claim(&*store, at(4)).await, []);
    let due = claim_one(&*store, at(5)).await;
    assert_eq!((due.delivery.id, due.delivery.progress.attempts), (id, 2));
    let parked = at(5).saturating_add(Delivery::GIVE_UP_AFTER);
    let after = finish(&*store, &due, failed(Some(500)), parked).await.unwrap();
    assert_eq!(after.progress.state, DeliveryState::Parked);
    let again = store.resend(None, id, parked).await.unwrap().expect("the operator resends any");
    assert_eq!((again.progress.state, again.progress.last), (DeliveryState::Pending, after.progress.last));
    assert_eq!(claim_one(&*store, parked).await.delivery.progress.attempts, 3);
}

/// A webhook's health has how many of its deliveries wait, the first of them in the order of events, and when one arrived
/// last, even if its event is an older one. Other webhooks of the account have their own.
pub async fn a_webhooks_health_is_read_from_its_deliveries(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let [first, second] = [hook(&*store, &owner.id, &[]).await, hook(&*store, &owner.id, &[]).await];
    let health = async |id: &WebhookId| store.webhook_health(id).await.unwrap();
    assert_eq!(health(&first.id).await, WebhookHealth::default());
    let sent = send_tests(&*store, &first, 3).await;
    assert_eq!(
        health(&first.id).await,
        WebhookHealth { waiting: 3, first: Some(sent[0].clone()), last_delivered_at: None }
    );
    finish(&*store, &claim_one(&*store, NOON).await, delivered(), at(1)).await.unwrap();
    let failing = finish(&*store, &claim_one(&*store, at(1)).await, failed(Some(500)), at(2)).await.unwrap();
    assert_eq!(failing.id, sent[1].id);
    let after = health(&first.id).await;
    assert_eq!(after, WebhookHealth { waiting: 2, first: Some(failing), last_delivered_at: Some(at(1)) });
    assert_eq!(after.failing().map(|(since, last)| (since, last.status)), Some((NOON, Some(500))));
    store.resend(Some(&owner.id), sent[0].id, at(3)).await.unwrap().expect("it is the account's own");
    let resent = health(&first.id).await;
    assert_eq!((resent.waiting, resent.last_delivered_at), (3, None));
    assert_eq!(resent.first.map(|first| first.id), Some(sent[0].id), "the earlier event is first again");
    finish(&*store, &claim_one(&*store, at(3)).await, delivered(), at(4)).await.unwrap();
    finish(&*store, &claim_one(&*store, at(9_999)).await, delivered(), at(10_000)).await.unwrap();
    store.resend(Some(&owner.id), sent[0].id, at(10_001)).await.unwrap().expect("it is the account's own");
    finish(&*store, &claim_one(&*store, at(10_001)).await, delivered(), at(10_002)).await.unwrap();
    let after = health(&first.id).await;
    assert_eq!((after.waiting, after.last_delivered_at), (1, Some(at(10_002))), "of an older event");
    assert_eq!(health(&second.id).await, WebhookHealth::default());
}

/// Deliveries are counted by how their last attempt ended, if that was in the period.
pub async fn deliveries_of_a_period_are_counted(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let [first, second] = [hook(&*store, &owner.id, &[]).await, hook(&*store, &owner.id, &[]).await];
    let counts = async |id: &WebhookId, since| store.delivery_counts(id, since).await.unwrap();
    send_tests(&*store, &first, 5).await;
    assert_eq!(counts(&first.id, NOON).await, DeliveryCounts::default(), "none was attempted yet");
    finish(&*store, &claim_one(&*store, NOON).await, delivered(), at(1)).await.unwrap();
    finish(&*store, &claim_one(&*store, at(1)).await, failed(Some(500)), at(2)).await.unwrap();
    let of = |delivered, at_first_attempt, failed| DeliveryCounts { delivered, at_first_attempt, failed };
    assert_eq!(counts(&first.id, NOON).await, of(1, 1, 1));
    assert_eq!(counts(&first.id, at(2)).await, of(0, 0, 1), "the other ended before");
    let retried = claim_one(&*store, at(9_999)).await;
    finish(&*store, &retried, delivered(), at(10_000)).await.unwrap();
    let parked = at(9_999).saturating_add(Delivery::GIVE_UP_AFTER);
    finish(&*store, &claim_one(&*store, parked).await, failed(None), parked).await.unwrap();
    assert_eq!(counts(&first.id, at(2)).await, of(1, 0, 1));
    assert_eq!(counts(&first.id, NOON).await, of(2, 1, 1));
    assert_eq!(counts(&second.id, NOON).await, DeliveryCounts::default());
}

/// The backlog counts pending and parked deliveries, and has the time of the oldest one that could be sent now.
pub async fn the_backlog_is_counted(store: Arc<dyn EventStore>) {
    let backlog = async |now| store.delivery_backlog(now).await.unwrap();
    let of = |pending, parked, oldest_due| DeliveryBacklog { pending, parked, oldest_due };
    assert_eq!(backlog(NOON).await, DeliveryBacklog::default());
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let [first, second] = [hook(&*store, &owner.id, &[]).await, hook(&*store, &other.id, &[]).await];
    send_tests(&*store, &first, 3).await;
    store.test_webhook(Some(&other.id), &second.id, at(10)).await.unwrap().expect("it exists");
    assert_eq!(backlog(NOON.saturating_sub(Duration::from_millis(1))).await, of(4, 0, None), "none is due yet");
    assert_eq!(backlog(at(20)).await, of(4, 0, Some(NOON)));
    let due = claim(&*store, at(20)).await;
    assert_eq!(due.len(), 2);
    assert_eq!(backlog(at(21)).await, of(4, 0, None), "those that are due are claimed, and the others wait for them");
    assert_eq!(backlog(at(80)).await, of(4, 0, Some(at(80))), "the claims have run out");
    for due in due {
        let outcome = if due.webhook.id == first.id { failed(Some(500)) } else { AttemptOutcome::Gone };
        finish(&*store, &due, outcome, at(30)).await.expect("the attempt is the current one");
    }
    let retry = delivery(&*store, deliveries(&*store, Some(&owner.id)).await[0].id).await.progress.next_at;
    assert_eq!(backlog(retry.saturating_sub(Duration::from_millis(1))).await, of(3, 1, None), "it waits to be retried");
    assert_eq!(backlog(retry).await, of(3, 1, Some(retry)));
    let off = WebhookChange::Terms { url: None, kinds: None, disabled: Some(true) };
    store.change_webhook(&owner.id, &first.id, off, at(31)).await.unwrap();
    assert_eq!(backlog(at(9_999)).await, of(3, 1, None), "nothing is due to a webhook that is off");
    operator_hook(&*store, &[]).await;
    store.test_webhook(None, &WebhookId::OPERATOR, at(40)).await.unwrap().expect("it exists");
    assert_eq!(backlog(at(9_999)).await, of(4, 1, Some(at(40))), "the operator's own counts too");
}

/// Events and their deliveries are deleted after thirty days, delivered or not. Webhooks stay.
pub async fn old_events_are_forgotten(store: Verified<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let old = send_tests(&*store, &webhook, 3).await;
    let due = claim_one(&*store, NOON).await;
    finish(&*store, &due, delivered(), NOON).await.unwrap();
    let newer = store.test_webhook(Some(&owner.id), &webhook.id, at(1)).await.unwrap().expect("it exists");
    let end = NOON.saturating_add(Event::RETENTION);
    assert_eq!(store.forget_expired(end.saturating_sub(Duration::from_millis(1))).await.unwrap(), 0);
    assert_eq!(deliveries(&*store, None).await.len(), 4);
    assert_eq!(store.forget_expired(end).await.unwrap(), 1 + 3, "the first key, and three tests");
    assert_eq!(deliveries(&*store, None).await, std::slice::from_ref(&newer));
    assert_eq!(events(&*store, &owner.id).await, std::slice::from_ref(&newer.event));
    assert_eq!(store.resend(None, old[0].id, end).await.unwrap(), None);
    assert_eq!(store.webhooks(Some(&owner.id)).await.unwrap(), std::slice::from_ref(&webhook));
    assert_eq!(claim_one(&*store, end).await.delivery.id, newer.id, "older ones no longer hold it up");
    let next = send_tests(&*store, &webhook, 1).await.remove(0);
    assert!(next.id > newer.id && next.event.number > newer.event.number, "numbers are never reused");
    assert_eq!(store.forget_expired(end.saturating_add(Event::RETENTION)).await.unwrap(), 2);
    let last = send_tests(&*store, &webhook, 1).await.remove(0);
    assert!(last.id > next.id && last.event.number > next.event.number, "even when all are deleted");
}
