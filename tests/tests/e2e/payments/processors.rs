//! Payments that a checkout of the operator's own reports: credited once, reversed once, and shown like any other.

use std::net::SocketAddr;

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::{Value, json};

use crate::support::wire::balance;

const SECRET: &str = "a checkout's own secret";
const HEADER: &str = "X-BDS-Internal-Billing-Secret";
const PAY: &str = "/internal/payments";
const REVERSE: &str = "/internal/payments/reversals";

struct Shop {
    site: Site,
    server: Server,
    account: IssuedAccount,
    admin: SocketAddr,
}

impl Shop {
    fn open() -> Self {
        let site = Site::new();
        let (account, admin) = (site.account("0"), free_address());
        let server = site
            .server()
            .set("METERING_ADMIN_LISTEN", &admin.to_string())
            .set("METERING_BILLING__PAYMENTS_SECRET", SECRET)
            .set("METERING_BILLING__INTERNAL_SECRET", "a resolver's own secret")
            .start();
        Self { site, server, account, admin }
    }

    fn checkout(&self) -> Client {
        self.server.client().with_header(HEADER, SECRET)
    }

    fn customer(&self) -> Client {
        self.server.client_with(&self.account.api_key)
    }

    fn paid(&self, id: &str) -> Value {
        let org = &self.account.org_id;
        json!({"processor": "paddle", "id": id, "org_id": org, "amount": "10.00", "currency": "eur", "credits": 100})
    }
}

#[test]
fn payment_is_credited_once_on_its_first_terms() {
    let shop = Shop::open();
    let first = shop.checkout().post(PAY, &shop.paid("txn_1")).expect(200).json();
    assert_eq!((&first["amount_added"], &first["already_credited"]), (&json!(100), &json!(false)));
    let mut minor = shop.paid("txn_1");
    minor.as_object_mut().unwrap().remove("amount");
    minor["amount_minor"] = json!(1000);
    for again in [shop.paid("txn_1"), minor] {
        let again = shop.checkout().post(PAY, &again).expect(200).json();
        assert_eq!((&again["amount_added"], &again["already_credited"]), (&json!(100), &json!(true)));
    }
    let other = shop.site.account("0").org_id;
    // field, other value, what the error names
    let table = [
        ("amount", json!("10.01"), "amount: 10"),
        ("currency", json!("USD"), "currency: EUR"),
        ("credits", json!(99), "credits: 100"),
        ("plan_id", json!("starter"), "plan_id: none"),
        ("org_id", json!(other), "org_id: org_"),
    ];
    for (field, value, named) in table {
        let mut changed = shop.paid("txn_1");
        changed[field] = value;
        let refused = shop.checkout().post(PAY, &changed).expect(409);
        assert_eq!(refused.error(), "conflict", "{field}");
        assert!(refused.text().contains(named), "{field}: {}", refused.text());
    }
    assert_eq!(balance(&shop.customer()), "100");
}

#[test]
fn amounts_are_in_the_units_of_their_currency() {
    let shop = Shop::open();
    let report = |id: &str, currency: &str, name: &str, amount: Value| {
        let mut paid = shop.paid(id);
        paid.as_object_mut().unwrap().remove("amount");
        (paid["currency"], paid[name]) = (json!(currency), amount);
        shop.checkout().post(PAY, &paid)
    };
    // currency, amount, the same in the smallest unit, an amount with too many decimals
    for (currency, amount, minor, finer) in [("JPY", "500", 500, "500.5"), ("KWD", "1.234", 1234, "1.2345")] {
        let refused = report("txn_0", currency, "amount", json!(finer)).expect(400);
        assert!(refused.json()["fields"]["amount"].is_string(), "{currency}: {}", refused.text());
        let id = format!("txn_{currency}");
        let _ = report(&id, currency, "amount", json!(amount)).expect(200);
        let again = report(&id, currency, "amount_minor", json!(minor)).expect(200).json();
        assert_eq!(again["already_credited"], true, "{currency}");
        let receipts = shop.customer().get("/credits/receipts?limit=1").expect(200).json();
        let payment = &receipts["receipts"][0]["payment"];
        let shown = ["token_amount", "token_symbol", "amount_atomic", "value"].map(|name| &payment[name]);
        assert_eq!(json!(shown), json!([amount, currency, minor.to_string(), null]));
    }
    assert_eq!(balance(&shop.customer()), "200");
}

#[test]
fn wrong_reports_credit_nothing_and_say_what_to_do() {
    let shop = Shop::open();
    // field, value, the field that the error names
    let table = [
        ("processor", json!("Paddle Inc"), "processor"),
        ("id", json!(""), "id"),
        ("org_id", json!("jo"), "org_id"),
        ("currency", json!("euros"), "currency"),
        ("amount", json!("10.001"), "amount"),
        ("amount", json!("0"), "amount"),
        ("amount", json!("-1"), "amount"),
        ("amount_minor", json!(1000), "amount"),
        ("credits", json!(0), "credits"),
        ("credits", Value::Null, "credits"),
    ];
    for (field, value, named) in table {
        let mut wrong = shop.paid("txn_1");
        wrong[field] = value.clone();
        let refused = shop.checkout().post(PAY, &wrong).expect(400);
        assert_eq!(refused.error(), "validation_failed", "{field} {value}");
        assert!(refused.json()["fields"][named].is_string(), "{field} {value}: {}", refused.text());
    }
    let mut unknown = shop.paid("txn_1");
    unknown["org_id"] = json!("org_00000000000000000000");
    assert_eq!(shop.checkout().post(PAY, &unknown).expect(404).error(), "not_found");
    // Resolvers may charge, and not credit.
    let resolver = shop.server.client().with_header(HEADER, "a resolver's own secret");
    assert_eq!(resolver.post(PAY, &shop.paid("txn_1")).expect(403).error(), "forbidden");
    assert_eq!(shop.server.client().post(REVERSE, &json!({})).expect(403).error(), "forbidden");
    assert_eq!(balance(&shop.customer()), "0");
}

#[test]
fn a_payment_for_a_revoked_account_is_credited_and_reported_as_such() {
    let shop = Shop::open();
    let pay = |id: &str| shop.checkout().post(PAY, &shop.paid(id)).expect(200).json();
    assert_eq!(pay("txn_1")["account_revoked"], false);
    let _ = shop.site.admin_json(&["account", "revoke", &shop.account.org_id, "--yes"]);
    for already in [false, true] {
        let paid = pay("txn_2");
        let shown = ["credit_balance", "account_revoked", "already_credited"].map(|name| &paid[name]);
        assert_eq!(json!(shown), json!([200, true, already]));
    }
    let reverse = json!({"processor": "paddle", "id": "adj_1", "payment_id": "txn_2"});
    assert_eq!(shop.checkout().post(REVERSE, &reverse).expect(200).json()["credit_balance"], 100);
    assert_eq!(shop.site.admin(&["verify"]).code, Some(0));
}

#[test]
fn refunds_and_disputes_take_credits_back_and_return_them() {
    let shop = Shop::open();
    let reverse = |body: &Value| shop.checkout().post(REVERSE, body);
    let refund = json!({"processor": "paddle", "id": "adj_1", "payment_id": "txn_1", "amount": "2.50", "currency": "EUR",
        "reason": "Unused"});
    assert_eq!(reverse(&refund).expect(404).error(), "not_found");
    let paid = shop.checkout().post(PAY, &shop.paid("txn_1")).expect(200).json();
    let number = paid["receipt_number"].as_str().unwrap();
    for again in [false, true] {
        let reversed = reverse(&refund).expect(200).json();
        assert_eq!((&reversed["amount_reversed"], &reversed["already_recorded"]), (&json!("2.5"), &json!(again)));
        assert_eq!(balance(&shop.customer()), "75");
    }
    let receipt = || shop.customer().get(&format!("/credits/receipt?number={number}")).expect(200).json();
    assert_eq!(receipt()["status"], "partly_reversed");
    let payment = receipt()["payment"].clone();
    let shown = ["processor", "processor_id", "token_amount", "token_symbol", "amount_reversed"];
    assert_eq!(json!(shown.map(|name| &payment[name])), json!(["paddle", "txn_1", "10", "EUR", "2.5"]));
    let note = receipt()["credit_notes"][0].clone();
    assert_eq!(json!(["amount", "reason", "cancelled_at"].map(|name| &note[name])), json!(["2.5", "Unused", null]));
    let by_note = |path: &str| shop.customer().get(&format!("{path}?number={}", note["number"].as_str().unwrap()));
    assert_eq!(by_note("/credits/receipt").expect(200).json(), receipt());
    assert!(by_note("/credits/receipt.pdf").expect(200).body.starts_with(b"%PDF-1.7"));
    let unknown = format!("/credits/receipt?number={}-1", number.replace("R-", "C-"));
    assert_eq!(shop.customer().get(&unknown).expect(404).error(), "not_found");
    let mut dispute = json!({"processor": "paddle", "id": "dsp_1", "payment_id": "txn_1"});
    assert_eq!(reverse(&dispute).expect(200).json()["amount_reversed"], "10");
    assert_eq!((balance(&shop.customer()), &receipt()["status"]), ("0".to_owned(), &json!("reversed")));
    dispute["restored"] = json!(true);
    assert_eq!(reverse(&dispute).expect(200).json()["restored"], true);
    let notes = receipt()["credit_notes"].clone();
    assert_eq!((&notes[0], notes[1]["cancelled_at"].is_string(), &notes[2]), (&note, true, &Value::Null));
    // It was won: what comes late changes nothing.
    dispute["restored"] = json!(false);
    assert_eq!(reverse(&dispute).expect(200).json()["already_recorded"], true);
    assert_eq!(balance(&shop.customer()), "75");
    let mut other = refund.clone();
    other["amount"] = json!("3");
    assert_eq!(reverse(&other).expect(409).error(), "conflict");
    let events = shop.customer().get("/events?limit=3").expect(200).text();
    assert!(events.contains("payment.reversed"), "{events}");
    let record = shop.site.admin_json(&["payments", "records"])["payments"][0].clone();
    let shown = ["processor", "processor_id", "amount_human", "token_symbol", "used_as", "state"];
    assert_eq!(json!(shown.map(|name| &record[name])), json!(["paddle", "txn_1", "10", "EUR", "processor", "final"]));
    let audit = shop.site.admin_json(&["audit"]).to_string();
    assert!(audit.contains("processor:paddle") && audit.contains("payment.restore"), "{audit}");
    assert_eq!(shop.site.admin(&["verify"]).code, Some(0));
}

#[test]
fn operators_filter_payments_and_read_their_receipts() {
    let shop = Shop::open();
    let viewer = shop.site.admin_json(&["operator", "create", "reader", "--role", "viewer"]);
    let viewer = Client::new(shop.admin).with_key(viewer["token"].as_str().unwrap());
    let paid = shop.checkout().post(PAY, &shop.paid("txn_1")).expect(200).json();
    let (org, other) = (&shop.account.org_id, &shop.site.account("0").org_id);
    let listed = |filter: &str| viewer.get(&format!("/admin/payments?order=newest{filter}")).expect(200).json();
    // filter, how many match
    let table = [
        (String::new(), 1),
        (format!("&account={org}"), 1),
        (format!("&account={other}"), 0),
        ("&chain_id=0".to_owned(), 1),
        ("&chain_id=8453".to_owned(), 0),
    ];
    for (filter, count) in table {
        assert_eq!(listed(&filter)["payments"].as_array().unwrap().len(), count, "{filter}");
    }
    assert_eq!(viewer.get("/admin/payments?chain_id=0").expect(400).error(), "validation_failed");
    assert_eq!(listed("")["payments"][0]["receipt"], paid["receipt_number"]);
    let number = paid["receipt_number"].as_str().unwrap();
    let of = |org: &str, file: &str| format!("/admin/accounts/{org}/{file}?number={number}");
    let own = shop.customer().get(&format!("/credits/receipt?number={number}")).expect(200).json();
    assert_eq!(viewer.get(&of(org, "receipt")).expect(200).json(), own);
    assert!(viewer.get(&of(org, "receipt.pdf")).expect(200).body.starts_with(b"%PDF-1.7"));
    assert_eq!(viewer.get(&of(other, "receipt")).expect(404).error(), "not_found");
    let _ = viewer.get(&format!("/admin/accounts/{org}/receipt")).expect(400);
    let _ = Client::new(shop.admin).get(&of(org, "receipt.pdf")).expect(401);
}
