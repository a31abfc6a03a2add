//! Automatic top-ups with a saved card, with a stand-in for Stripe's API.

use metering_tests::response::Response;
use serde_json::{Value, json};

use super::cards::Shop;
use crate::support::wait::until;

/// A shop whose customer has bought a plan of 100 credits, and saved the card.
struct Saved {
    shop: Shop,
    session: Value,
}

impl Saved {
    /// `None` if these tests are disabled.
    fn open() -> Option<Self> {
        let shop = Shop::open()?;
        let wanted = json!({"plan_id": "starter", "save_card": true});
        let checkout = shop.customer().post("/credits/checkout", &wanted).expect(200).json();
        let session = shop.stripe.act("pay", &json!({"session": checkout["session_id"]}));
        shop.taken("checkout.session.completed", &session);
        Some(Self { shop, session })
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let body = body.map(Value::to_string);
        self.shop.customer().send(method, path, body.as_ref().map(String::as_bytes))
    }

    fn settings(&self) -> Value {
        self.send("GET", "/credits/auto-top-up", None).expect(200).json()
    }

    /// Buys the plan below 50 credits, twice a month.
    fn turn_on(&self) -> Value {
        let rule = json!({"plan_id": "starter", "threshold": 50, "monthly_limit": "20.00"});
        self.send("PUT", "/credits/auto-top-up", Some(&rule)).expect(200).json()
    }

    /// The operator takes credits of the account.
    fn spend(&self, credits: &str) {
        let credits = format!("--credits=-{credits}");
        let _ =
            self.shop.site.admin_json(&["account", "adjust", &self.shop.account.org_id, &credits, "--note", "spent"]);
    }

    /// Stripe's records of payments with the saved card.
    fn charges(&self) -> Vec<Value> {
        self.shop.stripe.act("top_ups", &json!({}))["payments"].as_array().unwrap().clone()
    }

    fn has_balance(&self, balance: &str) {
        until(&format!("the balance is {balance}"), || self.shop.balance() == balance);
    }
}

#[test]
fn a_low_balance_is_topped_up_until_a_payment_is_refunded() {
    let Some(saved) = Saved::open() else { return };
    let shop = &saved.shop;
    assert_eq!(saved.settings()["card"], json!({"brand": "visa", "last4": "4242"}));
    saved.spend("51");
    assert_eq!((saved.settings()["enabled"].clone(), saved.charges().len()), (json!(false), 0), "off by default");
    let rule = saved.turn_on()["rule"].clone();
    assert_eq!(
        (&rule["monthly_limit"], &rule["amount"], &rule["currency"]),
        (&json!("20"), &json!("10"), &json!("EUR"))
    );
    saved.has_balance("149");
    let charges = saved.charges();
    assert_eq!((charges.len(), &charges[0]["amount"], &charges[0]["currency"]), (1, &json!(1000), &json!("eur")));
    shop.taken("payment_intent.succeeded", &charges[0]);
    assert_eq!(shop.balance(), "149", "once");
    let charged = || saved.settings()["rule"]["charged_this_month"].clone();
    assert_eq!(charged(), "10");

    // The response to the second one is lost, but not the event.
    let _ = shop.stripe.act("lose", &json!({"responses": 1}));
    saved.spend("100");
    until("the card is charged again", || saved.charges().len() == 2);
    shop.taken("payment_intent.succeeded", &saved.charges()[1]);
    assert_eq!((shop.balance(), charged()), ("149".to_owned(), json!("20")));

    let refund = json!({"payment_intent": saved.charges()[1]["id"], "amount": 1000});
    shop.taken("refund.created", &shop.stripe.act("refund", &refund));
    let settings = saved.settings();
    assert_eq!((&settings["enabled"], &settings["stopped"]), (&json!(false), &json!("reversed")));
    let events = shop.customer().get("/events?limit=1").expect(200).text();
    assert!(events.contains("top_up.stopped"), "{events}");
    assert_eq!(saved.charges().len(), 2, "they are off");
    assert_eq!(shop.site.admin(&["verify"]).code, Some(0));
}

#[test]
fn a_declined_card_is_charged_again_only_when_its_owner_says_so() {
    let Some(saved) = Saved::open() else { return };
    for (outcome, reason) in [("card_declined", "declined"), ("authentication_required", "authentication_required")] {
        let _ = saved.shop.stripe.act("cards", &json!({"outcome": outcome}));
        saved.turn_on();
        if outcome == "card_declined" {
            saved.spend("51");
        }
        until(&format!("it stops: {reason}"), || saved.settings()["stopped"] == reason);
    }
    assert_eq!((saved.shop.balance(), saved.charges().len()), ("49".to_owned(), 2));
    let _ = saved.shop.stripe.act("cards", &json!({"outcome": "succeeded"}));
    // Of the first attempt, late.
    saved.shop.taken("payment_intent.payment_failed", &saved.charges()[0]);
    saved.turn_on();
    saved.has_balance("149");
}

#[test]
fn a_top_up_of_an_account_revoked_meanwhile_is_in_the_books() {
    let Some(saved) = Saved::open() else { return };
    let shop = &saved.shop;
    let _ = shop.stripe.act("lose", &json!({"responses": 1000}));
    saved.turn_on();
    saved.spend("51");
    until("the card is charged", || saved.charges().len() == 1);
    let _ = shop.site.admin_json(&["account", "revoke", &shop.account.org_id, "--yes"]);
    let charge = saved.charges()[0].clone();
    for _ in 0..2 {
        shop.taken("payment_intent.succeeded", &charge);
    }
    let records = shop.site.admin_json(&["payments", "records"])["payments"].clone();
    let ids: Vec<_> = records.as_array().unwrap().iter().map(|record| &record["processor_id"]).collect();
    assert_eq!(ids, [&saved.session["payment_intent"], &charge["id"]]);
    let doctor = || shop.site.admin(&["doctor", "--json"]).stdout;
    assert!(doctor().contains("payments taken for revoked accounts: 1"), "{}", doctor());

    // Somebody refunds it in Stripe's dashboard.
    let refund = json!({"payment_intent": charge["id"], "amount": 1000});
    shop.taken("refund.created", &shop.stripe.act("refund", &refund));
    assert!(!doctor().contains("revoked accounts"), "{}", doctor());
    assert_eq!(shop.site.admin(&["verify"]).code, Some(0));
}

#[test]
fn a_removed_card_is_removed_at_the_processor_too() {
    let Some(saved) = Saved::open() else { return };
    let shop = &saved.shop;
    let cards = || shop.stripe.act("top_ups", &json!({}))["cards"].clone();
    saved.turn_on();
    let off = saved.send("DELETE", "/credits/auto-top-up", None).expect(200).json();
    assert_eq!((&off["rule"], &off["card"]["last4"], cards()), (&json!(null), &json!("4242"), json!(1)));
    saved.turn_on();
    let _ = shop.stripe.act("fail", &json!({"statuses": [500]}));
    assert_eq!(saved.send("DELETE", "/credits/card", None).expect(502).error(), "upstream_unreachable");
    assert_eq!(saved.settings()["rule"], json!(null), "it is not charged any longer");
    for _ in 0..2 {
        let removed = saved.send("DELETE", "/credits/card", None).expect(200).json();
        assert_eq!((&removed["card"], cards()), (&json!(null), json!(0)));
    }
    // An event that comes again does not bring it back.
    shop.taken("checkout.session.completed", &saved.session);
    assert_eq!(saved.settings()["card"], json!(null));
    let rule = json!({"plan_id": "starter", "threshold": 50, "monthly_limit": "20.00"});
    let refused = saved.send("PUT", "/credits/auto-top-up", Some(&rule)).expect(400).json();
    assert!(refused["fields"]["card"].as_str().unwrap().contains("save_card"), "{refused}");
}
