//! Requests that another service serves and charges here, with payments that it passes on.

use metering_core::Error;
use metering_core::service::{PaymentNotice, RequestPayment};
use metering_core::wire::{DeductRequest, HoldRequest};
use metering_pay::offers::{PayRefusal, SignedAuthorization};
use serde_json::{Value, json};

use super::scene::{LARGE, SMALL, Scene, accepted, encoded, payment};

const QUOTE: &str = r#"{"path": "/quote?symbol=ETH", "method": "get"}"#;

fn quote() -> DeductRequest {
    serde_json::from_str(QUOTE).unwrap()
}

fn hold(amount: &str) -> HoldRequest {
    let terms = serde_json::from_value(json!({"amount": amount})).unwrap();
    HoldRequest { of: quote(), terms }
}

impl Scene {
    /// The payment as the headers of a request have it.
    fn presented(&self, signed: &SignedAuthorization) -> Box<dyn RequestPayment> {
        let header = payment(&accepted(signed), signed);
        let read = |name| (name == "payment-signature").then_some(header.as_bytes());
        self.service.offers().read(read).unwrap().unwrap()
    }

    fn notice(&self, error: &Error, presented: Option<&dyn RequestPayment>) -> PaymentNotice {
        self.service.offers().notice(error, self.service.resource_of(&quote()), presented)
    }
}

/// The JSON of a header of a notice; null if it has none.
fn header(notice: &PaymentNotice, name: &str) -> Value {
    let found = notice.headers.iter().find(|(found, _)| *found == name);
    found.map_or(Value::Null, |(_, value)| super::scene::json_of(value.as_bytes()))
}

#[tokio::test(start_paused = true)]
async fn a_deduction_without_credits_offers_what_the_route_does() {
    let scene = Scene::new().await;
    let error = scene.service.deduct(Some(&scene.key), &quote(), None).await.unwrap_err();
    let notice = scene.notice(&error, None);
    let required = header(&notice, "payment-required");
    assert_eq!(required["resource"]["url"], "https://api.example/quote");
    assert_eq!(required["resource"]["description"], "A quote");
    assert_eq!(required["extensions"]["bazaar"]["info"]["input"]["method"], "GET");
    assert_eq!(required["accepts"].as_array().map(Vec::len), Some(2));
    assert!(notice.offers.is_some());
    // A path that the catalogue does not have is offered too: it has the default price.
    let other: DeductRequest = serde_json::from_str(r#"{"path": "else/where", "method": "POST"}"#).unwrap();
    let asked = scene.service.resource_of(&other);
    assert_eq!((asked.url.as_str(), asked.route), ("https://api.example/else/where", None));
}

#[tokio::test(start_paused = true)]
async fn a_payment_is_credited_before_the_deduction() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    let presented = scene.presented(&signed);
    let receipt = scene.service.deduct(Some(&scene.key), &quote(), Some(&*presented)).await.unwrap();
    assert_eq!((receipt.charged.to_string(), receipt.balance.to_string()), ("0.02".to_owned(), "0.03".to_owned()));
    let (name, value) = presented.receipt_of_charge(receipt.balance).unwrap();
    assert_eq!(name, "payment-response");
    let settled = super::scene::json_of(value.as_bytes());
    assert_eq!((&settled["success"], &settled["extra"]["credit_balance"]), (&json!(true), &json!("0.03")));
    assert_eq!(settled["extra"]["account"], scene.account.as_str());
    // The same payment again is only a deduction.
    let again = scene.service.deduct(Some(&scene.key), &quote(), Some(&*scene.presented(&signed))).await.unwrap();
    assert_eq!(again.balance.to_string(), "0.01");
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_payment_is_credited_before_the_hold() {
    let scene = Scene::new().await;
    let error = scene.service.hold_for(Some(&scene.key), &hold("0.3"), None).await.unwrap_err();
    let offered = header(&scene.notice(&error, None), "payment-required");
    assert_eq!(offered["accepts"].as_array().map(Vec::len), Some(1), "the offer covers the hold: {offered}");
    let presented = scene.presented(&scene.signed(1, LARGE, 1));
    let held = scene.service.hold_for(Some(&scene.key), &hold("0.3"), Some(&*presented)).await.unwrap();
    assert_eq!((held.changed, held.credit_balance.to_string()), (true, "0.2".to_owned()));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn payments_that_cannot_be_taken_are_refused_as_at_routes() {
    let scene = Scene::new().await;
    let presented = scene.presented(&scene.signed(1, SMALL, 1));
    // Too little for the hold: nothing is taken, and a sufficient amount is offered.
    let error = scene.service.hold_for(Some(&scene.key), &hold("0.3"), Some(&*presented)).await.unwrap_err();
    assert!(matches!(PayRefusal::of(&error), Some(PayRefusal::TooLittle { .. })), "{error:?}");
    let notice = scene.notice(&error, Some(&*presented));
    assert_eq!(header(&notice, "payment-response")["success"], false);
    assert_eq!(header(&notice, "payment-required")["accepts"][0]["amount"], "500000");
    // Without a key there is no account to credit, and a request that is not valid cannot be paid for.
    assert!(matches!(scene.service.deduct(None, &quote(), Some(&*presented)).await, Err(Error::Unauthorized)));
    let invalid: DeductRequest =
        serde_json::from_str(r#"{"path": "/quote", "method": "GET", "lookback_seconds": 1, "request_id": ""}"#)
            .unwrap();
    let refused = scene.service.deduct(Some(&scene.key), &invalid, Some(&*presented)).await;
    assert!(matches!(refused, Err(Error::ValidationFailed(_))), "{refused:?}");
    assert_eq!(scene.received(), 0);
    // An unreadable one.
    let text = encoded(&json!({"x402Version": 2}));
    let read = |name| (name == "payment-signature").then_some(text.as_bytes());
    let error = scene.service.offers().read(read).unwrap_err();
    assert_eq!(error.code().status(), 400);
    assert!(scene.notice(&error, None).offers.is_none());
}
