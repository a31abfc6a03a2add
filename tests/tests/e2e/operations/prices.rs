//! Price versions: named in receipts and in usage, and applied on all nodes at the same time.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use metering_core::{Clock, Credits, SystemClock, Timestamp};
use metering_tests::client::Client;
use metering_tests::load::{self, LoadPlan, Stop, request};
use metering_tests::ports::free_address;
use metering_tests::postgres::fresh_schema;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::nodes::three_nodes;
use crate::support::wait::until;

const PATH: &str = "/mpp/ethPrice";
const BASE_CALL: i64 = 1_000_000;
/// A little more than the minimum lead time.
const AHEAD: Duration = Duration::from_secs(19);

fn catalogue(weight: i64) -> String {
    let mut catalogue: Value = serde_json::from_str(metering_sample::ROUTES).unwrap();
    let routes = catalogue["endpoints"].as_array_mut().unwrap();
    routes.iter_mut().find(|route| route["path"] == PATH).unwrap()["credit_weight"] = weight.into();
    catalogue.to_string()
}

fn write(site: &Site, weight: i64) -> String {
    site.write(&format!("weight-{weight}.json"), &catalogue(weight)).display().to_string()
}

/// Applies a catalogue, and returns when it takes effect.
fn apply(site: &Site, weight: i64) -> Timestamp {
    let at = SystemClock.now().saturating_add(AHEAD);
    let applied = site.admin_json(&["catalogue", "apply", &write(site, weight), "--at", &at.to_string()]);
    assert_eq!((&applied["status"], &applied["since"]), (&json!("scheduled"), &json!(at.to_string())));
    at
}

fn wait_for(at: Timestamp) {
    let ahead = at.unix_millis() - SystemClock.now().unix_millis();
    thread::sleep(Duration::from_millis(u64::try_from(ahead).unwrap_or(0)));
}

/// The version and the weight that a response names.
fn named(response: &Response) -> (u32, i64) {
    let charged = Credits::from_printed(response.header("x-bds-credit-charged").unwrap()).unwrap();
    (response.header("x-bds-price-version").unwrap().parse().unwrap(), charged.atoms() / BASE_CALL)
}

fn call(server: &Server, key: &str) -> (u32, i64) {
    named(&server.client_with(key).get(PATH).expect(200))
}

fn statuses(site: &Site) -> Vec<(u64, String)> {
    let listed = site.admin_json(&["catalogue", "versions"]);
    let versions = listed["versions"].as_array().unwrap();
    let row = |version: &Value| (version["number"].as_u64().unwrap(), version["status"].as_str().unwrap().to_owned());
    versions.iter().map(row).collect()
}

fn rows(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(number, status)| (*number, (*status).to_owned())).collect()
}

#[test]
fn changed_file_is_a_new_version_that_receipts_and_usage_name() {
    let site = Site::new();
    let file = write(&site, 5);
    let setup = || site.server().args(["--catalogue", &file]);
    let server = setup().start();
    let account = site.account("10");
    assert_eq!(call(&server, &account.api_key), (1, 5));
    drop(server);
    let server = setup().start();
    assert_eq!(call(&server, &account.api_key), (1, 5), "the same file is the same version");
    site.write("weight-5.json", &catalogue(7));
    server.hang_up();
    server.expect_log("the configuration was reloaded");
    assert_eq!(call(&server, &account.api_key), (2, 7));

    let summary = server.client_with(&account.api_key).get("/credits/usage/summary?days=1").expect(200).json();
    // A test that runs across midnight has the second day first.
    assert_eq!(summary["by_day"][0]["price_versions"].as_array().unwrap().last(), Some(&json!(2)), "{summary}");
    let of_operator = site.admin_json(&["usage", &account.org_id]);
    assert_eq!(of_operator["by_day"][0]["price_versions"], summary["by_day"][0]["price_versions"]);
    assert_eq!(statuses(&site), rows(&[(2, "in_force"), (1, "past")]));
    for (number, weight) in [("1", 5), ("2", 7)] {
        assert_eq!(site.admin(&["catalogue", "show", number]).stdout, catalogue(weight));
    }
    assert!(site.admin(&["catalogue", "show", "3"]).stderr.contains("no price version 3"));
    let rehearsed = site.admin(&["catalogue", "rehearse", &write(&site, 9), "--days", "1"]).stdout;
    assert!(rehearsed.contains("In force         the price version in force\n"), "{rehearsed}");
    let metrics = server.client().get("/metrics").expect(200).text();
    assert!(metrics.contains("metering_price_version 2\n"), "{metrics}");
}

#[test]
fn applied_catalogue_takes_effect_on_all_nodes_at_the_same_time() {
    let Some(url) = fresh_schema() else { return };
    let site = Site::on_database(url);
    let nodes = three_nodes(&site);
    let account = site.account("10000");
    let (first, _) = call(&nodes[0], &account.api_key);
    let at = apply(&site, 7);
    wait_for(at.saturating_sub(Duration::from_secs(8)));
    // Each node has its own load; an observed response has the time it came. Nodes switch by their own clocks.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let applied = first + 1;
    until("enough requests to each node pay the new price", || {
        let loads = nodes.each_ref().map(|node| {
            let requests = vec![request("GET", PATH, Some(&account.api_key), &[])];
            let plan = LoadPlan::new(node.address(), 21, Stop::AfterRequests(200), requests);
            let (seen, node) = (Arc::clone(&seen), node.address());
            load::start(plan, move |response| {
                let charged = Credits::from_printed(response.header("x-bds-credit-charged").unwrap()).unwrap();
                let version: u32 = response.header("x-bds-price-version").unwrap().parse().unwrap();
                seen.lock().unwrap().push((SystemClock.now(), version, charged, node));
            })
        });
        for result in loads.map(load::RunningLoad::join) {
            assert_eq!((result.errors, result.responses()), (0, result.with_status(200)), "{:?}", result.by_status);
        }
        let seen = seen.lock().unwrap();
        let is_enough = |node: &Server| {
            seen.iter().filter(|(_, version, _, of)| (*version, *of) == (applied, node.address())).count() > 64
        };
        nodes.iter().all(is_enough)
    });
    let seen = seen.lock().unwrap();
    let old_price = seen.iter().find(|(_, version, ..)| *version == first).expect("before the switch").2;
    let new_price = Credits::from_atoms(7 * BASE_CALL);
    let of = |number: u32| seen.iter().filter(move |(_, version, ..)| *version == number);
    assert!(of(first).count() > 64 && of(applied).count() > 64);
    assert_eq!(of(first).count() + of(applied).count(), seen.len(), "there is no third version");
    assert!(
        of(first).all(|(_, _, charged, _)| *charged == old_price)
            && of(applied).all(|(_, _, charged, _)| *charged == new_price)
    );
    assert!(of(applied).all(|(time, ..)| *time >= at), "no request is charged the new price before {at}");
    // Requests that began before may end later. Requests that begin after the loads have ended are charged the new
    // price on every node.
    for node in &nodes {
        assert_eq!(call(node, &account.api_key), (applied, 7));
    }
    site.verify();

    // The store decides now: a node that starts with another file serves what was applied.
    let stray = site.server().args(["--catalogue", &write(&site, 9)]).start();
    stray.expect_log("the configured catalogue is not used");
    assert_eq!(call(&stray, &account.api_key), (applied, 7));
    stray.hang_up();
    stray.expect_log("the configuration was reloaded");
    assert_eq!(call(&stray, &account.api_key), (applied, 7));
}

#[test]
fn node_that_was_killed_meanwhile_starts_with_what_is_in_force() {
    let site = Site::verified();
    let file = write(&site, 5);
    let setup = || site.server().args(["--catalogue", &file]);
    let server = setup().start();
    let account = site.account("10");
    let at = apply(&site, 7);
    let too_soon = site.admin(&["catalogue", "apply", &write(&site, 9), "--at", &SystemClock.now().to_string()]);
    assert!(too_soon.code == Some(2) && too_soon.stderr.contains("at least 15 seconds ahead"), "{too_soon:?}");
    let same_time = site.admin(&["catalogue", "apply", &write(&site, 9), "--at", &at.to_string()]);
    assert!(same_time.code == Some(5) && same_time.stderr.contains("version 2 takes effect"), "{same_time:?}");
    let later = site.admin_json(&["catalogue", "apply", &write(&site, 9)]);
    assert_eq!(later["number"], 3);
    assert_eq!(statuses(&site), rows(&[(3, "scheduled"), (2, "scheduled"), (1, "in_force")]));
    let cancelled = site.admin(&["catalogue", "cancel", "3"]);
    assert_eq!(cancelled.stdout, "Price version 3 will not take effect.\n");
    assert_eq!(call(&server, &account.api_key), (1, 5));
    server.kill();
    wait_for(at);
    let server = setup().start();
    assert_eq!(call(&server, &account.api_key), (2, 7));
    assert_eq!(statuses(&site), rows(&[(3, "cancelled"), (2, "in_force"), (1, "past")]));
    let late = site.admin(&["catalogue", "cancel", "2"]);
    assert!(late.code == Some(5) && late.stderr.contains("apply another catalogue instead"), "{late:?}");
    let same = site.admin(&["catalogue", "apply", &write(&site, 7)]);
    assert!(same.stderr.contains("version 2 has the same catalogue"), "{same:?}");
}

#[test]
fn server_that_cannot_serve_a_version_says_so_before_and_is_not_ready() {
    let site = Site::new();
    let admin = free_address().to_string();
    let file = write(&site, 5);
    let server = site.server().args(["--catalogue", &file]).set("METERING_ADMIN_LISTEN", &admin).start();
    let account = site.account("10");
    let reserved = catalogue(7).replace("/mpp/ethPrice", "/credits/price");
    let path = site.write("reserved.json", &reserved).display().to_string();

    // A server checks it, the command line on the store cannot.
    let token =
        site.admin_json(&["operator", "create", "mo", "--role", "manager"])["token"].as_str().unwrap().to_owned();
    let operator = Client::new(admin.parse().unwrap()).with_key(&token);
    let refused =
        operator.post("/admin/catalogue/apply", &json!({"catalogue": reserved, "reason": "a test"})).expect(400);
    assert!(refused.text().contains("reserved"), "{}", refused.text());
    let at = SystemClock.now().saturating_add(AHEAD);
    let _ = site.admin_json(&["catalogue", "apply", &path, "--at", &at.to_string()]);
    server.expect_log("a price version is scheduled that this server cannot serve");
    let _ = server.client().get("/ready").expect(200);
    wait_for(at);
    until("the server is not ready", || server.client().get("/ready").status == 503);
    assert_eq!(server.client().get("/ready").error(), "catalogue_unusable");
    assert_eq!(call(&server, &account.api_key), (1, 5), "it continues with the previous one");
    server.expect_log("it continues with the previous one, and is not ready");

    let at = SystemClock.now().saturating_add(AHEAD);
    let body = json!({"catalogue": catalogue(7), "at": at.to_string(), "reason": "a test"});
    let applied = operator.post("/admin/catalogue/apply", &body).expect(200).json();
    assert_eq!((&applied["status"], &applied["applied_by"]), (&json!("scheduled"), &json!("operator:mo")));
    wait_for(at);
    until("the server is ready", || server.client().get("/ready").status == 200);
    assert_eq!(call(&server, &account.api_key), (3, 7));
    let log = operator.get("/admin/audit").expect(200).json();
    let newest = &log["entries"][0];
    assert_eq!((&newest["action"], &newest["reason"]), (&json!("catalogue.apply"), &json!("a test")));
    assert!(!log.to_string().contains("ethPrice"), "the log has the hash of a catalogue, not its text");
}
