//! The calls of an account's holder for its child accounts.

use std::sync::Arc;

use metering_core::access::RateLimits;
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{ChangeChildRequest, CreateChildRequest, ErrorCode};
use metering_core::{ApiKey, Catalogue, Error, Service, ServiceConfig, Store};
use metering_sqlite::SqliteStore;

/// A service where an account may have one child, and the first key of an account.
async fn scene() -> (Service, ApiKey) {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let config = ServiceConfig { max_child_accounts: 1, ..ServiceConfig::default() };
    let service = Service::start(store.clone(), Catalogue::default(), config).with_child_accounts(store.clone());
    let (parent, key) = service.open_account("reseller", "5".parse().unwrap()).await.unwrap();
    store.set_token_limit(&parent.id, 1_000).await.unwrap();
    (service, key)
}

fn named(name: &str) -> CreateChildRequest {
    CreateChildRequest { agent_name: Some(name.to_owned()), rate_limits: None }
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[tokio::test]
async fn a_repeated_creation_gets_the_first_account_and_key() {
    let (service, key) = scene().await;
    let once = IdempotencyKey::parse("8e03978e-40d5-43e8-bc93-6894a57f9324").unwrap();
    let create = async |name| service.child_accounts().create(&key, &named(name), Some(&once)).await;
    let (first, again) = tokio::join!(create("customer"), create("customer"));
    let (first, again) = (first.unwrap(), again.unwrap());
    assert_eq!(first.data, again.data);
    assert_eq!(first.api_key.key().hash(), again.api_key.key().hash());
    assert_eq!(code(create("other").await), Some(ErrorCode::IdempotencyKeyUsed));
    service.child_accounts().rotate(&key, &first.data.org_id).await.unwrap();
    assert_eq!(code(create("customer").await), Some(ErrorCode::IdempotencyKeyUsed), "its key was replaced");
    service.child_accounts().close(&key, &first.data.org_id).await.unwrap();
    assert_eq!(code(create("customer").await), Some(ErrorCode::IdempotencyKeyUsed), "it is closed");
}

#[tokio::test]
async fn a_childs_limits_change_to_at_most_its_parents() {
    let (service, key) = scene().await;
    let child = service.child_accounts().create(&key, &named("customer"), None).await.unwrap().data.org_id;
    let to = |limits| ChangeChildRequest { rate_limits: limits, tokens_per_minute: None };
    let change = async |limits| service.child_accounts().change(&key, &child, &to(limits)).await;
    let lower = RateLimits::per_minute(60).and_per_day(1_000);
    assert_eq!(change(Some(lower)).await.unwrap().data.rate_limits, lower);
    for limits in [None, Some(RateLimits::NONE), Some(RateLimits::per_minute(241).and_per_day(1))] {
        assert_eq!(code(change(limits).await), Some(ErrorCode::ValidationFailed), "{limits:?}");
    }
    assert_eq!(service.child_accounts().get(&key, &child).await.unwrap().data.rate_limits, lower);
    service.child_accounts().close(&key, &child).await.unwrap();
    assert_eq!(code(change(Some(lower)).await), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_childs_tokens_are_limited_to_at_most_its_parents() {
    let (service, key) = scene().await;
    let child = service.child_accounts().create(&key, &named("customer"), None).await.unwrap().data;
    assert_eq!(child.tokens_per_minute, 1_000, "as its parent");
    let change = async |limits, tokens| {
        let request = ChangeChildRequest { rate_limits: limits, tokens_per_minute: Some(tokens) };
        service.child_accounts().change(&key, &child.org_id, &request).await
    };
    assert_eq!(change(None, 200).await.unwrap().data.tokens_per_minute, 200);
    let lower = RateLimits::per_minute(60).and_per_day(1_000);
    for tokens in [0, 1_001] {
        assert_eq!(code(change(Some(lower), tokens).await), Some(ErrorCode::ValidationFailed), "{tokens}");
    }
    let changed = service.child_accounts().get(&key, &child.org_id).await.unwrap().data;
    assert_eq!((changed.rate_limits, changed.tokens_per_minute), (child.rate_limits, 200), "nothing was changed");
    let both = change(Some(lower), 300).await.unwrap().data;
    assert_eq!((both.rate_limits, both.tokens_per_minute), (lower, 300));
}
