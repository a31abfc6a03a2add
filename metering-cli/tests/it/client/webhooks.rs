//! `metering webhooks`.

use serde_json::{Value, json};

use super::{client, fails_with, misuses, sends};
use crate::program::Program;
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

/// A service with these responses for the webhook `$id`, by the end of the path.
fn with_webhook<'a>(replies: impl IntoIterator<Item = (&'a str, Reply)>) -> (Program, StandIn) {
    let (program, service) = client([]);
    for (end, reply) in replies {
        service.on(&format!("/webhooks/{ID}{end}"), reply);
    }
    program.call("id", ID);
    program.call("hook", URL);
    (program, service)
}

#[test]
fn a_webhook_is_made_and_its_secret_printed_once() {
    let (program, service) = with_webhook([]);
    service.on("/webhooks", issued());
    let line = "webhooks create $hook --events balance.low,key.leaked";
    let ran = program.run(line).expect(0).says("shown only once; save it now");
    assert!(ran.stdout.matches(SECRET).count() == 1 && !ran.stderr.contains(SECRET), "{ran:?}");
    let _ = ran.says(&format!("metering webhooks rotate {ID}"));
    assert_eq!(service.last().key(), Some(program.text("$key").as_str()));
    assert_eq!(program.json::<Value>(line)["secret"], SECRET);
    let body = r#"POST /webhooks {"url":"$hook","events":["balance.low","key.leaked"]}"#;
    // Without --events, all of them.
    let all = r#"POST /webhooks {"url":"$hook"}"#;
    sends(&program, &service, &[(line, body, SECRET), ("webhooks create $hook", all, SECRET)]);
    program.refuses(&[("webhooks create $hook --events balance.gone", 2, "the kinds are balance.low")]);
    assert_eq!(service.requests().len(), 4);
}

#[test]
fn a_secret_that_is_lost_says_how_to_get_another() {
    let (program, service) = with_webhook([("/rotate", Reply::error(503, "outcome_unknown"))]);
    service.on("/webhooks", Reply::error(503, "outcome_unknown")).on("/webhooks", issued());
    service.on(&format!("/webhooks/{THIRD}/rotate"), Reply::html(502));
    let lost = program.run("webhooks create $hook").failure(8);
    assert!(lost.contains("there may be a new secret") && lost.contains("metering webhooks list"), "{lost}");
    assert_eq!(service.requests().len(), 1, "a second try could make a second webhook");
    program.refuses(&[
        ("webhooks rotate $id", 8, "run the command again"),
        // A proxy responded.
        (&format!("webhooks rotate {THIRD}"), 8, "there may be a new secret"),
    ]);
    for (status, code) in [(503, "storage_unavailable"), (429, "rate_limited")] {
        service.only(&format!("/webhooks/{OTHER}/rotate"), Reply::error(status, code));
        let refused = program.run(&format!("webhooks rotate {OTHER}")).failure(8);
        assert!(!refused.contains("there may be a new secret"), "nothing happened: {refused}");
    }
    let unread = program.unread("webhooks create $hook").failure(1);
    assert!(unread.contains(&format!("metering webhooks rotate {ID}")) && !unread.contains(SECRET), "{unread}");
}

#[test]
fn refusals_have_their_exit_codes() {
    let cases = [
        ("/webhooks", 403, "key_scope", 6),
        ("/webhooks", 400, "validation_failed", 2),
        ("/webhooks", 404, "webhook_not_found", 4),
        ("/webhooks", 409, "too_many_webhooks", 5),
    ];
    fails_with(&format!("webhooks create {URL}"), &cases);
}

#[test]
fn webhooks_are_listed_and_shown() {
    let (program, service) = with_webhook([("", Reply::json(&json!({"data": document()})))]);
    let all = json!({"data": [document(), {"id": "we_2", "url": "https://b.example/\u{1b}[2J", "events": [],
        "state": "gone", "old_secret_expires_at": null, "created_at": "2026-11-02T00:00:00.000Z"}]});
    service.on("/webhooks", Reply::json(&all));
    let table = program.run("webhooks list").success();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("ID ") && !table.contains('\u{1b}'), "{table}");
    assert!(lines[1].contains("active") && lines[1].contains("balance.low, key.leaked") && lines[1].ends_with(URL));
    assert!(lines[2].contains("gone") && lines[2].contains(" all "), "{table}");
    assert_eq!(program.run("webhooks list --json").success(), format!("{all}\n"));
    let shown = [ID, URL, "active", "balance.low, key.leaked", "used until 2026-11-24T00:00:00.000Z"];
    program.prints(&[("webhooks show $id", &shown)]);
    program.refuses(&[("webhooks show we_42", 2, "32 lower-case hex digits")]);
}

#[test]
fn changes_of_a_webhook_send_only_what_changes() {
    let (program, service) = with_webhook([("", Reply::json(&json!({"data": document()})))]);
    for (options, body) in [
        ("--disable", r#"{"disabled":true}"#),
        ("--enable --to https://c.example/", r#"{"url":"https://c.example/","disabled":false}"#),
        ("--events key.leaked,balance.low", r#"{"events":["key.leaked","balance.low"]}"#),
        ("--events all", r#"{"events":null}"#),
        ("--events key.leaked,all", r#"{"events":null}"#),
    ] {
        let (line, sent) = (format!("webhooks set $id {options}"), format!("PATCH /webhooks/$id {body}"));
        sends(&program, &service, &[(&line, &sent, "The webhook was changed.\n\n"), (&line, &sent, URL)]);
    }
    let lines = ["webhooks set $id", "webhooks set $id --enable --disable", "webhooks set $id --events nothing"];
    misuses(&program, &service, &lines);
}

#[test]
fn the_secret_is_replaced_with_a_grace() {
    let (program, service) = with_webhook([("/rotate", issued())]);
    let without_grace = r#"POST /webhooks/$id/rotate {"grace_seconds":0}"#;
    let cases = [
        ("webhooks rotate $id", "POST /webhooks/$id/rotate {}", SECRET),
        ("webhooks rotate $id --grace 0", without_grace, SECRET),
    ];
    sends(&program, &service, &cases);
    let _ = program.run("webhooks rotate $id").expect(0).says("shown only once");
    misuses(&program, &service, &["webhooks rotate $id --grace 604801"]);
}

#[test]
fn deliveries_are_tested_listed_and_resent() {
    let accepted = || Reply::new(202, format!(r#"{{"data":{}}}"#, delivery(7, "pending", None)));
    let list = format!(
        r#"{{"data":[{},{}],"next":"7&x"}}"#,
        delivery(8, "pending", Some("503 \\u001b[2J")),
        delivery(7, "delivered", None)
    );
    let (program, service) = with_webhook([
        ("/test", accepted()),
        ("/deliveries", Reply::ok(list.clone())),
        ("/deliveries/7/resend", accepted()),
    ]);
    let listing = "webhooks deliveries $id --state pending --limit 2 --after a&b";
    sends(
        &program,
        &service,
        &[
            ("webhooks test $id", "POST /webhooks/$id/test", "as delivery 7"),
            ("webhooks test $id", "POST /webhooks/$id/test", "metering webhooks deliveries $id"),
            (listing, "GET /webhooks/$id/deliveries?state=pending&limit=2&after=a%26b", "503 \u{fffd}[2J"),
            ("webhooks resend $id 7", "POST /webhooks/$id/deliveries/7/resend", "Queued for delivery."),
            ("webhooks resend $id 7", "POST /webhooks/$id/deliveries/7/resend", "balance.low (evt_1)"),
        ],
    );
    let ran = program.run(listing).expect(0).says("newest 2; there are more");
    let rows: Vec<_> = ran.stdout.lines().collect();
    assert!(rows.len() == 3 && rows[1].contains("2026-11-21T08:02:00.000Z"), "{ran:?}");
    assert!(rows[2].contains("status 503") && rows[2].contains(" - "), "{ran:?}");
    assert_eq!(program.run("webhooks deliveries $id --json").success(), format!("{list}\n"));
    let lines = ["webhooks resend $id -1", "webhooks resend $id x", "webhooks deliveries $id --state lost"];
    misuses(&program, &service, &lines);
}

#[test]
fn deletion_of_a_webhook_needs_a_yes() {
    let shown = Reply::json(&json!({"data": document()}));
    let (program, service) = with_webhook([("", shown), ("", Reply::ok(r#"{"deleted":true}"#))]);
    program.refuses(&[("webhooks delete $id", 2, "--yes")]);
    sends(&program, &service, &[("webhooks delete $id --yes", "DELETE /webhooks/$id", "deleted")]);
}
