//! Reloading the configuration of a running server: new prices under load, and files that cannot be used.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metering_core::Credits;
use metering_tests::client::Client;
use metering_tests::load::{self, LoadPlan, Stop, request};
use metering_tests::mcp::{Agent, Sdk, Transport};
use metering_tests::ports::free_address;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

/// A server with a configuration file, a catalogue and an admin address.
struct Reloaded {
    site: Site,
    server: Server,
    admin: SocketAddr,
}

const PATH: &str = "/mpp/ethPrice";

fn catalogue(weight: u32) -> Value {
    let mut catalogue: Value = serde_json::from_str(metering_sample::ROUTES).unwrap();
    let routes = catalogue["endpoints"].as_array_mut().unwrap();
    routes.iter_mut().find(|route| route["path"] == PATH).unwrap()["credit_weight"] = weight.into();
    catalogue
}

fn configuration(site: &Site, more: &str) {
    let catalogue = site.path("catalogue.json");
    site.write("metering.toml", &format!("catalogue = {:?}\n{more}", catalogue.display().to_string()));
}

impl Reloaded {
    fn start() -> Self {
        let site = Site::new();
        site.write("catalogue.json", &catalogue(5).to_string());
        configuration(&site, "");
        let admin = free_address();
        let file = site.path("metering.toml").display().to_string();
        let server = site.server().args(["--config", &file]).set("METERING_ADMIN_LISTEN", &admin.to_string());
        let server = server.start();
        Self { site, server, admin }
    }

    fn operator(&self, name: &str, role: &str) -> String {
        let created = self.site.admin_json(&["operator", "create", name, "--role", role]);
        created["token"].as_str().unwrap().to_owned()
    }

    /// The current price of a call.
    fn price(&self, key: &str) -> Credits {
        let called = self.server.client_with(key).get(PATH).expect(200);
        Credits::from_printed(called.header("x-bds-credit-charged").unwrap()).unwrap()
    }
}

fn weighing(weight: i64) -> Credits {
    Credits::from_atoms(Credits::from_whole(1).unwrap().atoms() / 7_200 * weight)
}

#[test]
fn new_price_takes_effect_under_load_and_the_books_are_exact() {
    let at = Reloaded::start();
    let account = at.site.account("1000");
    let charged = Arc::new(Mutex::new(Vec::new()));
    let requests = vec![request("GET", PATH, Some(&account.api_key), &[])];
    let plan = LoadPlan::new(at.server.address(), 64, Stop::AfterRequests(30_000), requests);
    let seen = Arc::clone(&charged);
    let load = load::start(plan, move |response| {
        let charged = response.header("x-bds-credit-charged").map(Credits::from_printed);
        seen.lock().unwrap().push(charged.expect("every response names its charge").unwrap());
    });
    while charged.lock().unwrap().len() <= 64 {
        std::thread::sleep(Duration::from_millis(10));
    }
    at.site.write("catalogue.json", &catalogue(7).to_string());
    at.server.hang_up();
    at.server.expect_log("the configuration was reloaded");
    assert_eq!(at.price(&account.api_key), weighing(7), "requests after the reload have the new price");
    let result = load.join();

    assert_eq!((result.errors, result.responses()), (0, result.with_status(200)), "{:?}", result.by_status);
    let charged = charged.lock().unwrap();
    let count = |weight| charged.iter().filter(|charge| **charge == weighing(weight)).count();
    assert!(count(5) > 64 && count(7) > 64, "{} at the old price, {} at the new", count(5), count(7));
    assert_eq!(count(5) + count(7), charged.len(), "there is no third price");
    let spent = Credits::checked_sum(charged.iter().copied().chain([weighing(7)])).unwrap();
    let used = at.server.client_with(&account.api_key).get("/credits/balance").expect(200);
    assert_eq!(used.member("total_credits_used"), spent.to_string());
    at.site.verify();
    let prices = at.server.client().get("/endpoints.json").expect(200).json();
    assert_eq!(prices, catalogue(7));
}

#[test]
fn bad_file_changes_nothing_and_says_why() {
    let at = Reloaded::start();
    let account = at.site.account("10");
    let token = at.operator("mo", "manager");
    // The configuration file, the catalogue, what the message says
    let name = "brand.name = 'Acme'\n";
    let table = [
        (name, "{ not JSON".to_owned(), "catalogue.json"),
        (name, catalogue(7).to_string().replace("/mpp/ethPrice", "/credits/price"), "reserved"),
        ("brand.accent = 'green'\nbrand.name = 'Acme'\n", catalogue(7).to_string(), "brand.accent"),
        ("nonsense = 1\n", catalogue(7).to_string(), "nonsense"),
        ("brand.name = 'Acme'\nterms.file = '/nowhere/terms.md'\n", catalogue(7).to_string(), "/nowhere/terms.md"),
    ];
    for (more, text, problem) in table {
        configuration(&at.site, more);
        at.site.write("catalogue.json", &text);
        let output = Site::admin_of_server(at.admin, &token, &["--reason", "a test", "reload"]);
        assert!(output.code != Some(0) && output.stderr.contains(problem), "{problem}: {output:?}");
        assert_eq!(at.price(&account.api_key), weighing(5), "{problem}");
        let page = at.server.client().get("/metering").expect(200).text();
        assert!(!page.contains("Acme"), "{problem}");
    }
    at.server.hang_up();
    at.server.expect_log("the configuration was not reloaded; nothing has changed");
    let entries = Client::new(at.admin).with_key(&token).get("/admin/audit").expect(200).json();
    let of_reloads =
        entries["entries"].as_array().unwrap().iter().filter(|entry| entry["action"] == "configuration.reload");
    assert_eq!(of_reloads.count(), 5);
}

#[test]
fn operators_reload_and_learn_what_needs_a_restart() {
    let at = Reloaded::start();
    let account = at.site.account("10");
    let (manager, viewer) = (at.operator("mo", "manager"), at.operator("vi", "viewer"));
    let reload = |token: &str, more: &[&str]| {
        Site::admin_of_server(at.admin, token, &[&["--reason", "Ticket 311", "reload"], more].concat())
    };
    assert_eq!(reload(&manager, &[]).stdout, "Changed  nothing\n");

    at.site.write("catalogue.json", &catalogue(7).to_string());
    let more = "limits.polls_per_ip = '1/1m'\nbrand.name = 'Acme'\nlog.filter = 'debug'\n\
        billing.internal_secret = 'a secret that was not set before'\n";
    configuration(&at.site, more);
    let refused = reload(&viewer, &[]);
    assert!(refused.code != Some(0) && refused.stderr.contains("Only managers"), "{refused:?}");
    assert_eq!(at.price(&account.api_key), weighing(5));

    let reloaded = reload(&manager, &[]);
    let expected = "Changed          brand.name, catalogue, limits.polls_per_ip\n\
        Needs a restart  billing.internal_secret, log.filter\n";
    assert_eq!(reloaded.stdout, expected, "{reloaded:?}");
    assert_eq!(at.price(&account.api_key), weighing(7));
    assert!(at.server.client().get("/metering").expect(200).text().contains("Acme"));
    let poll = || at.server.client().get("/signup/status?session_token=sst_unknown").status;
    assert_eq!((poll() == 429, poll()), (false, 429), "the new limit applies");
    assert_eq!(at.server.client().post("/internal/billing/deduct", &json!({})).status, 404, "needs a restart");

    let again: Value = serde_json::from_str(&reload(&manager, &["--json"]).stdout).unwrap();
    assert_eq!(again, json!({"changed": [], "needs_restart": ["billing.internal_secret", "log.filter"]}));
    at.server.expect_log("needs a restart: billing.internal_secret, log.filter");
    assert!(!at.server.log().contains("a secret that"), "{}", at.server.log());

    let local = at.site.admin(&["reload"]);
    assert!(local.code == Some(2) && local.stderr.contains("--server"), "{local:?}");
    let entries = Client::new(at.admin).with_key(&manager).get("/admin/audit").expect(200).json();
    let last = entries["entries"].as_array().unwrap().iter().find(|entry| entry["action"] == "configuration.reload");
    assert_eq!(last.unwrap()["reason"], "Ticket 311");
}

#[test]
fn open_tools_have_the_new_routes_and_prices() {
    let at = Reloaded::start();
    let account = at.site.account("10");
    let client = at.server.client_with(&account.api_key).with_header("Accept", "application/json, text/event-stream");
    let list = || {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        client.post("/mcp", &body).expect(200).text()
    };
    let is_listed = || list().contains(r#""name":"bds_mpp_ethPrice","#);
    assert!(is_listed());
    let agent = Agent::start(Sdk::Python);
    let session = agent.as_ref().map(|agent| agent.connect(&at.server, Transport::Streamable, &account.api_key));
    if let Some(session) = &session {
        let expected = json!({"acknowledged": {"toolsListChanged": true}, "ttl_ms": 60_000, "cache_scope": "public"});
        assert_eq!(session.listen(), expected);
    }
    let mut fewer = catalogue(5);
    fewer["endpoints"].as_array_mut().unwrap().retain(|route| route["path"] != PATH);
    at.site.write("catalogue.json", &fewer.to_string());
    at.server.hang_up();
    at.server.expect_log("the configuration was reloaded");
    assert!(!is_listed(), "{}", list());
    if let Some(session) = &session {
        assert_eq!(session.changed(), "ToolsListChanged");
        assert!(session.tools().iter().all(|tool| tool["name"] != "bds_mpp_ethPrice"));
    }
    let _ = client.get(PATH).expect(404);
}
