//! Keys of an account: created, shown, changed, rotated and deleted.

use std::time::Duration;

use metering_core::{Credits, Decision, Refusal};
use serde_json::Value;

use crate::fixture::{Fixture, UNKNOWN_ACCOUNT, block_on, charge, now};

const UNKNOWN_KEY: &str = "key_00000000000000000000";

/// An account with one key more than its first.
struct Scene {
    fixture: Fixture,
    org: String,
    first: String,
    /// The other key's id.
    id: String,
    secret: String,
}

impl Scene {
    fn new(terms: &[&str]) -> Self {
        let fixture = Fixture::new();
        let account = fixture.create("my-agent", "10");
        let args = [&["key", "create", &account.org_id, "--name", "batch"], terms].concat();
        let made: Value = fixture.json(&args);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (id, secret) = (text(&made["data"]["id"]), text(&made["key"]));
        Self { fixture, org: account.org_id, first: account.api_key, id, secret }
    }

    fn charge_with(&self, secret: &str, price: &str) -> Decision {
        let price: Credits = price.parse().unwrap();
        block_on(charge(self.fixture.store().as_ref(), secret, "/a", price, now()))
    }

    fn works(&self, secret: &str) -> bool {
        matches!(self.charge_with(secret, "0.001"), Decision::Accepted(_))
    }

    /// `metering admin key WHAT ORG KEY MORE --json`.
    fn key(&self, what: &str, more: &[&str]) -> Value {
        self.fixture.json(&[&["key", what, &self.org, &self.id], more].concat())
    }

    fn list(&self) -> Vec<Value> {
        let list: Value = self.fixture.json(&["key", "list", &self.org]);
        list["data"].as_array().unwrap().clone()
    }
}

#[test]
fn a_new_key_can_be_used_and_its_secret_is_shown_once() {
    let scene = Scene::new(&["--limit", "1", "--limit-reset", "monthly", "--scopes", "call"]);
    assert!(scene.works(&scene.secret));
    let shown = scene.key("show", &[]);
    assert_eq!((&shown["limit"], &shown["limit_reset"]), (&Value::from(1), &Value::from("monthly")));
    assert_eq!(
        (shown["usage"].to_string().as_str(), shown["limit_remaining"].to_string().as_str()),
        ("0.001", "0.999")
    );
    let list = scene.list();
    assert_eq!(list.len(), 2);
    assert_eq!((&list[1], &list[1]["parent_id"]), (&shown, &list[0]["id"]));
    assert!(list[0]["parent_id"].is_null());
    for args in [&["key", "list", &scene.org][..], &["key", "show", &scene.org, &scene.id], &["audit", "--json"]] {
        assert!(!scene.fixture.admin(args).success().stdout.contains("sk_live_"), "{args:?}");
    }
    let shown = scene.fixture.admin(&["key", "create", &scene.org, "--name", "x"]).success().stdout;
    assert!(shown.contains("shown only once") && shown.contains("metering admin key rotate"), "{shown}");
}

#[test]
fn tables_and_documents_for_people_name_the_terms() {
    let scene = Scene::new(&["--limit", "2.5", "--limit-reset", "daily", "--network", "10.0.0.0/8", "--rpm", "7"]);
    let table = scene.fixture.admin(&["key", "list", &scene.org]).success().stdout;
    let line = table.lines().find(|line| line.starts_with(&scene.id)).unwrap();
    let cells: Vec<_> = line.split_whitespace().take(8).collect();
    assert_eq!(cells[1..], ["batch", "active", "call", "read", "0", "2.5", "2.5"], "{table}");
    let text = scene.fixture.admin(&["key", "show", &scene.org, &scene.id]).success().stdout;
    for expected in ["Limit                2.5 daily", "Networks             10.0.0.0/8", "Requests per minute  7"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn terms_are_changed_and_restrictions_removed() {
    let scene = Scene::new(&["--limit", "0.01"]);
    assert!(scene.works(&scene.secret));
    let refused = scene.charge_with(&scene.secret, "0.1");
    assert!(matches!(refused, Decision::Refused(Refusal::KeyBudget { .. })), "{refused:?}");
    let changed = scene.key("set", &["--limit", "1", "--name", "batch 2", "--max-in-flight", "3"]);
    assert_eq!((changed["name"].as_str(), &changed["max_in_flight"]), (Some("batch 2"), &Value::from(3)));
    assert_eq!(changed["limit_remaining"].to_string(), "0.999", "what was used before counts");
    assert!(matches!(scene.charge_with(&scene.secret, "0.1"), Decision::Accepted(_)));
    assert!(scene.key("set", &["--limit", "none"])["limit"].is_null());
    let misuse = scene.fixture.admin(&["key", "set", &scene.org, &scene.id]).misuse();
    assert!(misuse.contains("--limit"), "{misuse}");
}

#[test]
fn a_disabled_key_stops_until_it_is_enabled() {
    let scene = Scene::new(&[]);
    assert_eq!(scene.key("disable", &[])["state"], "disabled");
    assert!(!scene.works(&scene.secret) && scene.works(&scene.first));
    assert_eq!(scene.key("enable", &[])["state"], "active");
    assert!(scene.works(&scene.secret));
}

#[test]
fn a_rotated_key_keeps_its_id_and_its_old_secret_works_for_the_grace_period() {
    let scene = Scene::new(&[]);
    let rotated = scene.key("rotate", &["--grace", "600"]);
    assert_eq!(rotated["data"]["id"], scene.id.as_str());
    let new = rotated["key"].as_str().unwrap();
    assert!(scene.works(&scene.secret) && scene.works(new));
    let later = now().saturating_add(Duration::from_secs(601));
    let price = "0.001".parse().unwrap();
    let expired = block_on(charge(scene.fixture.store().as_ref(), &scene.secret, "/a", price, later));
    assert!(matches!(expired, Decision::Refused(_)), "{expired:?}");
    let newest = scene.key("rotate", &[]);
    assert!(!scene.works(&scene.secret) && !scene.works(new) && scene.works(newest["key"].as_str().unwrap()));
}

#[test]
fn a_deleted_key_is_gone_but_stays_in_reports() {
    let scene = Scene::new(&[]);
    assert!(scene.works(&scene.secret) && scene.works(&scene.first));
    let delete = ["key", "delete", &scene.org, &scene.id];
    let unconfirmed = scene.fixture.admin(&delete).failure(2);
    assert!(unconfirmed.contains("--yes"), "{unconfirmed}");
    let deleted: Value = scene.fixture.json(&[&delete[..], &["--yes"]].concat());
    assert_eq!(deleted["deleted"], true);
    assert!(!scene.works(&scene.secret));
    assert_eq!(scene.list().len(), 1);
    for what in ["show", "disable", "rotate"] {
        let message = scene.fixture.admin(&["key", what, &scene.org, &scene.id]).failure(4);
        assert!(message.contains("has no key"), "{message}");
    }
    let usage: Value = scene.fixture.json(&["usage", &scene.org]);
    let keys: Vec<_> = usage["by_key"].as_array().unwrap().iter().map(|key| key["key_name"].clone()).collect();
    assert_eq!(keys, ["First key", "batch"]);
    let table = scene.fixture.admin(&["usage", &scene.org]).success().stdout;
    assert!(table.contains("KEY ") && table.contains(&scene.id), "{table}");
    let export = scene.fixture.admin(&["export", "usage"]).success().stdout;
    assert!(export.lines().next().unwrap().ends_with(",key_id,key_name"), "{export}");
    assert!(export.lines().any(|line| line.ends_with(&format!(",{},batch", scene.id))), "{export}");
}

#[test]
fn what_cannot_be_done_has_its_exit_code() {
    let scene = Scene::new(&["--expires-at", "2100-01-01T00:00:00Z"]);
    let org = scene.org.as_str();
    let first = scene.list()[0]["id"].as_str().unwrap().to_owned();
    // arguments, exit code, part of the message
    let table = [
        (vec!["list", UNKNOWN_ACCOUNT], 4, "no account"),
        (vec!["create", UNKNOWN_ACCOUNT, "--name", "x"], 4, "no account"),
        (vec!["show", org, UNKNOWN_KEY], 4, "has no key"),
        (vec!["disable", org, &first], 5, "first key"),
        (vec!["delete", org, &first, "--yes"], 5, "first key"),
        (vec!["set", org, &scene.id, "--limit-reset", "daily"], 2, "needs a limit"),
        (vec!["set", org, &scene.id, "--expires-at", "2020-01-01T00:00:00Z"], 2, "in the future"),
    ];
    for (args, code, expected) in table {
        let message = scene.fixture.admin(&[&["key"], &args[..]].concat()).failure(code);
        assert!(message.contains(expected), "{args:?}: {message}");
    }
    scene.fixture.admin(&["account", "revoke", org, "--yes"]).success();
    let message = scene.fixture.admin(&["key", "create", org, "--name", "x"]).failure(5);
    assert!(message.contains("revoked"), "{message}");
}

#[test]
fn every_change_is_in_the_audit_log_with_its_reason() {
    let scene = Scene::new(&[]);
    scene.fixture.admin(&["--reason", "Ticket 7", "key", "disable", &scene.org, &scene.id]).success();
    let log: Value = scene.fixture.json(&["audit", "--subject", &scene.org]);
    let entry = &log["entries"][0];
    assert_eq!((entry["action"].as_str(), entry["reason"].as_str()), (Some("key.change"), Some("Ticket 7")));
    assert_eq!((&entry["request"]["disabled"], &entry["before"]["state"]), (&true.into(), &"active".into()));
    assert_eq!(log["entries"][1]["action"], "key.create");
}

#[test]
fn a_secret_that_nobody_reads_is_not_lost_in_silence() {
    let scene = Scene::new(&[]);
    let message = scene.fixture.admin_unread(&["key", "rotate", &scene.org, &scene.id]).failure(1);
    assert!(message.contains("is lost") && message.contains("metering admin key rotate"), "{message}");
}
