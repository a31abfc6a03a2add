//! Plans sold by card: the effect of Stripe's events, in any order and repeated, with a simulated API and signatures by
//! Stripe's own library.

use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use metering_tests::stripe::{KEY, Stripe};
use serde_json::{Value, json};

use crate::support::wire::balance;

const SECRET: &str = "whsec_of_the_tests";

pub(super) struct Shop {
    pub(super) stripe: Stripe,
    pub(super) account: IssuedAccount,
    pub(super) server: Server,
    pub(super) site: Site,
}

impl Shop {
    /// `None` if these tests are disabled.
    pub(super) fn open() -> Option<Self> {
        let stripe = Stripe::start()?;
        let site = Site::new();
        let account = site.account("0");
        let config = format!(
            "public_url = 'http://api.acme.example'\n[stripe]\nkey = '{KEY}'\napi_base = '{}'\n\
             webhook_secret = \"{SECRET}\\nwhsec_before_that\"\n[[stripe.plans]]\nid = 'starter'\nlabel = 'Starter'\n\
             credits = 100\namount = '10.00'\ncurrency = 'EUR'\n",
            stripe.url()
        );
        let file = site.write("metering.toml", &config);
        let server = site.server().args(["--config", file.to_str().unwrap()]).start();
        Some(Self { stripe, account, server, site })
    }

    pub(super) fn customer(&self) -> Client {
        self.server.client_with(&self.account.api_key)
    }

    fn checkout(&self) -> Value {
        self.customer().post("/credits/checkout", &json!({"plan_id": "starter"})).expect(200).json()
    }

    /// A paid session, as its event has it.
    fn paid(&self) -> Value {
        self.stripe.act("pay", &json!({"session": self.checkout()["session_id"]}))
    }

    pub(super) fn refund(&self, session: &Value, amount: u64) -> Value {
        self.stripe.act("refund", &json!({"payment_intent": session["payment_intent"], "amount": amount}))
    }

    /// Sends an event, signed now.
    fn event(&self, kind: &str, object: &Value) -> Response {
        self.signed(kind, object, &[SECRET])
    }

    fn signed(&self, kind: &str, object: &Value, secrets: &[&str]) -> Response {
        let event = json!({"id": "evt_1", "object": "event", "type": kind, "data": {"object": object}}).to_string();
        self.sent(&event, &self.stripe.sign(&event, secrets))
    }

    fn sent(&self, event: &str, signature: &str) -> Response {
        let client = self.server.client().with_header("Stripe-Signature", signature);
        client.send("POST", "/stripe/webhook", Some(event.as_bytes()))
    }

    /// An event of a dispute that is as the event says.
    fn disputed(&self, kind: &str, dispute: &Value) {
        self.taken(kind, &self.stripe.act("dispute", dispute));
    }

    pub(super) fn taken(&self, kind: &str, object: &Value) {
        let response = self.event(kind, object);
        assert_eq!(response.status, 200, "{kind}: {}", response.text());
    }

    pub(super) fn balance(&self) -> String {
        balance(&self.customer())
    }
}

fn dispute(session: &Value, status: &str) -> Value {
    json!({"id": "du_1", "object": "dispute", "amount": 1000, "currency": "eur", "status": status, "reason": "fraudulent",
        "charge": "ch_1", "payment_intent": session["payment_intent"]})
}

#[test]
fn paid_checkout_is_credited_once() {
    let Some(shop) = Shop::open() else { return };
    let plans = shop.server.client().get("/credits/plans").expect(200).json();
    let plan = json!({"id": "starter", "label": "Starter", "credits": 100, "amount": "10.00", "currency": "EUR"});
    assert_eq!(plans["cards"], json!([plan]));
    let checkout = shop.checkout();
    assert!(checkout["url"].as_str().unwrap().starts_with("https://checkout.stripe.com/"), "{checkout}");
    let session = shop.stripe.act("pay", &json!({"session": checkout["session_id"], "status": "unpaid"}));
    let returned = "http://api.acme.example/metering/account?checkout=paid#top-up";
    assert_eq!(
        (&session["client_reference_id"], &session["success_url"]),
        (&json!(shop.account.org_id), &json!(returned))
    );
    shop.taken("checkout.session.completed", &session);
    assert_eq!(shop.balance(), "0", "a bank transfer is under way");
    shop.taken("checkout.session.async_payment_failed", &session);
    let session = shop.stripe.act("pay", &json!({"session": checkout["session_id"]}));
    for kind in ["checkout.session.async_payment_succeeded", "checkout.session.completed", "checkout.session.completed"]
    {
        shop.taken(kind, &session);
        assert_eq!(shop.balance(), "100");
    }
    let receipt = shop.customer().get("/credits/receipts?limit=2").expect(200).json()["receipts"].clone();
    assert_eq!(receipt.as_array().unwrap().len(), 1);
    let payment = &receipt[0]["payment"];
    let shown = ["processor", "processor_id", "token_amount", "token_symbol"].map(|name| payment[name].clone());
    assert_eq!(json!(shown), json!(["stripe", session["payment_intent"], "10", "EUR"]));
}

#[test]
fn retried_checkout_is_the_same_one() {
    let Some(shop) = Shop::open() else { return };
    let client = shop.customer().with_header("Idempotency-Key", "\"one\"");
    let [first, second] =
        [(); 2].map(|()| client.post("/credits/checkout", &json!({"plan_id": "starter"})).expect(200).json());
    assert_eq!(first, second);
    assert_ne!(first, shop.checkout());
    let other = shop.server.client_with(&shop.site.account("0").api_key).with_header("Idempotency-Key", "\"one\"");
    let others = other.post("/credits/checkout", &json!({"plan_id": "starter"})).expect(200).json();
    assert_ne!(first, others, "another account has its own keys");
    assert_eq!(shop.stripe.act("sessions", &json!({}))["count"], 3);
    let unknown = shop.customer().post("/credits/checkout", &json!({"plan_id": "none"})).expect(400);
    assert_eq!(unknown.error(), "unknown_plan");
    assert_eq!(
        shop.server.client().post("/credits/checkout", &json!({"plan_id": "starter"})).expect(401).error(),
        "unauthorized"
    );
    let _ = shop.stripe.act("fail", &json!({"statuses": [500]}));
    let failed = shop.customer().post("/credits/checkout", &json!({"plan_id": "starter"})).expect(502);
    assert_eq!((failed.error(), failed.header("retry-after")), ("upstream_unreachable".to_owned(), Some("5")));
}

#[test]
fn only_what_stripe_signed_counts() {
    let Some(shop) = Shop::open() else { return };
    let session = shop.paid();
    let event = json!({"id": "evt_1", "type": "checkout.session.completed", "data": {"object": session}}).to_string();
    let signature = shop.stripe.sign(&event, &[SECRET]);
    let old = shop.stripe.act("sign", &json!({"payload": event, "secrets": [SECRET], "timestamp": 1_600_000_000}));
    let other = shop.stripe.sign(&event, &["whsec_of_another"]);
    for (body, signature) in [
        (event.as_str(), ""),
        (&event.replace("1000", "1001"), &signature),
        (&event, old["header"].as_str().unwrap()),
        (&event, &other),
    ] {
        assert_eq!(shop.sent(body, signature).expect(403).error(), "forbidden", "{signature}");
    }
    assert_eq!(shop.balance(), "0");
    // While a secret is rolled, Stripe signs with both, and so may the service have both.
    for secrets in [["whsec_of_another", "whsec_before_that"], ["whsec_of_another", SECRET]] {
        let _ = shop.signed("checkout.session.completed", &session, &secrets).expect(200);
    }
    assert_eq!(shop.balance(), "100");
}

#[test]
fn sessions_on_other_terms_or_of_others_are_not_credited() {
    let Some(shop) = Shop::open() else { return };
    // what differs, the response's status
    let table = [
        (json!({"amount_total": 999}), 409),
        (json!({"currency": "usd"}), 409),
        (json!({"client_reference_id": "org_00000000000000000000"}), 409),
        (json!({"payment_status": "no_payment_required"}), 200),
        (json!({"metadata": {}}), 200),
        (json!({"metadata": null}), 200),
    ];
    for (changes, status) in table {
        let mut session = shop.paid();
        let changed = session.as_object_mut().unwrap();
        changed.extend(changes.as_object().unwrap().clone());
        let response = shop.event("checkout.session.completed", &session);
        assert_eq!(response.status, status, "{changes}: {}", response.text());
    }
    shop.taken("payment_intent.created", &json!({"id": "pi_1"}));
    assert_eq!(shop.event("checkout.session.completed", &json!({"id": 7})).expect(400).error(), "validation_failed");
    assert_eq!(shop.balance(), "0");
}

#[test]
fn refunds_take_their_part_in_any_order() {
    let Some(shop) = Shop::open() else { return };
    let session = shop.paid();
    let first = shop.refund(&session, 250);
    // Before the payment itself: the server requests it from Stripe.
    shop.taken("refund.created", &first);
    assert_eq!(shop.balance(), "75");
    shop.taken("checkout.session.completed", &session);
    shop.taken("refund.updated", &first);
    assert_eq!(shop.balance(), "75");
    let others = [250, 250].map(|amount| shop.refund(&session, amount));
    // The charge has no list of its refunds.
    shop.taken(
        "charge.refunded",
        &json!({"id": "ch_1", "object": "charge", "payment_intent": session["payment_intent"]}),
    );
    assert_eq!(shop.balance(), "25");
    let failed = shop.stripe.act("refund", &json!({"id": others[1]["id"], "status": "failed"}));
    shop.taken("refund.failed", &failed);
    assert_eq!(shop.balance(), "50");
    // Late events change nothing.
    shop.taken("refund.created", &others[1]);
    assert_eq!(shop.balance(), "50");
    let mut foreign = shop.refund(&session, 1);
    foreign["currency"] = json!("usd");
    assert_eq!(shop.event("refund.created", &foreign).expect(400).error(), "validation_failed");
    assert_eq!(shop.balance(), "50", "its part of the payment is unknown");
    assert_eq!(shop.site.admin(&["verify"]).code, Some(0));
}

#[test]
fn disputes_are_a_debt_until_they_are_won() {
    let Some(shop) = Shop::open() else { return };
    let session = shop.paid();
    shop.taken("checkout.session.completed", &session);
    shop.disputed("charge.dispute.created", &dispute(&session, "warning_needs_response"));
    assert_eq!(shop.balance(), "100", "an inquiry withdraws nothing");
    shop.disputed("charge.dispute.funds_withdrawn", &dispute(&session, "needs_response"));
    shop.disputed("charge.dispute.created", &dispute(&session, "needs_response"));
    assert_eq!(shop.balance(), "0");
    let events = shop.customer().get("/events?limit=5").expect(200).text();
    assert!(events.contains("payment.reversed"), "{events}");
    shop.disputed("charge.dispute.funds_reinstated", &dispute(&session, "won"));
    for kind in ["charge.dispute.closed", "charge.dispute.created"] {
        let late = if kind == "charge.dispute.closed" { "won" } else { "needs_response" };
        shop.taken(kind, &dispute(&session, late));
        assert_eq!(shop.balance(), "100");
    }
    // It is lost after all, and an event of its end arrives late.
    for kind in ["charge.dispute.closed", "charge.dispute.funds_withdrawn"] {
        shop.disputed(kind, &dispute(&session, "lost"));
        assert_eq!(shop.balance(), "0");
    }
    shop.taken("charge.dispute.closed", &dispute(&session, "won"));
    assert_eq!(shop.balance(), "0");
    shop.disputed("charge.dispute.closed", &dispute(&session, "won"));
    assert_eq!(shop.balance(), "100");
    // Of more than was paid, and in another currency: all is taken back.
    let second = shop.paid();
    shop.taken("checkout.session.completed", &second);
    let mut large = dispute(&second, "lost");
    (large["id"], large["amount"], large["currency"]) = (json!("du_2"), json!(1234), json!("usd"));
    for _ in 0..2 {
        shop.disputed("charge.dispute.closed", &large);
        assert_eq!(shop.balance(), "100");
    }
}

#[test]
fn reversals_of_others_payments_are_taken_and_change_nothing() {
    let Some(shop) = Shop::open() else { return };
    let foreign = json!({"payment_intent": "pi_of_another_shop"});
    shop.taken("charge.dispute.created", &dispute(&foreign, "needs_response"));
    let refund = shop.refund(&foreign, 100);
    let _ = shop.stripe.act("fail", &json!({"statuses": [500]}));
    // It could be ours: Stripe sends it again.
    assert_eq!(shop.event("refund.created", &refund).expect(502).error(), "upstream_unreachable");
    shop.taken("refund.created", &refund);
    assert_eq!(shop.balance(), "0");
}

#[test]
fn without_stripe_there_are_no_cards() {
    let (_site, account, server) = Site::serving("0");
    assert_eq!(server.client().get("/credits/plans").expect(200).json().get("cards"), None);
    for path in ["/credits/checkout", "/stripe/webhook"] {
        let refused = server.client_with(&account.api_key).post(path, &json!({"plan_id": "starter"})).expect(404);
        assert_eq!(refused.error(), "not_found", "{path}");
    }
}
