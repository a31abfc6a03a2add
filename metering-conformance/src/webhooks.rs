//! Contracts for webhooks: created, changed, rotated, deleted, and only for their own account.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::clock::Timestamp;
use metering_core::events::EventKind::{BalanceLow, KeyCreated, KeyLeaked};
use metering_core::events::{
    NewWebhook, SigningSecret, Webhook, WebhookChange, WebhookId, WebhookState, WebhookTerms, WebhookUrl,
};
use metering_core::store::{EventStore, WebhookCreated};

use super::event_scene::{
    at, claim, claim_one, deliveries, finish, hook, new_secret, new_webhook, operator_hook, send_tests, terms,
};
use super::scene::{NOON, customer, new_id, racing};

fn disabled(disabled: bool) -> WebhookChange {
    WebhookChange::Terms { url: None, kinds: None, disabled: Some(disabled) }
}

/// Changes a webhook at `now`, and expects that it exists and that this is what the store then has.
async fn changed(store: &dyn EventStore, webhook: &Webhook, change: WebhookChange, now: Timestamp) -> Webhook {
    let account = webhook.account.as_ref().expect("it is an account's");
    let after = store.change_webhook(account, &webhook.id, change, now).await.unwrap().expect("the webhook exists");
    let stored = store.webhooks(Some(account)).await.unwrap();
    assert!(stored.contains(&after), "{after:?} is not among {stored:?}");
    after
}

/// Webhooks are stored as given, and listed in the order of creation.
pub async fn webhooks_are_stored_unchanged(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let mut made = Vec::new();
    for kinds in [&[][..], &[BalanceLow], &[KeyLeaked, BalanceLow, KeyCreated]] {
        let new =
            NewWebhook { created_at: at(9 - u64::try_from(kinds.len()).unwrap()), ..new_webhook(&owner.id, kinds) };
        let expected = Webhook {
            id: new.id,
            account: Some(owner.id.clone()),
            terms: new.terms.clone(),
            state: WebhookState::Active,
            secrets: vec![SigningSecret { secret: new.secret.clone(), expires_at: None }],
            created_at: new.created_at,
        };
        assert_eq!(store.create_webhook(new).await.unwrap(), WebhookCreated::Webhook(expected.clone()));
        made.push(expected);
        hook(&*store, &other.id, kinds).await;
    }
    assert_eq!(store.webhooks(Some(&owner.id)).await.unwrap(), made);
    assert_eq!(store.webhooks(Some(&other.id)).await.unwrap().len(), 3);
    assert_eq!(store.webhooks(Some(&new_id())).await.unwrap(), []);
    assert_eq!(store.webhooks(None).await.unwrap(), []);
}

/// A webhook may be mail to an address.
pub async fn webhooks_that_are_mail_are_stored(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let url = WebhookUrl::mail_to(&"Jo+alerts@example.com".parse().unwrap()).expect("the address is plain");
    let new = new_webhook(&owner.id, &[BalanceLow]);
    let new = NewWebhook { terms: WebhookTerms { url: url.clone(), ..new.terms }, ..new };
    store.create_webhook(new).await.unwrap();
    let stored = store.webhooks(Some(&owner.id)).await.unwrap();
    assert_eq!(stored[0].terms.url, url);
    send_tests(&*store, &stored[0], 1).await;
    assert_eq!(claim_one(&*store, NOON).await.webhook, stored[0]);
}

/// An account has at most one mail webhook, even when several are created concurrently.
pub async fn racing_webhooks_that_are_mail_are_one(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let url = WebhookUrl::mail_to(&"jo@example.com".parse().unwrap()).expect("the address is plain");
    let mail = |account: &AccountId| {
        let new = new_webhook(account, &[BalanceLow]);
        NewWebhook { terms: WebhookTerms { url: url.clone(), ..new.terms }, ..new }
    };
    hook(&*store, &owner.id, &[]).await;
    let results = racing(&store, 0..8, |store, _| {
        let new = mail(&owner.id);
        async move { store.create_webhook(new).await.unwrap() }
    })
    .await;
    let (created, refused): (Vec<_>, Vec<_>) =
        results.into_iter().partition(|outcome| matches!(outcome, WebhookCreated::Webhook(_)));
    assert_eq!((created.len(), refused), (1, vec![WebhookCreated::TooMany; 7]));
    assert!(matches!(store.create_webhook(mail(&other.id)).await.unwrap(), WebhookCreated::Webhook(_)));
    hook(&*store, &owner.id, &[]).await;
}

/// An account has at most so many webhooks; one that is deleted makes room. A revoked account gets no more.
pub async fn webhooks_of_an_account_are_limited(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let new = |account: &AccountId| NewWebhook { max_webhooks: 2, ..new_webhook(account, &[]) };
    let first = hook(&*store, &owner.id, &[]).await;
    let none = NewWebhook { max_webhooks: 0, ..new_webhook(&other.id, &[]) };
    assert_eq!(store.create_webhook(none).await.unwrap(), WebhookCreated::TooMany);
    operator_hook(&*store, &[]).await;
    for (account, is_created) in [(&owner.id, true), (&owner.id, false), (&other.id, true)] {
        let outcome = store.create_webhook(new(account)).await.unwrap();
        assert_eq!(matches!(outcome, WebhookCreated::Webhook(_)), is_created, "{outcome:?}");
        assert!(is_created || outcome == WebhookCreated::TooMany, "{outcome:?}");
    }
    changed(&*store, &first, disabled(true), NOON).await;
    assert_eq!(store.create_webhook(new(&owner.id)).await.unwrap(), WebhookCreated::TooMany);
    assert!(store.delete_webhook(&owner.id, &first.id).await.unwrap());
    assert!(matches!(store.create_webhook(new(&owner.id)).await.unwrap(), WebhookCreated::Webhook(_)));
    assert_eq!(store.create_webhook(new(&new_id())).await.unwrap(), WebhookCreated::NoSuchAccount);
    store.revoke_account(&other.id, NOON).await.unwrap();
    assert_eq!(store.create_webhook(new(&other.id)).await.unwrap(), WebhookCreated::NoSuchAccount);
    assert_eq!(store.webhooks(Some(&other.id)).await.unwrap().len(), 1, "it keeps what it has");
}

/// The limit holds when webhooks are created at the same time.
pub async fn racing_webhooks_are_limited(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let results = racing(&store, 0..16, |store, _| {
        let new = NewWebhook { max_webhooks: 5, ..new_webhook(&owner.id, &[]) };
        async move { store.create_webhook(new).await.unwrap() }
    })
    .await;
    let created = results.into_iter().filter(|outcome| matches!(outcome, WebhookCreated::Webhook(_)));
    assert_eq!((created.count(), store.webhooks(Some(&owner.id)).await.unwrap().len()), (5, 5));
}

/// Fields that a change leaves out keep their values. A webhook can be switched off and on.
pub async fn a_webhooks_terms_are_changed(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[BalanceLow]).await;
    let neighbour = hook(&*store, &owner.id, &[KeyLeaked]).await;
    let url = WebhookUrl::parse("https://hooks.example.org:8443/a", &Default::default()).unwrap();
    let change = WebhookChange::Terms { url: Some(url.clone()), kinds: None, disabled: None };
    let after = changed(&*store, &webhook, change, NOON).await;
    let expected = Webhook { terms: WebhookTerms { url, ..webhook.terms.clone() }, ..webhook.clone() };
    assert_eq!(after, expected);
    let kinds =
        WebhookChange::Terms { url: None, kinds: Some([KeyCreated].into_iter().collect()), disabled: Some(true) };
    let after = changed(&*store, &webhook, kinds, NOON).await;
    let terms = WebhookTerms { kinds: [KeyCreated].into_iter().collect(), ..expected.terms.clone() };
    let expected = Webhook { terms, state: WebhookState::Disabled, ..expected };
    assert_eq!(after, expected);
    let all = WebhookChange::Terms { url: None, kinds: Some(Default::default()), disabled: None };
    assert_eq!(changed(&*store, &webhook, all, NOON).await.state, WebhookState::Disabled);
    assert_eq!(changed(&*store, &webhook, disabled(false), NOON).await.state, WebhookState::Active);
    assert_eq!(store.webhooks(Some(&owner.id)).await.unwrap()[1], neighbour);
}

/// With a grace period, requests are signed with two secrets until it ends; there are never more than two.
pub async fn a_webhooks_secret_is_rotated(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let webhook = hook(&*store, &owner.id, &[]).await;
    let [first, second, third, last] = [webhook.secrets[0].secret.clone(), new_secret(), new_secret(), new_secret()];
    let rotate = |secret: &_, old_until| WebhookChange::Rotate { secret: Clone::clone(secret), old_until };
    let secret = |secret: &_, expires_at| SigningSecret { secret: Clone::clone(secret), expires_at };
    let after = changed(&*store, &webhook, rotate(&second, Some(at(100))), NOON).await;
    assert_eq!(after.secrets, [secret(&second, None), secret(&first, Some(at(100)))]);
    let signing = |now| after.signing_secrets(now).cloned().collect::<Vec<_>>();
    assert_eq!((signing(at(99)), signing(at(100))), (vec![second.clone(), first], vec![second.clone()]));
    let after = changed(&*store, &webhook, rotate(&third, Some(at(300))), at(50)).await;
    assert_eq!(after.secrets, [secret(&third, None), secret(&second, Some(at(300)))], "the oldest one is dropped");
    let after = changed(&*store, &webhook, rotate(&last, None), at(60)).await;
    assert_eq!(after.secrets, [secret(&last, None)], "at once");
    let unchanged = changed(&*store, &webhook, disabled(false), at(70)).await;
    assert_eq!(unchanged.secrets, after.secrets);
}

/// A webhook is deleted once, with its deliveries. Those of other webhooks stay.
pub async fn a_deleted_webhook_takes_its_deliveries_along(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let [gone, stays] = [hook(&*store, &owner.id, &[]).await, hook(&*store, &owner.id, &[]).await];
    send_tests(&*store, &gone, 2).await;
    let kept = send_tests(&*store, &stays, 1).await;
    let claimed = claim(&*store, NOON).await;
    let of_gone = claimed.iter().find(|due| due.webhook.id == gone.id).expect("it is due");
    assert!(store.delete_webhook(&owner.id, &gone.id).await.unwrap());
    assert!(!store.delete_webhook(&owner.id, &gone.id).await.unwrap());
    assert_eq!(store.webhooks(Some(&owner.id)).await.unwrap(), [stays]);
    let left: Vec<_> = deliveries(&*store, None).await.into_iter().map(|delivery| delivery.id).collect();
    assert_eq!(left, [kept[0].id]);
    assert_eq!(finish(&*store, of_gone, super::event_scene::delivered(), NOON).await, None);
    assert_eq!(store.resend(Some(&owner.id), of_gone.delivery.id, NOON).await.unwrap(), None);
    assert_eq!(super::event_scene::events(&*store, &owner.id).await.len(), 1 + 3, "its events stay");
    let again = store.change_webhook(&owner.id, &gone.id, disabled(true), NOON).await.unwrap();
    assert_eq!(again, None);
}

/// No account finds or changes the webhook of another account, or the operator's.
pub async fn a_webhook_belongs_to_its_account(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let webhook = hook(&*store, &owner.id, &[]).await;
    operator_hook(&*store, &[BalanceLow]).await;
    let operators = store.webhooks(None).await.unwrap();
    for (account, id) in [(&other.id, webhook.id), (&new_id(), webhook.id), (&owner.id, WebhookId::OPERATOR)] {
        assert_eq!(store.change_webhook(account, &id, disabled(true), NOON).await.unwrap(), None);
        assert!(!store.delete_webhook(account, &id).await.unwrap());
        assert_eq!(store.test_webhook(Some(account), &id, NOON).await.unwrap(), None);
    }
    assert_eq!(store.test_webhook(None, &webhook.id, NOON).await.unwrap(), None);
    assert_eq!(store.webhooks(Some(&owner.id)).await.unwrap(), [webhook]);
    assert_eq!(store.webhooks(None).await.unwrap(), operators);
    assert_eq!(deliveries(&*store, None).await, []);
}

/// The operator has one webhook. The configuration replaces its terms, and keeps its deliveries.
pub async fn the_operators_webhook_is_set_and_removed(store: Arc<dyn EventStore>) {
    assert_eq!(store.webhooks(None).await.unwrap(), []);
    store.set_operator_webhook(None, NOON).await.unwrap();
    store.set_operator_webhook(Some(terms(&[BalanceLow])), at(1)).await.unwrap();
    let url = WebhookUrl::parse_trusted("http://localhost:9000/").unwrap();
    let expected = Webhook {
        id: WebhookId::OPERATOR,
        account: None,
        terms: terms(&[BalanceLow]),
        state: WebhookState::Active,
        secrets: Vec::new(),
        created_at: at(1),
    };
    assert_eq!(store.webhooks(None).await.unwrap(), std::slice::from_ref(&expected));
    let test = store.test_webhook(None, &WebhookId::OPERATOR, at(2)).await.unwrap().expect("it exists");
    assert_eq!((test.event.account.as_ref(), test.event.created_at), (None, at(2)));
    let after = WebhookTerms { url, kinds: [KeyLeaked].into_iter().collect() };
    store.set_operator_webhook(Some(after.clone()), at(5)).await.unwrap();
    assert_eq!(store.webhooks(None).await.unwrap(), [Webhook { terms: after, ..expected }]);
    assert_eq!(claim_one(&*store, at(5)).await.delivery.id, test.id);
    store.set_operator_webhook(None, at(6)).await.unwrap();
    assert_eq!(store.webhooks(None).await.unwrap(), []);
    assert_eq!(deliveries(&*store, None).await, []);
}

/// A test goes to one webhook, even if that does not subscribe to it, and is an event of its account.
pub async fn a_test_goes_to_one_webhook(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1).await;
    let [tested, _] = [hook(&*store, &owner.id, &[KeyLeaked]).await, hook(&*store, &owner.id, &[]).await];
    operator_hook(&*store, &[]).await;
    let test = store.test_webhook(Some(&owner.id), &tested.id, at(3)).await.unwrap().expect("it exists");
    assert_eq!((test.webhook, test.event.created_at, test.progress.next_at), (tested.id, at(3), at(3)));
    assert_eq!(test.event.kind.as_str(), "webhook.test");
    let data = format!(r#"{{"org_id":"{}","message":"This is a test. Nothing happened."}}"#, owner.id);
    assert_eq!(test.event.data, data);
    assert_eq!(deliveries(&*store, None).await, std::slice::from_ref(&test));
    assert_eq!(super::event_scene::events(&*store, &owner.id).await.pop(), Some(test.event));
    let operators = store.test_webhook(None, &WebhookId::OPERATOR, NOON).await.unwrap().expect("it exists");
    assert_eq!(operators.event.data, r#"{"message":"This is a test. Nothing happened."}"#);
}
