//! What the methods about webhooks, events and the balance's alert send.

use std::sync::Arc;

use metering_client::Client;
use metering_core::ClientSource;
use metering_core::events::{DeliveryId, DeliveryState, WebhookId};
use metering_core::wire::{
    BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, IssuedWebhookResponse, RotateWebhookRequest,
};

use crate::script::{Script, response};

const ID: &str = "we_0123456789abcdef0123456789abcdef";

/// A client of a service that responds to so many requests.
fn client(responses: usize) -> (Client, Script) {
    let script = (0..responses).fold(Script::default(), |script, _| script.then(response(200, &[], "{}")));
    (Client::new(Arc::new(script.clone()), ClientSource::Cli), script)
}

/// Method, target and body of each request.
fn sent(script: &Script) -> Vec<String> {
    let line = |request: http::Request<bytes::Bytes>| {
        format!("{} {} {}", request.method(), request.uri(), String::from_utf8_lossy(request.body()))
    };
    script.requests().into_iter().map(line).collect()
}

#[tokio::test]
async fn each_method_about_webhooks_sends_its_request() {
    let (client, script) = client(11);
    let id: WebhookId = ID.parse().unwrap();
    let url = Some("https://a.example/".to_owned());
    client.create_webhook(&CreateWebhookRequest { url: url.clone(), events: None }).await.unwrap();
    let events = Some(vec!["key.leaked".to_owned()]);
    client.create_webhook(&CreateWebhookRequest { url, events }).await.unwrap();
    client.webhooks().await.unwrap();
    client.webhook(&id).await.unwrap();
    let change = ChangeWebhookRequest { events: Some(None), disabled: Some(false), ..Default::default() };
    client.change_webhook(&id, &change).await.unwrap();
    client.rotate_webhook(&id, &RotateWebhookRequest { grace_seconds: Some(0) }).await.unwrap();
    client.test_webhook(&id).await.unwrap();
    client.deliveries(&id, None, None, None).await.unwrap();
    client.deliveries(&id, Some(DeliveryState::Parked), Some(5), Some("a+b&c")).await.unwrap();
    client.resend(&id, DeliveryId::new(42)).await.unwrap();
    client.delete_webhook(&id).await.unwrap();
    let expected = [
        r#"POST /webhooks {"url":"https://a.example/"}"#.to_owned(),
        r#"POST /webhooks {"url":"https://a.example/","events":["key.leaked"]}"#.to_owned(),
        "GET /webhooks ".to_owned(),
        format!("GET /webhooks/{ID} "),
        format!(r#"PATCH /webhooks/{ID} {{"events":null,"disabled":false}}"#),
        format!(r#"POST /webhooks/{ID}/rotate {{"grace_seconds":0}}"#),
        format!("POST /webhooks/{ID}/test "),
        format!("GET /webhooks/{ID}/deliveries "),
        format!("GET /webhooks/{ID}/deliveries?state=parked&limit=5&after=a%2Bb%26c "),
        format!("POST /webhooks/{ID}/deliveries/42/resend "),
        format!("DELETE /webhooks/{ID} "),
    ];
    assert_eq!(sent(&script), expected);
}

#[tokio::test]
async fn events_and_the_alert_have_their_requests() {
    let (client, script) = client(5);
    client.account_events(None, None).await.unwrap();
    client.account_events(Some(7), Some("x")).await.unwrap();
    client.balance_alert().await.unwrap();
    client.set_balance_alert(&BalanceAlertRequest { below: Some("0.50".parse().ok()) }).await.unwrap();
    client.set_balance_alert(&BalanceAlertRequest { below: Some(None) }).await.unwrap();
    let expected = [
        "GET /events ",
        "GET /events?limit=7&after=x ",
        "GET /credits/alert ",
        r#"PUT /credits/alert {"below":0.5}"#,
        r#"PUT /credits/alert {"below":null}"#,
    ];
    assert_eq!(sent(&script), expected);
}

#[tokio::test]
async fn an_issued_secret_is_read_and_not_printed() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = format!(
        r#"{{"secret":"{secret}","data":{{"id":"{ID}","url":"https://a.example/","events":[],"state":"active","old_secret_expires_at":null,"created_at":"2026-11-01T00:00:00.000Z"}}}}"#
    );
    let script = Script::default().then(response(201, &[], body));
    let client = Client::new(Arc::new(script), ClientSource::Cli);
    let response = client.create_webhook(&CreateWebhookRequest::default()).await.unwrap();
    let issued: IssuedWebhookResponse = response.json().unwrap();
    assert_eq!(issued.secret.secret().expose().as_str(), secret);
    assert!(!format!("{issued:?}").contains(&secret[6..]));
}
