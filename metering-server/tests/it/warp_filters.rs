//! `MeteringLayer` around warp filters, as described in the page on embedding.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::{
    AccountId, ApiKey, Catalogue, Charged, Clock, MemoryStore, MeteringLayer, NewAccount, Service, ServiceConfig,
    Store, SystemClock, SystemRandomness,
};
use tower::{ServiceBuilder, ServiceExt};
use warp::Filter;

const CATALOGUE: &str = r#"{"market": "M", "version": 1, "endpoints": [
    {"path": "/price/{block}", "method": "GET", "metered": true,
     "params": [{"name": "block", "in": "path", "type": "integer", "required": true}]}]}"#;

/// A store with one account that has one credit, and its key.
async fn store_with_account() -> (Arc<dyn Store>, ApiKey) {
    let store = MemoryStore::new();
    let key = ApiKey::generate(&SystemRandomness);
    let id = AccountId::generate(&SystemRandomness);
    let mut account = NewAccount::new(id, "agent".parse().unwrap(), key.hash(), SystemClock.now());
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, "1".parse().unwrap(), "Free credits")];
    store.create_account(account).await.unwrap();
    (Arc::new(store), key)
}

#[tokio::test]
async fn warp_filter_behind_the_layer_is_charged() {
    let (store, key) = store_with_account().await;
    let service = Arc::new(Service::start(store, Catalogue::from_json(CATALOGUE).unwrap(), ServiceConfig::default()));
    let price = warp::path!("price" / i64)
        .and(warp::ext::get::<Charged>())
        .map(|block: i64, payer: Charged| format!("{block} for {}", payer.amount));
    let health = warp::path!("health").map(|| "ok");
    let metered = ServiceBuilder::new()
        .layer(MeteringLayer::new(Arc::clone(&service)).pass_others())
        .service(warp::service(price.or(health)));
    let bearer = format!("Bearer {}", key.expose());
    // path, with a key, status, body if it comes from the filter
    let table = [
        ("/price/%34%32", true, StatusCode::OK, Some("42 for 0.0001388889")),
        ("/price/42", false, StatusCode::UNAUTHORIZED, None),
        ("/health", false, StatusCode::OK, Some("ok")),
    ];
    for (path, with_key, status, expected) in table {
        let mut request = Request::get(path);
        if with_key {
            request = request.header("authorization", &bearer);
        }
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = metered.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers().contains_key("x-bds-credit-balance"), with_key, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        match expected {
            Some(text) => assert_eq!(body, text),
            None => assert!(body.starts_with(b"{\"error\":\"unauthorized\""), "{body:?}"),
        }
    }
    assert_eq!(service.usage().balance(Some(&key)).await.unwrap().credit_balance.to_string(), "0.9998611111");
}
