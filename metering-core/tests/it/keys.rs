//! Calls of key holders for their keys, on a memory store.

use std::sync::Arc;

use metering_core::access::{Caller, KeyRefusal, Scope};
use metering_core::charging::{IdempotencyKey, Repetition};
use metering_core::wire::{
    ChangeKeyRequest, CreateKeyRequest, ErrorCode, IssuedKeyResponse, LeakedKeyRequest, RotateKeyRequest,
};
use metering_core::{ApiKey, Charge, Error, MemoryStore, Receipt, RequestId, Service};

const GRACE: RotateKeyRequest = RotateKeyRequest { grace_seconds: Some(3_600) };
const AT_ONCE: RotateKeyRequest = RotateKeyRequest { grace_seconds: None };

/// A service, and the first key of an account with two credits.
async fn scene() -> (Service, ApiKey) {
    let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    let (_, key) = service.open_account("my-agent", "2".parse().unwrap()).await.unwrap();
    (service, key)
}

fn create(json: &str) -> CreateKeyRequest {
    serde_json::from_str(json).unwrap()
}

fn change(json: &str) -> ChangeKeyRequest {
    serde_json::from_str(json).unwrap()
}

fn idempotency_key() -> IdempotencyKey {
    IdempotencyKey::parse("8e03978e-40d5-43e8-bc93-6894a57f9324").unwrap()
}

async fn make(service: &Service, key: &ApiKey, json: &str) -> IssuedKeyResponse {
    service.keys().create(Some(key), &create(json), None).await.unwrap()
}

async fn spend(service: &Service, key: &ApiKey, request_id: Option<&str>) -> Result<Receipt, Error> {
    let charge = Charge::new(key, "0.25".parse().unwrap(), "GET", "/price");
    let request_id = request_id.map(|id| RequestId::parse(id).unwrap());
    service.charge(charge.with_request_id(request_id)).await
}

fn is_used_up<T>(result: Result<T, Error>) -> bool {
    let error = result.err().expect("it was refused");
    assert_eq!((error.code(), error.code().status()), (ErrorCode::IdempotencyKeyUsed, 409));
    matches!(error, Error::Repeated(Repetition::UsedUp))
}

#[tokio::test]
async fn a_repeated_creation_gets_the_same_key_and_another_request_gets_another() {
    let (service, key) = scene().await;
    let again = idempotency_key();
    let made = async |json: &str| service.keys().create(Some(&key), &create(json), Some(&again)).await.unwrap();
    let first = made(r#"{"name": "a", "limit": 5}"#).await;
    let repeated = made(r#"{"limit": "5", "name": "a"}"#).await;
    assert_eq!(repeated.data, first.data);
    assert_eq!(repeated.key.key().hash(), first.key.key().hash());
    let other = made(r#"{"name": "a", "limit": "0.5"}"#).await;
    assert_ne!(other.data.id, first.data.id);
    assert_ne!(other.key.key().hash(), first.key.key().hash());
    assert_eq!(other.data.limit, "0.5".parse().ok());
}

#[tokio::test]
async fn a_creation_is_used_up_once_its_key_was_rotated_or_deleted() {
    let (service, key) = scene().await;
    let again = idempotency_key();
    for (name, rotates) in [("rotated", true), ("deleted", false)] {
        let request = create(&format!(r#"{{"name": "{name}"}}"#));
        let made = service.keys().create(Some(&key), &request, Some(&again)).await.unwrap();
        if rotates {
            service.keys().rotate(Some(&key), &made.data.id, &AT_ONCE, None).await.unwrap();
        } else {
            service.keys().delete(Some(&key), &made.data.id).await.unwrap();
        }
        assert!(is_used_up(service.keys().create(Some(&key), &request, Some(&again)).await), "{name}");
    }
}

#[tokio::test]
async fn a_repeated_rotation_gets_the_same_secret_until_the_next_one() {
    let (service, key) = scene().await;
    let again = idempotency_key();
    let made = make(&service, &key, r#"{"name": "a"}"#).await;
    let rotate = || service.keys().rotate(Some(&key), &made.data.id, &AT_ONCE, Some(&again));
    let rotated = rotate().await.unwrap();
    assert_eq!(rotate().await.unwrap().key.key().hash(), rotated.key.key().hash());
    spend(&service, rotated.key.key(), None).await.unwrap();
    assert_eq!(spend(&service, made.key.key(), None).await.unwrap_err().code(), ErrorCode::Unauthorized);
    service.keys().rotate(Some(&key), &made.data.id, &AT_ONCE, None).await.unwrap();
    assert!(is_used_up(rotate().await));
}

#[tokio::test]
async fn a_secret_in_its_grace_period_calls_and_reads_but_does_not_manage() {
    let (service, old) = scene().await;
    let new = service.keys().rotate_current(Some(&old), &GRACE, None).await.unwrap();
    let new = new.api_key.key();
    spend(&service, &old, None).await.unwrap();
    service.usage().balance(Some(&old)).await.unwrap();
    let lacks = |error: Error, lacking: Scope| {
        assert_eq!(error.code(), ErrorCode::KeyScope);
        assert!(matches!(error, Error::KeyNotAllowed(KeyRefusal::Scope { scope }) if scope == lacking), "{error:?}");
    };
    lacks(service.keys().create(Some(&old), &create(r#"{"name": "a"}"#), None).await.unwrap_err(), Scope::Manage);
    lacks(service.keys().list(Some(&old), None, 10).await.unwrap_err(), Scope::Manage);
    lacks(service.keys().rotate_current(Some(&old), &AT_ONCE, None).await.unwrap_err(), Scope::Manage);
    lacks(service.access().authorize(Some(&old), Scope::TopUp).await.unwrap_err(), Scope::TopUp);
    make(&service, new, r#"{"name": "a"}"#).await;
    service.keys().rotate_current(Some(new), &AT_ONCE, None).await.unwrap();
    assert_eq!(spend(&service, &old, None).await.unwrap_err().code(), ErrorCode::Unauthorized);
}

#[tokio::test]
async fn a_report_of_a_replaced_secret_leaves_the_key_alone() {
    let (service, old) = scene().await;
    let new = service.keys().rotate_current(Some(&old), &GRACE, None).await.unwrap();
    let report = |key: &ApiKey| LeakedKeyRequest { key: Some(key.expose().to_owned()) };
    assert!(service.keys().report_leaked(&report(&old)).await.unwrap().disabled);
    assert!(!service.keys().report_leaked(&report(&old)).await.unwrap().disabled);
    assert!(spend(&service, &old, None).await.is_err());
    spend(&service, new.api_key.key(), None).await.unwrap();
    assert!(service.keys().report_leaked(&report(new.api_key.key())).await.unwrap().disabled);
    assert_eq!(spend(&service, new.api_key.key(), None).await.unwrap_err().code(), ErrorCode::Unauthorized);
}

#[tokio::test]
async fn each_key_has_request_ids_of_its_own() {
    let (service, key) = scene().await;
    let made = make(&service, &key, r#"{"name": "a"}"#).await;
    assert!(!spend(&service, &key, Some("order-17")).await.unwrap().repeated);
    assert!(!spend(&service, made.key.key(), Some("order-17")).await.unwrap().repeated);
    let rotated = service.keys().rotate(Some(&key), &made.data.id, &AT_ONCE, None).await.unwrap();
    assert!(spend(&service, rotated.key.key(), Some("order-17")).await.unwrap().repeated);
    assert_eq!(service.usage().balance(Some(&key)).await.unwrap().credit_balance, "1.5".parse().unwrap());
}

#[tokio::test]
async fn charges_of_a_limited_key_are_in_progress_until_their_receipt_is_dropped() {
    let (service, key) = scene().await;
    let made = make(&service, &key, r#"{"name": "a", "max_in_flight": 1}"#).await;
    let receipt = spend(&service, made.key.key(), None).await.unwrap();
    let refused = spend(&service, made.key.key(), None).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooManyRequestsInFlight);
    spend(&service, &key, None).await.unwrap();
    drop(receipt);
    spend(&service, made.key.key(), None).await.unwrap();
}

#[tokio::test]
async fn a_manager_sees_its_own_keys_in_parts_that_are_never_empty_before_the_end() {
    let (service, key) = scene().await;
    let manager = make(&service, &key, r#"{"name": "manager", "scopes": ["call", "read", "manage"]}"#).await;
    let mut expected = vec![manager.data.id.clone()];
    for number in 0..9 {
        make(&service, &key, &format!(r#"{{"name": "sibling {number}"}}"#)).await;
        if number % 4 == 2 {
            expected.push(make(&service, manager.key.key(), r#"{"name": "child"}"#).await.data.id);
        }
    }
    for limit in [1, 2, 3, 100] {
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let part = service.keys().list(Some(manager.key.key()), after.as_deref(), limit).await.unwrap();
            assert!(!part.data.is_empty() || part.next.is_none(), "an empty part looks like the end");
            found.extend(part.data.into_iter().map(|key| key.id));
            after = part.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "limit {limit}");
    }
}

#[tokio::test]
async fn an_empty_list_is_refused_and_null_lifts_a_restriction() {
    let (service, key) = scene().await;
    // field, a value, the value in the document
    let table = [("routes", "/price", "/price"), ("networks", "::ffff:203.0.113.0/120", "203.0.113.0/24")];
    for (field, value, kept) in table {
        let refuses = |result: Result<_, Error>| match result {
            Err(Error::ValidationFailed(fields)) => assert!(fields.contains_key(field), "{fields:?}"),
            other => panic!("{other:?}"),
        };
        let empty = format!(r#"{{"name": "a", "{field}": []}}"#);
        refuses(service.keys().create(Some(&key), &create(&empty), None).await.map(|made| made.data));
        let made = make(&service, &key, &format!(r#"{{"name": "a", "{field}": ["{value}"]}}"#)).await;
        let restricted = [made.data.routes, made.data.networks].concat();
        assert_eq!(restricted, [kept]);
        refuses(service.keys().change(Some(&key), &made.data.id, &change(&empty)).await.map(|changed| changed.data));
        let null = change(&format!(r#"{{"{field}": null}}"#));
        let lifted = service.keys().change(Some(&key), &made.data.id, &null).await.unwrap().data;
        assert_eq!([lifted.routes, lifted.networks].concat(), Vec::<String>::new(), "{field}");
    }
    let typo = service.keys().create(Some(&key), &create(r#"{"name": "a", "networks": ["10.1.2.3/8"]}"#), None).await;
    let Err(Error::ValidationFailed(fields)) = typo else { panic!("{typo:?}") };
    assert!(fields["networks"].contains("10.0.0.0/8"), "{fields:?}");
}

#[tokio::test]
async fn a_deleted_key_takes_the_keys_below_it_along() {
    let (service, key) = scene().await;
    let manager = make(&service, &key, r#"{"name": "manager", "scopes": ["call", "read", "manage"]}"#).await;
    let child = make(&service, manager.key.key(), r#"{"name": "child", "networks": ["10.0.0.0/8"]}"#).await;
    let elsewhere = || Caller { address: "192.0.2.1".parse().ok(), ..Caller::from(child.key.key()) };
    assert_eq!(service.access().authenticate(elsewhere()).await.unwrap_err().code(), ErrorCode::KeyNetwork);
    let disabled = change(r#"{"disabled": true}"#);
    service.keys().change(Some(&key), &manager.data.id, &disabled).await.unwrap();
    let refused = service.access().authenticate(elsewhere()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unauthorized, "a caller without a live key learns nothing about it");
    service.keys().delete(Some(&key), &manager.data.id).await.unwrap();
    for id in [&manager.data.id, &child.data.id] {
        assert!(matches!(service.keys().get(Some(&key), id).await, Err(Error::NoSuchKey)), "{id}");
    }
    assert_eq!(service.keys().list(Some(&key), None, 10).await.unwrap().data.len(), 1);
}
