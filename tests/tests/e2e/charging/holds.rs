//! Holds over HTTP, for services that serve requests themselves and know their cost only afterwards.

use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::{Value, json};

use crate::support::wire::{balance, usage_events};

const SECRET: &str = "correct horse battery staple";
const SECRET_HEADER: &str = "X-BDS-Internal-Billing-Secret";
const HOLD: &str = "/internal/billing/hold";
const CAPTURE: &str = "/internal/billing/capture";
const RELEASE: &str = "/internal/billing/release";

struct Scene {
    site: Site,
    account: IssuedAccount,
    server: Server,
}

impl Scene {
    fn new() -> Self {
        let site = Site::new();
        let account = site.account("2");
        let catalogue = json!({"market": "TEST", "version": 1, "endpoints": [
            {"path": "/render/{scene}", "method": "POST", "metered": true,
             "params": [{"name": "scene", "in": "path", "type": "string", "required": true}],
             "price": {"max": "0.5", "min": "0.01", "units": {"seconds": "0.02"}, "missing": "hold", "over": "debt",
                       "report": {"header": {"seconds": "x-seconds"}}}},
            {"path": "/price", "method": "GET", "metered": true, "price": "0.25"}]});
        let catalogue = site.write("catalogue.json", &catalogue.to_string());
        let flags = ["--catalogue".into(), catalogue.into_os_string()];
        let server = site.server().args(flags).set("METERING_BILLING__INTERNAL_SECRET", SECRET).start();
        Self { site, account, server }
    }

    /// A service with the secret, on behalf of the account.
    fn resolver(&self) -> Client {
        self.server.client_with(&self.account.api_key).with_header(SECRET_HEADER, SECRET)
    }

    /// A service with the secret alone.
    fn settler(&self) -> Client {
        self.server.client().with_header(SECRET_HEADER, SECRET)
    }

    fn balance(&self) -> String {
        balance(&self.server.client_with(&self.account.api_key))
    }

    #[track_caller]
    fn hold(&self, fields: &Value) -> Response {
        let mut body = json!({"path": "/render/7", "method": "POST"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.resolver().post(HOLD, &body)
    }
}

fn id(response: &Response) -> String {
    response.json()["request"]["id"].as_str().unwrap().to_owned()
}

/// The amounts held, charged and released, and the balance.
fn money(response: &Response) -> [Value; 4] {
    let document = response.json();
    let request = &document["request"];
    [&request["held"], &request["charged"], &request["released"], &document["credit_balance"]].map(Clone::clone)
}

#[test]
fn hold_is_captured_once() {
    let scene = Scene::new();
    let held = scene.hold(&json!({"amount": "0.4"})).expect(200);
    assert_eq!(money(&held), [json!(0.4), json!(0), json!(0), json!(1.6)]);
    assert_eq!((held.member("changed"), scene.balance()), ("true".to_owned(), "1.6".to_owned()));
    assert_eq!(usage_events(&scene.server.client_with(&scene.account.api_key)), 0);
    let report = json!({"id": id(&held), "amount": "0.1"});
    let first = scene.settler().post(CAPTURE, &report).expect(200);
    assert_eq!(money(&first), [json!(0), json!(0.1), json!(0.3), json!(1.9)]);
    assert_eq!(first.json()["request"]["settled_by"], "report");
    for (path, again) in [
        (CAPTURE, report),
        (CAPTURE, json!({"id": id(&held), "amount": "0.3"})),
        (CAPTURE, json!({"id": id(&held)})),
        (RELEASE, json!({"id": id(&held)})),
    ] {
        let again = scene.settler().post(path, &again).expect(200);
        assert_eq!((again.member("changed"), money(&again)), ("false".to_owned(), money(&first)));
    }
    assert_eq!(scene.balance(), "1.9");
    assert_eq!(usage_events(&scene.server.client_with(&scene.account.api_key)), 1);
    scene.site.verify();
}

#[test]
fn amounts_come_from_the_service_or_the_catalogue() {
    let scene = Scene::new();
    // hold, capture, charged
    let table = [
        (json!({}), json!({"units": {"seconds": 3}}), 0.06),
        (json!({}), json!({"units": {"seconds": 0.1}}), 0.01),
        (json!({}), json!({}), 0.5),
        (json!({"amount": 0.05}), json!({}), 0.05),
        (json!({"amount": 0.05, "fallback": "0.02"}), json!({}), 0.02),
        (json!({"amount": "0.05"}), json!({"amount": "0.07"}), 0.07),
        (json!({"path": "/price", "method": "GET"}), json!({"amount": 0.3}), 0.25),
        (json!({"path": "/own", "method": "GET", "credit_weight": 720}), json!({}), 0.0),
    ];
    for (hold, capture, charged) in table {
        let held = scene.hold(&hold).expect(200);
        let mut capture = capture;
        capture["id"] = id(&held).into();
        let captured = scene.settler().post(CAPTURE, &capture).expect(200);
        assert_eq!(captured.json()["request"]["charged"].as_f64(), Some(charged), "{hold} {capture}");
    }
    scene.site.verify();
}

#[test]
fn release_costs_nothing() {
    let scene = Scene::new();
    let held = scene.hold(&json!({})).expect(200);
    assert_eq!(scene.balance(), "1.5");
    for changed in ["true", "false"] {
        let released = scene.settler().post(RELEASE, &json!({"id": id(&held)})).expect(200);
        assert_eq!(money(&released), [json!(0), json!(0), json!(0.5), json!(2)]);
        assert_eq!(released.member("changed"), changed);
        assert_eq!(released.json()["request"]["state"], "released");
    }
    scene.site.verify();
}

#[test]
fn repeated_request_id_gets_the_first_hold() {
    let scene = Scene::new();
    let first = scene.hold(&json!({"request_id": "render-17"})).expect(200);
    let again = scene.hold(&json!({"request_id": "render-17"})).expect(200);
    assert_eq!((id(&again), again.member("changed")), (id(&first), "false".to_owned()));
    assert_eq!(scene.balance(), "1.5");
    let _ = scene.settler().post(CAPTURE, &json!({"id": id(&first), "amount": 0.1})).expect(200);
    let late = scene.hold(&json!({"request_id": "render-17"})).expect(200);
    assert_eq!((id(&late), late.json()["request"]["state"].clone()), (id(&first), json!("captured")));
    assert_eq!(scene.balance(), "1.9");
    scene.site.verify();
}

#[test]
fn bad_requests_hold_and_change_nothing() {
    let scene = Scene::new();
    // fields of a hold, the field at fault
    let holds = [
        (json!({"amount": "-1"}), "amount"),
        (json!({"amount": "much"}), "amount"),
        (json!({"fallback": -0.1}), "fallback"),
        (json!({"lease_seconds": 9}), "lease_seconds"),
        (json!({"lease_seconds": 86_401}), "lease_seconds"),
        (json!({"credit_weight": 0}), "credit_weight"),
        (json!({"method": ""}), "method"),
    ];
    for (fields, field) in holds {
        let refused = scene.hold(&fields).expect(400);
        assert!(refused.json()["fields"].get(field).is_some(), "{fields}: {}", refused.text());
    }
    let refused = scene.hold(&json!({"amount": "2.1"})).expect(402);
    assert_eq!((refused.error(), refused.member("required")), ("insufficient_credits".into(), "2.1".into()));
    let held = id(&scene.hold(&json!({})).expect(200));
    // a capture, the field at fault
    let captures = [
        (json!({"id": held, "amount": -1}), "amount"),
        (json!({"id": held, "amount": 1, "units": {"seconds": 1}}), "units"),
        (json!({"id": held, "units": {"second": 1}}), "units"),
        (json!({"id": held, "units": {"seconds": -1}}), "units"),
        (json!({"id": held, "charge": 1}), "charge"),
    ];
    for (capture, field) in captures {
        let refused = scene.settler().post(CAPTURE, &capture).expect(400);
        assert!(refused.text().contains(field), "{capture}: {}", refused.text());
    }
    for id in ["req_00000000000000000000000000000000", "17", ""] {
        for path in [CAPTURE, RELEASE] {
            assert_eq!(scene.settler().post(path, &json!({"id": id})).expect(404).error(), "not_found");
        }
    }
    for path in [CAPTURE, RELEASE] {
        assert_eq!(scene.server.client().post(path, &json!({"id": held})).expect(403).error(), "forbidden");
        assert_eq!(scene.settler().send("POST", path, Some(b"{")).expect(400).error(), "invalid_json");
    }
    assert_eq!(scene.settler().post(HOLD, &json!({})).expect(401).error(), "unauthorized");
    assert_eq!(scene.balance(), "1.5", "the one hold is open");
    scene.site.verify();
}
