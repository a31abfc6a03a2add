//! Recurring credits: set while servers run, and given once, no matter how many servers there are and how often they
//! restart.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::postgres::{fresh_schema, run_in};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::{Value, json};

use super::administration::Console;
use crate::support::wire::{BASE, balance};

/// A server looks every ten seconds; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// The accounts of a test: some of an earlier month, and one of today.
struct Accounts {
    old: Vec<IssuedAccount>,
    new: IssuedAccount,
}

impl Accounts {
    /// Creates them. `run` runs SQL on the database.
    fn create(site: &Site, run: &dyn Fn(&str)) -> Self {
        let old: Vec<_> = (0..5).map(|_| site.account("0.5")).collect();
        let full = site.account("7");
        let all = old.iter().chain([&full]).map(|account| format!("'{}'", account.org_id)).collect::<Vec<_>>();
        run(&format!(
            "UPDATE account SET created_at = created_at - {} WHERE org_id IN ({})",
            40_i64 * 86_400_000,
            all.join(", ")
        ));
        Self { old, new: site.account("0.5") }
    }

    /// How often each old account was refilled, by the ledger.
    fn refills(&self, server: &Server) -> Vec<Vec<String>> {
        self.old.iter().map(|account| refills(server, account)).collect()
    }
}

fn refills(server: &Server, account: &IssuedAccount) -> Vec<String> {
    let ledger = server.client_with(&account.api_key).get("/credits/ledger").expect(200).json();
    let entries = ledger["entries"].as_array().unwrap().iter().filter(|entry| entry["type"] == "refill");
    entries.map(|entry| entry["amount"].to_string()).collect()
}

/// Sum of a metric over servers.
fn counted(servers: &[Server], name: &str) -> u64 {
    let of = |server: &Server| -> u64 {
        let text = server.client().get("/metrics").expect(200).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_default()
    };
    servers.iter().map(of).sum()
}

#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SOON, "still not: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn refilled_once(site: &Site, nodes: usize, run: &dyn Fn(&str)) {
    let mut servers: Vec<Server> = (0..nodes).map(|_| site.server().start()).collect();
    let accounts = Accounts::create(site, run);
    let set = site.admin(&["refill", "set", "--credits", "2", "--every", "month", "--cap", "2"]);
    assert_eq!(set.code, Some(0), "{set:?}");

    let once = vec![vec!["1.5".to_owned()]; accounts.old.len()];
    wait_for("all old accounts are refilled", || accounts.refills(&servers[0]) == once);
    assert_eq!(refills(&servers[0], &accounts.new), [""; 0]);
    for server in &servers {
        assert_eq!(balance(&server.client_with(&accounts.old[0].api_key)), "2");
        let client = server.client_with(&accounts.old[0].api_key);
        let activity = client.get("/credits/usage").expect(200).json();
        assert_eq!(activity["transactions"][0]["type"], "refill");
    }
    assert_eq!(counted(&servers, "metering_refilled_accounts_total"), 5);
    assert_eq!(counted(&servers, "metering_refilled_atoms_total"), 5 * 3 * 7_200_000_000 / 2);

    // Neither usage nor a restart, which checks immediately, causes a second refill in the same month.
    let _ = servers[0].client_with(&accounts.old[0].api_key).get(BASE).expect(200);
    drop(servers.pop());
    servers.push(site.server().start());
    thread::sleep(Duration::from_secs(2));
    assert_eq!(accounts.refills(&servers[0]), once);

    // A month later: what was done today was done in an earlier month.
    run("UPDATE account SET refilled_on = refilled_on - 40, created_at = created_at - 3456000000");
    run("UPDATE refill SET period = period - 40");
    let spent = |refills: &[String]| refills.len() == 2 && refills[1] != "1.5";
    wait_for("the account that spent is refilled again", || spent(&refills(&servers[0], &accounts.old[0])));
    wait_for("today's account is refilled", || refills(&servers[0], &accounts.new) == ["1.5"]);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(accounts.refills(&servers[0])[1..], once[1..], "the others are at the cap");
    for account in accounts.old.iter().chain([&accounts.new]) {
        assert_eq!(balance(&servers[0].client_with(&account.api_key)), "2");
    }
    site.verify();
}

#[test]
fn accounts_are_refilled_once_on_sqlite() {
    let site = Site::new();
    let run = |sql: &str| {
        let connection = rusqlite::Connection::open(site.database()).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        let _ = connection.execute(sql, []).unwrap();
    };
    refilled_once(&site, 1, &run);
}

#[test]
fn accounts_are_refilled_once_by_two_nodes() {
    let Some(url) = fresh_schema() else { return };
    let run = |sql: &str| drop(run_in(&url, sql));
    refilled_once(&Site::on_database(&url), 2, &run);
}

fn put(client: &Client, request: &Value) -> Response {
    client.send("PUT", "/admin/refill", Some(request.to_string().as_bytes()))
}

#[test]
fn operators_set_the_rule_over_http() {
    let console = Console::start();
    let rule = json!({"credits": 0.25, "every": "weekly", "cap": 3});
    let request = json!({"refill": rule, "reason": "Ticket 312"});
    assert_eq!(put(&console.viewer(), &request).expect(403).error(), "forbidden");
    assert_eq!(console.viewer().get("/admin/refill").expect(200).json(), json!({"refill": null}));
    for (field, wrong) in [("credits", json!(0)), ("cap", json!(-1)), ("every", json!("yearly")), ("more", json!(1))] {
        let mut rule = rule.clone();
        rule[field] = wrong;
        let _ = put(&console.manager(), &json!({"refill": rule, "reason": "x"})).expect(400);
    }
    let reasonless = put(&console.manager(), &json!({"refill": rule})).expect(400);
    assert!(reasonless.text().contains("Reason"), "{reasonless:?}");
    let saved = put(&console.manager(), &request).expect(200).json();
    assert_eq!(saved, json!({"refill": rule}));
    assert_eq!(console.viewer().get("/admin/refill").expect(200).json(), saved);

    // The same from another machine, with the command line.
    let shown = console.remote(&["refill", "show"]).stdout;
    assert_eq!(shown, "Every week (UTC), accounts get 0.25 credits, up to a balance of 3.\n");
    let args = ["refill", "set", "--credits", "1", "--every", "day", "--cap", "2", "--reason", "Ticket 313", "--json"];
    let set: Value = serde_json::from_str(&console.remote(&args).stdout).unwrap();
    assert_eq!(set, json!({"refill": {"credits": 1, "every": "daily", "cap": 2}}));
    let off = console.remote(&["refill", "off", "--reason", "Ticket 314"]);
    assert_eq!((off.code, off.stdout.as_str()), (Some(0), "Accounts are not refilled.\n"));

    let log = console.viewer().get("/admin/audit?subject=refill").expect(200).json();
    let entries = log["entries"].as_array().unwrap();
    let found: Vec<_> = entries.iter().map(|entry| (&entry["action"], &entry["reason"])).collect();
    let (set, remove) = (json!("refill.set"), json!("refill.remove"));
    let reasons = ["Ticket 314", "Ticket 313", "Ticket 312"].map(|reason| json!(reason));
    assert_eq!(found, [(&remove, &reasons[0]), (&set, &reasons[1]), (&set, &reasons[2])]);
    assert_eq!(entries[0]["before"], json!({"credits": 1, "every": "daily", "cap": 2}));
    assert_eq!(entries[2]["outcome"]["after"], rule);
}
