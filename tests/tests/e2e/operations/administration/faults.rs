//! Actions of operators that race, lose their client or their server, or share a database.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{Console, sign_in};
use crate::support::wait::until;

#[test]
fn concurrent_actions_are_each_taken_and_logged_once() {
    let console = Console::start();
    let (org, _) = console.account("busy", 0);
    let target = format!("/admin/accounts/{org}/grant");
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (console, target) = (&console, &target);
            scope.spawn(move || {
                for _ in 0..5 {
                    let grant = json!({"credits": 1, "reason": format!("worker {worker}")});
                    let _ = console.manager().post(target, &grant).expect(200);
                }
            });
        }
    });
    let account = console.viewer().get(&format!("/admin/accounts/{org}")).expect(200);
    assert_eq!(account.member("credit_balance"), "40");
    let log = console.audit();
    let grants: Vec<_> = log.iter().filter(|entry| entry["action"] == "account.grant").collect();
    assert_eq!(grants.len(), 40);
    assert!(grants.iter().all(|entry| entry["outcome"]["result"] == "done"), "{grants:?}");
    console.site.verify();
}

#[test]
fn an_action_is_finished_although_its_client_hung_up() {
    use std::io::Write;
    let console = Console::start();
    let (org, _) = console.account("hasty", 0);
    for attempt in 0..10 {
        let body = r#"{"credits": 1, "reason": "hung up"}"#;
        let mut stream = metering_tests::client::connect(console.admin).unwrap();
        let request = format!(
            "POST /admin/accounts/{org}/grant HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
            console.manager,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        // Before the action, in the middle of it, and after it.
        std::thread::sleep(Duration::from_millis(3 * attempt));
        drop(stream);
    }
    // An orderly stop waits for none of these, so poll until one was done.
    let grants = |log: &[Value]| log.iter().filter(|entry| entry["action"] == "account.grant").count();
    until("one was done", || grants(&console.audit()) > 0);
    let log = console.audit();
    // Others may still be done while these read.
    let account = console.viewer().get(&format!("/admin/accounts/{org}")).expect(200);
    let balance: usize = account.member("credit_balance").parse().unwrap();
    let (before, after) = (grants(&log), grants(&console.audit()));
    assert!(before > 0 && (before..=after).contains(&balance), "{before} {balance} {after}: {log:?}");
    assert!(console.audit().iter().all(|entry| entry["outcome"]["result"] == "done"), "{log:?}");
}

#[test]
fn each_change_has_its_entry_when_the_server_is_killed() {
    let console = Console::start();
    let (org, _) = console.account("unlucky", 0);
    let target = format!("/admin/accounts/{org}/grant");
    let manager = console.manager();
    let (site, server) = (console.site, console.server);
    let confirmed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let grant = br#"{"credits": 1, "reason": "until the end"}"#;
                while let Ok(response) = manager.try_send("POST", &target, Some(grant)) {
                    assert_eq!(response.status, 200, "{response:?}");
                    confirmed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while confirmed.load(Ordering::Relaxed) < 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill();
    });
    let confirmed = confirmed.into_inner();
    let log = site.admin_json(&["audit", "--subject", &org, "--limit", "10000"]);
    let entries = log["entries"].as_array().unwrap();
    let grants: Vec<_> = entries.iter().filter(|entry| entry["action"] == "account.grant").collect();
    assert!(grants.iter().all(|entry| entry["outcome"]["result"] == "done"), "{grants:?}");
    let (account, done) = (site.admin_json(&["account", "show", &org]), u64::try_from(grants.len()).unwrap());
    assert_eq!(account["total_credits_granted"], done);
    assert!(confirmed <= done && done <= confirmed + 4, "{confirmed} {done}");
    site.verify();
}

#[test]
fn entries_of_earlier_versions_stay_readable() {
    let console = Console::start();
    // An entry and its outcome, and an entry after which the program stopped.
    let sql = r#"INSERT INTO audit_entry (id, at, actor, action, subject, reason, request, before) VALUES
          (101, 1795262400000, 'operator:mo', 'account.grant', 'org_a', 'Ticket 311', '{"credits":1}', '{"a":1}'),
          (102, 1795262400000, 'operator:mo', 'account.grant', 'org_a', 'Ticket 312', '{"credits":2}', '{"a":2}');
        INSERT INTO audit_outcome (entry, at, result, detail, after) VALUES (101, 1795262401000, 'unknown', 'why', NULL)"#;
    rusqlite::Connection::open(console.site.database()).unwrap().execute_batch(sql).unwrap();
    let log = console.audit();
    assert_eq!((&log[0]["id"], &log[0]["outcome"], &log[0]["before"]), (&json!(102), &Value::Null, &json!({"a": 2})));
    let outcome = json!({"at": "2026-11-21T12:00:01.000Z", "result": "unknown", "detail": "why", "after": null});
    assert_eq!((&log[1]["id"], &log[1]["outcome"]), (&json!(101), &outcome));
    let csv = console.viewer().get("/admin/audit.csv?subject=org_a").expect(200).text();
    let lines: Vec<_> = csv.lines().skip(1).map(str::trim_end).collect();
    assert!(lines[0].starts_with("102,") && lines[0].ends_with(",,,,"), "{csv}");
    assert!(lines[1].starts_with("101,") && lines[1].ends_with(",unknown,2026-11-21T12:00:01.000Z,why,"), "{csv}");
    let table = console.remote(&["audit", "--subject", "org_a"]).stdout;
    assert!(table.contains(" -  ") && table.contains("unknown"), "{table}");
    // Later entries come after them.
    let _ = console.account("later", 1);
    assert!(console.audit()[0]["id"].as_i64().unwrap() > 102);
}

#[test]
fn nodes_share_operators_and_the_audit_log() {
    metering_tests::skip_if!(is_skipped());
    let one = Console::start_on(Site::on_database(Cluster::shared().fresh_schema()));
    let other_admin = free_address();
    let _other = one.site.server().set("METERING_ADMIN_LISTEN", &other_admin.to_string()).start();
    let other = Client::new(other_admin).with_key(&one.manager);
    let (org, _) = one.account("shared", 1);
    let grant = json!({"credits": 1, "reason": "on the other node"});
    let _ = other.post(&format!("/admin/accounts/{org}/grant"), &grant).expect(200);
    let entry = &one.audit()[0];
    assert_eq!((&entry["reason"], &entry["outcome"]["result"]), (&json!("on the other node"), &json!("done")));
    let report = one.viewer().get("/admin/report?days=1").expect(200).json();
    assert_eq!(report["by_day"][0]["credits_granted"], 2);
    let (browser, _) = sign_in(other_admin, &one.viewer);
    let _ = one.manager().post("/admin/operators/vi/revoke", &json!({"reason": "test"})).expect(200);
    let _ = browser.get("/admin/session").expect(401);
    let _ = Client::new(other_admin).with_key(&one.viewer).get("/admin/accounts").expect(401);
    one.site.verify();
}
