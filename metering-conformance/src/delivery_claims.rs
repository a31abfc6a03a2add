//! Contracts for claiming deliveries: each is sent by one process at a time, and in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metering_core::events::{
    AddressPolicy, AttemptOutcome, AttemptResult, DeliveryShares, DeliveryState, EventKinds, Progress, Webhook,
    WebhookChange, WebhookId, WebhookOwner, WebhookState, WebhookUrl,
};
use metering_core::store::EventStore;

use super::event_scene::{
    LEASE, MANY, at, claim, claim_one, delivered, deliveries, delivery, failed, finish, hook, operator_hook, send_tests,
};
use super::key_scene::{caller, issue};
use super::scene::{MINUTE, NOON, customer, racing};

fn disabled(disabled: bool) -> WebhookChange {
    WebhookChange::Terms { url: None, kinds: None, disabled: Some(disabled) }
}

async fn state_of(store: &dyn EventStore, webhook: &Webhook) -> WebhookState {
    let all = store.webhooks(webhook.account.as_ref()).await.unwrap();
    all.iter().find(|found| found.id == webhook.id).expect("the webhook exists").state
}

/// Deliveries of an account, or to a host, that has its share are left unchanged, and those behind them are claimed.
pub async fn shares_leave_slots_for_others(store: Arc<dyn EventStore>) {
    let mut accounts = Vec::new();
    for _ in 0..3 {
        let owner = customer(&*store, 1).await;
        for _ in 0..2 {
            let webhook = hook(&*store, &owner.id, &[]).await;
            send_tests(&*store, &webhook, 1).await;
        }
        accounts.push(owner.id);
    }
    let claim = async |shares: DeliveryShares| {
        let due = store.claim_shared(at(1), LEASE, 9, WebhookOwner::Customers, shares).await.unwrap();
        due.into_iter().map(|due| due.webhook.account.expect("it is a customer's")).collect::<Vec<_>>()
    };
    let mut taken = DeliveryShares::new(1, u32::MAX);
    assert!(taken.take(accounts[0].as_str(), "https://other.example/"));
    assert_eq!(claim(taken).await, accounts[1..], "one each, and none of the first");
    assert_eq!(claim(DeliveryShares::new(u32::MAX, 1)).await, accounts[..1], "all go to one host");
    assert_eq!(claim(DeliveryShares::unlimited()).await, accounts, "the others were left unchanged");
}

/// A claim returns the delivery with its webhook, counts the attempt, and lasts as long as its lease.
pub async fn a_claim_lasts_as_long_as_its_lease(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let sent = send_tests(&*store, &webhook, 1).await.remove(0);
    assert_eq!(claim(&*store, NOON.saturating_sub(Duration::from_millis(1))).await, [], "it is not due yet");
    let first = claim_one(&*store, at(1)).await;
    assert_eq!((&first.webhook, &first.delivery.event), (&webhook, &sent.event));
    let progress = Progress { attempts: 1, next_at: at(1).saturating_add(LEASE), ..sent.progress };
    assert_eq!(first.delivery.progress, progress);
    assert_eq!(delivery(&*store, sent.id).await, first.delivery);
    assert_eq!(claim(&*store, at(60)).await, [], "it is claimed");
    let second = claim_one(&*store, at(61)).await;
    assert_eq!(second.delivery.progress.attempts, 2);
    assert_eq!(finish(&*store, &first, delivered(), at(62)).await, None, "a later attempt has begun");
    assert_eq!(delivery(&*store, sent.id).await, second.delivery);
    let done = finish(&*store, &second, delivered(), at(63)).await.expect("it is the current attempt");
    let last = Some(AttemptResult { at: at(63), status: Some(204), error: None, response: None });
    assert_eq!((done.progress.state, &done.progress.last), (DeliveryState::Delivered, &last));
    assert_eq!(delivery(&*store, sent.id).await, done);
    assert_eq!(finish(&*store, &second, failed(None), at(64)).await, None, "it is over");
    assert_eq!(claim(&*store, at(99_999)).await, []);
}

/// An attempt that ends after its lease counts if no other attempt has started.
pub async fn a_late_end_counts_if_nobody_else_began(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    send_tests(&*store, &webhook, 1).await;
    let due = claim_one(&*store, NOON).await;
    let done = finish(&*store, &due, delivered(), at(500)).await.expect("it is still the current attempt");
    assert_eq!(done.progress.state, DeliveryState::Delivered);
}

/// A failed delivery is retried later, and holds up those that follow it.
pub async fn a_failed_delivery_is_sent_again_later(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let sent = send_tests(&*store, &webhook, 2).await;
    let due = claim_one(&*store, NOON).await;
    assert_eq!(due.delivery.id, sent[0].id);
    let after = finish(&*store, &due, failed(Some(503)), at(2)).await.unwrap();
    let last = AttemptResult {
        at: at(2),
        status: Some(503),
        error: Some("größer — “x”".to_owned()),
        response: Some("voll — 满".to_owned()),
    };
    assert_eq!((after.progress.state, after.progress.last.as_ref()), (DeliveryState::Pending, Some(&last)));
    assert_eq!(after.progress.next_at, at(7), "five seconds after the first failure");
    assert_eq!(delivery(&*store, sent[0].id).await, after);
    assert_eq!(claim(&*store, at(6)).await, [], "the second one waits for the first");
    let due = claim_one(&*store, at(7)).await;
    assert_eq!((due.delivery.id, due.delivery.progress.attempts), (sent[0].id, 2));
    assert_eq!(due.delivery.progress.last.as_ref(), Some(&last));
    let asked =
        AttemptOutcome::Failed { status: None, error: String::new(), retry_after: Some(MINUTE * 10), response: None };
    let after = finish(&*store, &due, asked, at(8)).await.unwrap();
    assert_eq!(after.progress.next_at, at(608), "the webhook asked to wait");
    let due = claim_one(&*store, at(608)).await;
    finish(&*store, &due, delivered(), at(609)).await.unwrap();
    assert_eq!(claim_one(&*store, at(609)).await.delivery.id, sent[1].id);
}

/// A webhook gets the events of one account one by one, oldest first; those of other accounts do not wait for it.
pub async fn deliveries_are_in_order_for_each_account(store: Arc<dyn EventStore>) {
    operator_hook(&*store, &[]).await;
    let (first, second) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let own = hook(&*store, &first.id, &[]).await;
    for _ in 0..2 {
        issue(&*store, &first.id, None, caller()).await;
        issue(&*store, &second.id, None, caller()).await;
    }
    let mut order = Vec::new();
    for round in 0..3 {
        let due = claim(&*store, at(round)).await;
        let lines: BTreeSet<_> = due.iter().map(|due| (due.webhook.id, due.delivery.event.account.clone())).collect();
        assert_eq!(lines.len(), due.len(), "one of each account for each webhook");
        let expected = if round < 2 { 3 } else { 2 };
        assert_eq!(due.len(), expected, "in round {round}");
        assert_eq!(claim(&*store, at(round)).await, [], "the rest waits");
        for due in due {
            finish(&*store, &due, delivered(), at(round)).await.unwrap();
            order.push((due.webhook.id, due.delivery.event));
        }
    }
    assert_eq!(claim(&*store, at(9)).await, []);
    for (webhook, account, count) in
        [(WebhookId::OPERATOR, &first.id, 3), (WebhookId::OPERATOR, &second.id, 3), (own.id, &first.id, 2)]
    {
        let of = order.iter().filter(|(to, event)| *to == webhook && event.account.as_ref() == Some(account));
        let numbers: Vec<_> = of.map(|(_, event)| event.number).collect();
        assert!(numbers.len() == count && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}

/// A delivery that is resent goes before the later ones that wait, since its event is older.
pub async fn a_resent_delivery_goes_first(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let sent = send_tests(&*store, &webhook, 2).await;
    finish(&*store, &claim_one(&*store, NOON).await, delivered(), NOON).await.unwrap();
    store.resend(Some(&owner.id), sent[0].id, at(5)).await.unwrap();
    assert_eq!(claim(&*store, at(4)).await, [], "the older one is not due, and holds up the newer one");
    assert_eq!(claim_one(&*store, at(5)).await.delivery.id, sent[0].id);
}

/// Only so many are claimed at a time, those that wait longest first.
pub async fn claims_are_limited_and_oldest_first(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let mut sent = Vec::new();
    for seconds in [30, 10, 20, 0, 40] {
        let webhook = hook(&*store, &owner.id, &[]).await;
        let test = store.test_webhook(Some(&owner.id), &webhook.id, at(seconds)).await.unwrap().unwrap();
        sent.push((seconds, test.id));
    }
    sent.sort_unstable();
    let mut claimed = Vec::new();
    for count in [2, 2, 1, 0] {
        let due = store.claim_deliveries(at(50), LEASE, 2, WebhookOwner::Customers).await.unwrap();
        assert_eq!(due.len(), count);
        claimed.extend(due.into_iter().map(|due| due.delivery.id));
    }
    assert_eq!(claimed, sent.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
    assert_eq!(store.claim_deliveries(at(500), LEASE, 0, WebhookOwner::Customers).await.unwrap(), []);
}

/// Callers that claim at the same time share no delivery, and none gets two of one line.
pub async fn racing_claims_share_nothing(store: Arc<dyn EventStore>) {
    const WEBHOOKS: usize = 12;
    const EACH: usize = 3;
    let owner = customer(&*store, 1).await;
    for _ in 0..WEBHOOKS {
        let webhook = hook(&*store, &owner.id, &[]).await;
        send_tests(&*store, &webhook, EACH).await;
    }
    let mut order = Vec::new();
    for round in 0..EACH {
        let results = racing(&store, 0..8, |store, _| async move {
            store.claim_deliveries(NOON, LEASE, 3, WebhookOwner::Customers).await.unwrap()
        })
        .await;
        let mut claimed = results.concat();
        // A caller may leave what another one is about to take.
        claimed.extend(claim(&*store, NOON).await);
        let webhooks: BTreeSet<_> = claimed.iter().map(|due| due.webhook.id).collect();
        assert_eq!((claimed.len(), webhooks.len()), (WEBHOOKS, WEBHOOKS), "in round {round}");
        for due in claimed {
            assert_eq!(due.delivery.progress.attempts, 1);
            finish(&*store, &due, delivered(), NOON).await.expect("nobody else has it");
            order.push((due.webhook.id, due.delivery.event.number));
        }
    }
    assert_eq!(order.len(), WEBHOOKS * EACH);
    order.sort_by_key(|(webhook, _)| *webhook);
    assert!(order.chunks(EACH).all(|of_one| of_one.is_sorted()), "in order for each webhook");
    assert_eq!(claim(&*store, at(9_999)).await, []);
}

/// Deliveries to customers and to the operator are claimed apart.
pub async fn the_operators_deliveries_are_left_to_who_can_sign(store: Arc<dyn EventStore>) {
    operator_hook(&*store, &[]).await;
    let owner = customer(&*store, 1).await;
    let own = hook(&*store, &owner.id, &[]).await;
    send_tests(&*store, &own, 1).await;
    let due = store.claim_deliveries(NOON, LEASE, MANY, WebhookOwner::Customers).await.unwrap();
    assert_eq!(due.iter().map(|due| due.webhook.id).collect::<Vec<_>>(), [own.id]);
    assert_eq!(store.claim_deliveries(NOON, LEASE, MANY, WebhookOwner::Customers).await.unwrap(), []);
    let operators = claim_one(&*store, NOON).await;
    assert_eq!((operators.webhook.id, operators.webhook.secrets.len()), (WebhookId::OPERATOR, 0));
    assert_eq!(operators.delivery.event.account, Some(owner.id));
}

/// Deliveries to a webhook that is switched off are not sent before it is switched on again.
pub async fn a_disabled_webhook_is_not_sent_to(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    send_tests(&*store, &webhook, 2).await;
    let begun = claim_one(&*store, NOON).await;
    store.change_webhook(&owner.id, &webhook.id, disabled(true), NOON).await.unwrap();
    assert_eq!(claim(&*store, at(9_999)).await, []);
    let done = finish(&*store, &begun, delivered(), at(1)).await;
    assert_eq!(done.map(|done| done.progress.state), Some(DeliveryState::Delivered), "what was begun ends");
    assert_eq!(claim(&*store, at(9_999)).await, []);
    store.change_webhook(&owner.id, &webhook.id, disabled(false), NOON).await.unwrap();
    assert_eq!(claim_one(&*store, at(2)).await.delivery.progress.attempts, 1);
}

/// After a change that may have repaired a webhook, what failed is tried without waiting. Other changes do not hurry.
pub async fn a_repaired_webhook_is_tried_without_waiting(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let sent = send_tests(&*store, &webhook, 2).await;
    let other = WebhookUrl::parse("https://repaired.example.com/hooks", &AddressPolicy::default()).unwrap();
    let url = |url| WebhookChange::Terms { url: Some(url), kinds: None, disabled: None };
    let asked = || AttemptOutcome::Failed {
        status: None,
        error: String::new(),
        retry_after: Some(MINUTE * 10),
        response: None,
    };
    let fail = async |seconds| {
        let due = claim_one(&*store, at(seconds)).await;
        assert_eq!(due.delivery.id, sent[0].id);
        finish(&*store, &due, asked(), at(seconds)).await.unwrap();
    };
    let change = async |change, seconds| {
        store.change_webhook(&owner.id, &webhook.id, change, at(seconds)).await.unwrap().unwrap();
    };
    fail(0).await;
    change(url(webhook.terms.url.clone()), 1).await;
    change(disabled(false), 1).await;
    change(WebhookChange::Terms { url: None, kinds: Some(EventKinds::default()), disabled: None }, 1).await;
    assert_eq!(claim(&*store, at(1)).await, [], "nothing changed that could have repaired it");
    change(url(other), 2).await;
    let hastened = delivery(&*store, sent[0].id).await.progress;
    assert_eq!((hastened.since, hastened.next_at, hastened.attempts), (at(2), at(2), 1));
    fail(2).await;
    change(disabled(true), 3).await;
    assert_eq!(claim(&*store, at(9_999)).await, []);
    change(disabled(false), 4).await;
    let due = claim_one(&*store, at(4)).await;
    finish(&*store, &due, delivered(), at(5)).await.unwrap();
    let due = claim_one(&*store, at(5)).await;
    assert_eq!((due.delivery.id, due.delivery.progress.since), (sent[1].id, sent[1].progress.since));
}

/// A customer's webhook that responds 410 Gone is switched off. The operator's is not.
pub async fn a_gone_webhook_is_switched_off(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let [webhook, other] = [hook(&*store, &owner.id, &[]).await, hook(&*store, &owner.id, &[]).await];
    send_tests(&*store, &webhook, 2).await;
    let due = claim_one(&*store, NOON).await;
    let after = finish(&*store, &due, AttemptOutcome::Gone, at(1)).await.unwrap();
    let last = AttemptResult { at: at(1), status: Some(410), error: Some("410 Gone".to_owned()), response: None };
    assert_eq!((after.progress.state, after.progress.last), (DeliveryState::Parked, Some(last)));
    assert_eq!(state_of(&*store, &webhook).await, WebhookState::Gone);
    assert_eq!(state_of(&*store, &other).await, WebhookState::Active);
    assert_eq!(claim(&*store, at(9_999)).await, []);
    issue(&*store, &owner.id, None, caller()).await;
    let to_gone = deliveries(&*store, None).await.into_iter().filter(|delivery| delivery.webhook == webhook.id);
    assert_eq!(to_gone.count(), 2, "no more events are kept for it");
    store.change_webhook(&owner.id, &webhook.id, disabled(false), NOON).await.unwrap();
    assert_eq!(state_of(&*store, &webhook).await, WebhookState::Active);
    assert_eq!(claim(&*store, at(5)).await.len(), 2, "the second test, and the event of the key");
    operator_hook(&*store, &[]).await;
    issue(&*store, &owner.id, None, caller()).await;
    let due = claim(&*store, at(6)).await.into_iter().find(|due| due.webhook.account.is_none()).unwrap();
    finish(&*store, &due, AttemptOutcome::Gone, at(7)).await.unwrap();
    assert_eq!(state_of(&*store, &due.webhook).await, WebhookState::Active);
}

/// An end that comes too late does not switch a webhook off.
pub async fn a_stale_end_switches_nothing_off(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    send_tests(&*store, &webhook, 1).await;
    let first = claim_one(&*store, NOON).await;
    claim_one(&*store, at(60)).await;
    assert_eq!(finish(&*store, &first, AttemptOutcome::Gone, at(61)).await, None);
    assert_eq!(state_of(&*store, &webhook).await, WebhookState::Active);
}
