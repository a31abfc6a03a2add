use super::*;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn null_differs_from_a_field_that_is_left_out() {
    let read = |json: &str| serde_json::from_str::<BalanceAlertRequest>(json).unwrap().below;
    assert_eq!(read(r#"{"below": null}"#), Some(None));
    assert_eq!(read("{}"), None);
    assert_eq!(read(r#"{"below": "0.5"}"#), Some("0.5".parse().ok()));
    let read = |json: &str| serde_json::from_str::<ChangeWebhookRequest>(json).unwrap().events;
    assert_eq!((read(r#"{"events": null}"#), read("{}")), (Some(None), None));
}

#[test]
fn debug_output_shows_neither_secrets_nor_urls() {
    let create: CreateWebhookRequest = serde_json::from_str(r#"{"url": "https://a.example/s3cret"}"#).unwrap();
    let change: ChangeWebhookRequest = serde_json::from_str(r#"{"url": "https://a.example/s3cret"}"#).unwrap();
    let issued = IssuedWebhookSecret(WebhookSecret::parse(SECRET).unwrap());
    let printed = format!("{create:?} {change:?} {issued:?}");
    assert!(!printed.contains("s3cret") && !printed.contains(&SECRET[6..]), "{printed}");
    let text = serde_json::to_string(&issued).unwrap();
    assert_eq!(text, format!("\"{SECRET}\""));
    assert_eq!(serde_json::from_str::<IssuedWebhookSecret>(&text).unwrap(), issued);
}

#[test]
fn an_event_keeps_the_digits_of_its_data() {
    let text = concat!(
        r#"{"id":"evt_1","type":"balance.low","timestamp":"2026-11-21T12:00:00.000Z","#,
        r#""data":{"balance":0.0000000003}}"#
    );
    let event: EventDocument = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), text);
}
