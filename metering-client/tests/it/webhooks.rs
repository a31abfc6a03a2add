//! The requests of the calls for webhooks, events and the balance's alert.

use metering_client::calls::webhooks::{
    ChangeWebhook, CreateWebhook, DeleteWebhook, DeliveriesPage, EventsPage, GetBalanceAlert, GetWebhook,
    ListDeliveries, ListEvents, ListWebhooks, OfDelivery, OfWebhook, ResendDelivery, RotateWebhook, SetBalanceAlert,
    TestWebhook,
};
use metering_core::events::DeliveryId;
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{
    BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, IssuedWebhookResponse, RotateWebhookRequest,
};

use crate::script::{Script, client, response};

const ID: &str = "we_0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn each_call_about_webhooks_sends_its_request() {
    let (client, script) = client(11);
    let of = OfWebhook { id: ID.to_owned() };
    let deliveries = |state: Option<&str>, limit, after: Option<&str>| DeliveriesPage {
        id: ID.to_owned(),
        state: state.map(str::to_owned),
        event: state.map(|_| "balance.low".to_owned()),
        limit,
        after: after.map(Cursor::new),
    };
    let url = Some("https://a.example/".to_owned());
    client.call::<CreateWebhook>(&(), &CreateWebhookRequest { url: url.clone(), events: None }).await.unwrap();
    let events = Some(vec!["key.leaked".to_owned()]);
    client.call::<CreateWebhook>(&(), &CreateWebhookRequest { url, events }).await.unwrap();
    client.call::<ListWebhooks>(&(), &()).await.unwrap();
    client.call::<GetWebhook>(&of, &()).await.unwrap();
    let change = ChangeWebhookRequest { events: Some(None), disabled: Some(false), ..Default::default() };
    client.call::<ChangeWebhook>(&of, &change).await.unwrap();
    client.call::<RotateWebhook>(&of, &RotateWebhookRequest { grace_seconds: Some(0) }).await.unwrap();
    client.call::<TestWebhook>(&of, &()).await.unwrap();
    client.call::<ListDeliveries>(&deliveries(None, Bounded::default(), None), &()).await.unwrap();
    client.call::<ListDeliveries>(&deliveries(Some("parked"), Bounded(5), Some("a+b&c")), &()).await.unwrap();
    client.call::<ResendDelivery>(&OfDelivery { id: ID.to_owned(), delivery: DeliveryId::new(42) }, &()).await.unwrap();
    client.call::<DeleteWebhook>(&of, &()).await.unwrap();
    let expected = [
        r#"POST /webhooks {"url":"https://a.example/"}"#.to_owned(),
        r#"POST /webhooks {"url":"https://a.example/","events":["key.leaked"]}"#.to_owned(),
        "GET /webhooks ".to_owned(),
        format!("GET /webhooks/{ID} "),
        format!(r#"PATCH /webhooks/{ID} {{"events":null,"disabled":false}}"#),
        format!(r#"POST /webhooks/{ID}/rotate {{"grace_seconds":0}}"#),
        format!("POST /webhooks/{ID}/test "),
        format!("GET /webhooks/{ID}/deliveries?limit=20 "),
        format!("GET /webhooks/{ID}/deliveries?state=parked&event=balance.low&limit=5&after=a%2Bb%26c "),
        format!("POST /webhooks/{ID}/deliveries/42/resend "),
        format!("DELETE /webhooks/{ID} "),
    ];
    assert_eq!(script.sent(), expected);
}

#[tokio::test]
async fn events_and_the_alert_have_their_requests() {
    let (client, script) = client(5);
    client.call::<ListEvents>(&EventsPage { limit: Bounded::default(), after: None }, &()).await.unwrap();
    client.call::<ListEvents>(&EventsPage { limit: Bounded(7), after: Some(Cursor::new("x")) }, &()).await.unwrap();
    client.call::<GetBalanceAlert>(&(), &()).await.unwrap();
    client
        .call::<SetBalanceAlert>(&(), &BalanceAlertRequest { below: Some("0.50".parse().ok()), email: None })
        .await
        .unwrap();
    client.call::<SetBalanceAlert>(&(), &BalanceAlertRequest { below: Some(None), email: None }).await.unwrap();
    let expected = [
        "GET /events?limit=20 ",
        "GET /events?limit=7&after=x ",
        "GET /credits/alert ",
        r#"PUT /credits/alert {"below":0.5}"#,
        r#"PUT /credits/alert {"below":null}"#,
    ];
    assert_eq!(script.sent(), expected);
}

#[tokio::test]
async fn an_issued_secret_is_read_and_not_printed() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = format!(
        r#"{{"secret":"{secret}","data":{{"id":"{ID}","url":"https://a.example/","events":[],"state":"active","old_secret_expires_at":null,"created_at":"2026-11-01T00:00:00.000Z"}}}}"#
    );
    let script = Script::default().then(response(201, &[], body));
    let client = script.client();
    let response = client.call::<CreateWebhook>(&(), &CreateWebhookRequest::default()).await.unwrap();
    let issued: IssuedWebhookResponse = response.json().unwrap();
    assert_eq!(issued.secret.secret().expose().as_str(), secret);
    assert!(!format!("{issued:?}").contains(&secret[6..]));
}
