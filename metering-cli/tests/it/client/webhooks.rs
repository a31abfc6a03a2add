//! `metering webhooks`, `metering events` and `metering alert`.

use serde_json::{Value, json};

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const ID: &str = "we_0123456789abcdef0123456789abcdef";
/// Of other webhooks.
const OTHER: &str = "we_1123456789abcdef0123456789abcdef";
const THIRD: &str = "we_2123456789abcdef0123456789abcdef";
const URL: &str = "https://hooks.example.com/metering?team=7";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn document() -> Value {
    json!({"id": ID, "url": URL, "events": ["balance.low", "key.leaked"], "state": "active",
        "old_secret_expires_at": "2026-11-24T00:00:00.000Z", "created_at": "2026-11-01T00:00:00.000Z"})
}

fn issued() -> Reply {
    Reply::new(201, json!({"secret": SECRET, "data": document()}).to_string())
}

/// A delivery, with an amount in its event that a float cannot hold.
fn delivery(id: u32, state: &str, error: Option<&str>) -> String {
    let error = error.map_or("null".to_owned(), |error| format!("\"{error}\""));
    let next = if state == "pending" { "\"2026-11-21T08:02:00.000Z\"" } else { "null" };
    format!(
        r#"{{"id":{id},"webhook_id":"{ID}","state":"{state}","attempts":3,"next_attempt_at":{next},"last_attempt_at":"2026-11-21T08:01:00.000Z","last_status":503,"last_error":{error},"event":{{"id":"evt_1","type":"balance.low","timestamp":"2026-11-21T08:00:00.000Z","data":{{"balance":1000000.0000000001}}}}}}"#
    )
}

#[test]
fn a_webhook_is_made_and_its_secret_printed_once() {
    let service = StandIn::start();
    service.on("/webhooks", issued());
    let (home, key) = Home::of(&service);
    let args = ["webhooks", "create", URL, "--events", "balance.low,key.leaked"];
    let ran = home.metering(&args);
    assert_eq!((ran.code, ran.stdout.matches(SECRET).count()), (0, 1), "{ran:?}");
    assert!(ran.stderr.contains("shown only once; save it now") && !ran.stderr.contains(SECRET), "{ran:?}");
    assert!(ran.stderr.contains(&format!("metering webhooks rotate {ID}")), "{ran:?}");
    let request = &service.requests()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/webhooks"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", key.expose()).as_str()));
    let expected = format!(r#"{{"url":"{URL}","events":["balance.low","key.leaked"]}}"#);
    assert_eq!(request.body, expected.as_bytes());
    let json = home.metering(&[&args[..], &["--json"]].concat());
    assert_eq!((json.json()["secret"].as_str(), json.stderr.as_str()), (Some(SECRET), ""));
    // Without --events, all of them.
    assert_eq!(home.metering(&["webhooks", "create", URL]).code, 0);
    assert_eq!(service.requests()[2].body, format!(r#"{{"url":"{URL}"}}"#).as_bytes());
    let unknown = home.metering(&["webhooks", "create", URL, "--events", "balance.gone"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("the kinds are balance.low"), "{unknown:?}");
    assert_eq!(service.requests().len(), 3);
}

#[test]
fn a_secret_that_is_lost_says_how_to_get_another() {
    let service = StandIn::start();
    service.on("/webhooks", Reply::error(503, "outcome_unknown")).on("/webhooks", issued());
    service.on(&format!("/webhooks/{ID}/rotate"), Reply::error(503, "outcome_unknown"));
    let (home, _) = Home::of(&service);
    let lost = home.metering(&["webhooks", "create", URL]).failure(8);
    assert!(lost.contains("there may be a new secret") && lost.contains("metering webhooks list"), "{lost}");
    assert_eq!(service.requests().len(), 1, "a second try could make a second webhook");
    let lost = home.metering(&["webhooks", "rotate", ID]).failure(8);
    assert!(lost.contains("run the command again"), "{lost}");
    for (reply, status) in [(Reply::error(503, "storage_unavailable"), 8), (Reply::error(429, "rate_limited"), 8)] {
        let rotate = format!("/webhooks/{OTHER}/rotate");
        service.on(&rotate, reply);
        let refused = home.metering(&["webhooks", "rotate", OTHER]).failure(status);
        assert!(!refused.contains("there may be a new secret"), "nothing happened: {refused}");
    }
    service.on(&format!("/webhooks/{THIRD}/rotate"), Reply::html(502));
    let lost = home.metering(&["webhooks", "rotate", THIRD]).failure(8);
    assert!(lost.contains("there may be a new secret"), "a proxy responded: {lost}");
    let unread = home.unread(&["webhooks", "create", URL]).failure(1);
    assert!(unread.contains(&format!("metering webhooks rotate {ID}")) && !unread.contains(SECRET), "{unread}");
}

#[test]
fn refusals_have_their_exit_codes() {
    let table = [
        (403, "key_scope", 6),
        (400, "validation_failed", 2),
        (404, "webhook_not_found", 4),
        (409, "too_many_webhooks", 5),
    ];
    for (status, error, code) in table {
        let service = StandIn::start();
        service.on("/webhooks", Reply::error(status, error));
        let (home, _) = Home::of(&service);
        let message = home.metering(&["webhooks", "create", URL]).failure(code);
        assert!(message.contains(error), "{message}");
    }
}

#[test]
fn webhooks_are_listed_and_shown() {
    let service = StandIn::start();
    let all = json!({"data": [document(), {"id": "we_2", "url": "https://b.example/\u{1b}[2J", "events": [],
        "state": "gone", "old_secret_expires_at": null, "created_at": "2026-11-02T00:00:00.000Z"}]});
    service.on("/webhooks", Reply::ok(all.to_string()));
    service.on(&format!("/webhooks/{ID}"), Reply::ok(json!({"data": document()}).to_string()));
    let (home, _) = Home::of(&service);
    let table = home.metering(&["webhooks", "list"]).success();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("ID ") && !table.contains('\u{1b}'), "{table}");
    assert!(lines[1].contains("active") && lines[1].contains("balance.low, key.leaked") && lines[1].ends_with(URL));
    assert!(lines[2].contains("gone") && lines[2].contains(" all "), "{table}");
    assert_eq!(home.metering(&["webhooks", "list", "--json"]).success(), format!("{all}\n"));
    let text = home.metering(&["webhooks", "show", ID]).success();
    for expected in [ID, URL, "active", "balance.low, key.leaked", "used until 2026-11-24T00:00:00.000Z"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let malformed = home.metering(&["webhooks", "show", "we_42"]);
    assert!(malformed.code == 2 && malformed.stderr.contains("32 lower-case hex digits"), "{malformed:?}");
}

#[test]
fn changes_of_a_webhook_send_only_what_changes() {
    let service = StandIn::start();
    let path = format!("/webhooks/{ID}");
    service.on(&path, Reply::ok(json!({"data": document()}).to_string()));
    let (home, _) = Home::of(&service);
    let table = [
        (&["--disable"][..], r#"{"disabled":true}"#),
        (&["--enable", "--to", "https://c.example/"], r#"{"url":"https://c.example/","disabled":false}"#),
        (&["--events", "key.leaked,balance.low"], r#"{"events":["key.leaked","balance.low"]}"#),
        (&["--events", "all"], r#"{"events":null}"#),
        (&["--events", "key.leaked,all"], r#"{"events":null}"#),
    ];
    for (args, expected) in table {
        let text = home.metering(&[&["webhooks", "set", ID], args].concat()).success();
        assert!(text.starts_with("The webhook was changed.\n\n") && text.contains(URL), "{text}");
        let request = service.requests().pop().unwrap();
        assert_eq!((request.method.as_str(), &request.target), ("PATCH", &path));
        assert_eq!(request.body, expected.as_bytes());
    }
    for args in [&[][..], &["--enable", "--disable"], &["--events", "nothing"]] {
        assert_eq!(home.metering(&[&["webhooks", "set", ID], args].concat()).code, 2, "{args:?}");
    }
    assert_eq!(service.requests().len(), table.len());
}

#[test]
fn the_secret_is_replaced_with_a_grace() {
    let service = StandIn::start();
    let path = format!("/webhooks/{ID}/rotate");
    service.on(&path, issued());
    let (home, _) = Home::of(&service);
    for (args, expected) in [(&[][..], "{}"), (&["--grace", "0"], r#"{"grace_seconds":0}"#)] {
        let ran = home.metering(&[&["webhooks", "rotate", ID], args].concat());
        assert!(ran.code == 0 && ran.stdout.contains(SECRET) && ran.stderr.contains("shown only once"), "{ran:?}");
        assert_eq!(service.requests().pop().unwrap().body, expected.as_bytes());
    }
    assert_eq!(home.metering(&["webhooks", "rotate", ID, "--grace", "604801"]).code, 2);
}

#[test]
fn deliveries_are_tested_listed_and_resent() {
    let service = StandIn::start();
    let answer = |delivery: String| Reply::new(202, format!(r#"{{"data":{delivery}}}"#));
    service.on(&format!("/webhooks/{ID}/test"), answer(delivery(7, "pending", None)));
    let list = format!(
        r#"{{"data":[{},{}],"next":"7&x"}}"#,
        delivery(8, "pending", Some("503 \\u001b[2J")),
        delivery(7, "delivered", None)
    );
    service.on(&format!("/webhooks/{ID}/deliveries"), Reply::ok(list.clone()));
    service.on(&format!("/webhooks/{ID}/deliveries/7/resend"), answer(delivery(7, "pending", None)));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["webhooks", "test", ID]).success();
    assert!(text.contains("as delivery 7") && text.contains(&format!("metering webhooks deliveries {ID}")), "{text}");

    let ran = home.metering(&["webhooks", "deliveries", ID, "--state", "pending", "--limit", "2", "--after", "a&b"]);
    assert!(ran.code == 0 && ran.stderr.contains("newest 2; there are more"), "{ran:?}");
    let rows: Vec<_> = ran.stdout.lines().collect();
    assert!(rows.len() == 3 && rows[1].contains("503 \u{fffd}[2J") && rows[2].contains("status 503"), "{ran:?}");
    assert!(rows[1].contains("2026-11-21T08:02:00.000Z") && rows[2].contains(" - "), "{ran:?}");
    let target = format!("/webhooks/{ID}/deliveries?state=pending&limit=2&after=a%26b");
    assert_eq!(service.targets().pop(), Some(target));
    assert_eq!(home.metering(&["webhooks", "deliveries", ID, "--json"]).success(), format!("{list}\n"));

    let text = home.metering(&["webhooks", "resend", ID, "7"]).success();
    assert!(text.starts_with("Queued for delivery.") && text.contains("balance.low (evt_1)"), "{text}");
    let request = service.requests().pop().unwrap();
    assert_eq!((request.method.as_str(), request.body.len()), ("POST", 0));
    for args in [&["resend", ID, "-1"][..], &["resend", ID, "x"], &["deliveries", ID, "--state", "lost"]] {
        assert_eq!(home.metering(&[&["webhooks"], args].concat()).code, 2, "{args:?}");
    }
}

#[test]
fn deletion_of_a_webhook_needs_a_yes() {
    let service = StandIn::start();
    let path = format!("/webhooks/{ID}");
    let shown = Reply::ok(json!({"data": document()}).to_string());
    service.on(&path, shown).on(&path, Reply::ok(r#"{"deleted":true}"#));
    let (home, _) = Home::of(&service);
    let refused = home.metering(&["webhooks", "delete", ID]).failure(2);
    assert!(refused.contains("--yes"), "{refused}");
    assert!(home.metering(&["webhooks", "delete", ID, "--yes"]).success().contains("deleted"));
    assert_eq!(service.requests().pop().unwrap().method, "DELETE");
}

#[test]
fn events_are_listed_with_their_digits() {
    let service = StandIn::start();
    let list = r#"{"org_id":"org_0123456789abcdefghij","data":[{"id":"evt_1","type":"balance.low","timestamp":"2026-11-21T08:00:00.000Z","data":{"balance":1000000.0000000001}}],"next":null}"#;
    service.on("/events", Reply::ok(list));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["events", "--limit", "5"]).success();
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["TIME", "TYPE", "DATA"]);
    assert_eq!(rows[1], ["2026-11-21T08:00:00.000Z", "balance.low", r#"{"balance":1000000.0000000001}"#]);
    assert_eq!(home.metering(&["events", "--after", "7", "--json"]).success(), format!("{list}\n"));
    assert_eq!(service.targets(), ["/events?limit=5", "/events?limit=100&after=7"]);
}

#[test]
fn the_alert_is_set_shown_and_removed() {
    let service = StandIn::start();
    let reply = |below: &str| Reply::ok(format!(r#"{{"org_id":"org_0123456789abcdefghij","below":{below}}}"#));
    service.on("/credits/alert", reply("0.0000000006")).on("/credits/alert", reply("null"));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["alert", "set", "0.5"]).success();
    assert_eq!(text, "Webhooks get balance.low when the balance falls below 0.0000000006 credits.\n");
    assert!(home.metering(&["alert", "off"]).success().starts_with("No alert"));
    assert!(home.metering(&["alert", "show", "--json"]).json()["below"].is_null());
    let sent: Vec<_> = service.requests();
    let sent: Vec<_> = sent.iter().map(|one| (one.method.as_str(), std::str::from_utf8(&one.body).unwrap())).collect();
    assert_eq!(sent, [("PUT", r#"{"below":0.5}"#), ("PUT", r#"{"below":null}"#), ("GET", "")]);
    for wrong in ["0", "-1", "much"] {
        assert_eq!(home.metering(&["alert", "set", wrong]).code, 2, "{wrong}");
    }
}
