//! Actions of operators that race, lose their client or their server, or share a database.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{Console, sign_in};

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
    // An orderly stop waits for none of these, so poll until all that began have an outcome.
    let mut log = console.audit();
    for _ in 0..100 {
        if log.iter().all(|entry| !entry["outcome"].is_null()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        log = console.audit();
    }
    let done = log.iter().filter(|entry| entry["action"] == "account.grant").count();
    assert!(done > 0, "no request arrived: {log:?}");
    assert!(log.iter().all(|entry| entry["outcome"]["result"] == "done"), "{log:?}");
    let account = console.viewer().get(&format!("/admin/accounts/{org}")).expect(200);
    assert_eq!(account.member("credit_balance"), done.to_string());
}

#[test]
fn no_change_is_without_an_entry_when_the_server_is_killed() {
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
    let of = |outcome: Value| {
        let grants = entries.iter().filter(|entry| entry["action"] == "account.grant");
        u64::try_from(grants.filter(|entry| entry["outcome"]["result"] == outcome).count()).unwrap()
    };
    let (done, open) = (of(json!("done")), of(Value::Null));
    let account = site.admin_json(&["account", "show", &org]);
    let granted = account["total_credits_granted"].as_u64().unwrap();
    assert!(confirmed <= done && done <= granted && granted <= done + open, "{confirmed} {done} {granted} {open}");
    site.verify();
}

#[test]
fn nodes_share_operators_and_the_audit_log() {
    if is_skipped() {
        return;
    }
    let one = Console::start_on(Site::on_database(Cluster::shared().fresh_schema()));
    let other_admin = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
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
