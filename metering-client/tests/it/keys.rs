//! The requests of the keys API's calls.

use metering_client::ClientError;
use metering_client::calls::keys::{
    ChangeKey, CreateKey, DeleteKey, GetKey, KeysPage, ListKeys, OfKey, OfNamedKey, ReportLeaked, RotateCurrentKey,
    RotateKey,
};
use metering_core::charging::IdempotencyKey;
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest, LeakedKeyRequest, RotateKeyRequest};
use metering_core::{ApiKey, SystemRandomness};

use crate::script::{Script, client, response};

const ID: &str = "key_0123456789abcdef0123";

fn named() -> OfNamedKey {
    OfNamedKey { id: ID.to_owned() }
}

#[tokio::test]
async fn each_call_sends_its_request() {
    let (client, script) = client(10);
    let (of, named) = (OfKey { id: ID.to_owned() }, named());
    let page = KeysPage { limit: Bounded(2), after: Some(Cursor::new("a+b&c")) };
    let new = CreateKeyRequest { name: Some("sub".to_owned()), limit: "0.50".parse().ok(), ..Default::default() };
    client.call::<CreateKey>(&(), &new).await.unwrap();
    client.call::<ListKeys>(&KeysPage { limit: Bounded::MAX, after: None }, &()).await.unwrap();
    client.call::<ListKeys>(&page, &()).await.unwrap();
    client.call::<GetKey>(&of, &()).await.unwrap();
    client.call::<GetKey>(&OfKey::current(), &()).await.unwrap();
    let change = ChangeKeyRequest { limit: Some(None), disabled: Some(true), ..Default::default() };
    client.call::<ChangeKey>(&of, &change).await.unwrap();
    client.call::<DeleteKey>(&named, &()).await.unwrap();
    client.call::<RotateKey>(&named, &RotateKeyRequest { grace_seconds: Some(60) }).await.unwrap();
    client.call::<RotateKey>(&named, &RotateKeyRequest::default()).await.unwrap();
    client.call::<RotateCurrentKey>(&(), &RotateKeyRequest::default()).await.unwrap();
    let expected = [
        r#"POST /keys {"name":"sub","limit":0.5}"#.to_owned(),
        "GET /keys?limit=100 ".to_owned(),
        "GET /keys?limit=2&after=a%2Bb%26c ".to_owned(),
        format!("GET /keys/{ID} "),
        "GET /keys/current ".to_owned(),
        format!(r#"PATCH /keys/{ID} {{"limit":null,"disabled":true}}"#),
        format!("DELETE /keys/{ID} "),
        format!(r#"POST /keys/{ID}/rotate {{"grace_seconds":60}}"#),
        format!("POST /keys/{ID}/rotate {{}}"),
        "POST /keys/current/rotate {}".to_owned(),
    ];
    assert_eq!(script.sent(), expected);
}

#[tokio::test]
async fn leaked_key_goes_into_the_body_and_into_no_header() {
    let (client, script) = client(1);
    let leaked = ApiKey::generate(&SystemRandomness);
    let body = LeakedKeyRequest { key: Some(leaked.expose().to_owned()) };
    client.call::<ReportLeaked>(&(), &body).await.unwrap();
    let requests = script.requests();
    assert!(!format!("{:?}", requests[0].headers()).contains(leaked.expose()));
    let body: serde_json::Value = serde_json::from_slice(requests[0].body()).unwrap();
    assert_eq!((requests[0].uri().path(), &body["key"]), ("/keys/leaked", &leaked.expose().into()));
}

#[tokio::test]
async fn idempotency_key_is_sent_with_requests_that_issue_a_secret() {
    let (client, script) = client(2);
    let text = "5f0c7d3aa1b24c6e9d8f7a6b5c4d3e2f";
    let client = client.with_idempotency_key(IdempotencyKey::parse(text).unwrap());
    client.call::<CreateKey>(&(), &CreateKeyRequest::default()).await.unwrap();
    client.call::<RotateKey>(&named(), &RotateKeyRequest::default()).await.unwrap();
    for request in script.requests() {
        assert!(request.headers()["idempotency-key"].to_str().unwrap().contains(text), "{:?}", request.headers());
    }
}

#[tokio::test]
async fn refusals_are_errors() {
    let body = r#"{"error":{"code":"key_scope","message":"no"}}"#;
    let script = Script::default().then(response(403, &[], body));
    let client = script.client();
    let error = client.call::<GetKey>(&OfKey::current(), &()).await.unwrap_err();
    let ClientError::Refused(refusal) = error else { panic!("{error:?}") };
    assert_eq!(refusal.status, 403);
}
