//! The operators' console in a real browser: scenes of `tests/browser/console*.mjs`.

use std::path::PathBuf;

use metering_tests::chain::Chain;
use metering_tests::ports::free_address;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{chromium, play};
use crate::support::certificates::Loopback;
use crate::support::shop::{Kind, STARTER, Shop};

/// The token of a new operator.
fn operator(site: &Site, name: &str, role: &str) -> Value {
    site.admin_json(&["operator", "create", name, "--role", role])["token"].clone()
}

/// A server with an address for operators, and a manager called `boss`.
struct Desk {
    site: Site,
    server: Server,
    base: String,
    token: Value,
}

impl Desk {
    fn new(settings: &[(&str, &str)]) -> Self {
        let (site, address) = (Site::new(), free_address().to_string());
        let token = operator(&site, "boss", "manager");
        let setup = site.server().set("METERING_ADMIN_LISTEN", &address);
        let server = settings.iter().fold(setup, |setup, (name, value)| setup.set(name, value)).start();
        Self { site, server, base: format!("http://{address}"), token }
    }

    /// Opens an account with this name and more flags.
    fn account(&self, name: &str, flags: &[&str]) -> Value {
        self.site.admin_json(&[&["account", "create", "--agent-name", name], flags].concat())
    }

    fn play(&self, scene: &str, more: Value) {
        let service = format!("http://{}", self.server.address());
        let mut settings = json!({"base": self.base, "service": service, "token": self.token});
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        play(scene, &self.server, settings);
        self.site.verify();
        let log = self.server.log();
        assert!(!log.contains("opr_") && !log.contains("sk_live_"), "a secret is in the log");
    }
}

#[test]
fn operator_signs_in_and_out() {
    Desk::new(&[]).play("consoleSignIn", json!({}));
}

#[test]
fn viewer_is_offered_no_action() {
    let desk = Desk::new(&[]);
    let account = desk.account("holder", &["--credits", "2"]);
    let viewer = operator(&desk.site, "reader", "viewer");
    desk.play("consoleViewer", json!({"token": viewer, "manager": desk.token, "org": account["org_id"]}));
}

#[test]
fn accounts_are_found_and_changed() {
    let desk = Desk::new(&[]);
    let limits = ["--rpm", "0", "--rpd", "0", "--credits", "2"];
    let _ = desk.account("first", &["--email", "first@example.com"]);
    let (second, third) = (desk.account("second", &limits), desk.account("third", &[]));
    let accounts = json!({"key": second["api_key"], "third": third["org_id"]});
    desk.play("consoleAccounts", json!({"accounts": accounts}));
}

const SERVED: &str = include_str!("../../../../metering-sample/routes.json");

/// The served catalogue with another price of one route, and with one route more.
fn changed(extra: &Value) -> String {
    let mut catalogue: Value = serde_json::from_str(SERVED).unwrap();
    let routes = catalogue["endpoints"].as_array_mut().unwrap();
    routes.iter_mut().find(|route| route["path"] == "/mpp/ethPrice").unwrap()["credit_weight"] = json!(72);
    routes.push(extra.clone());
    catalogue.to_string()
}

#[test]
fn plans_and_catalogue_files_are_managed() {
    let desk = Desk::new(&[]);
    let valid =
        desk.site.write("valid.json", &changed(&json!({"path": "/mpp/extra", "method": "GET", "metered": true})));
    let invalid = desk.site.write("invalid.json", &SERVED.replacen("credit_weight", "credit_wieght", 1));
    desk.play("consolePlans", json!({"valid": valid, "invalid": invalid}));
}

/// Catalogue files with a route whose price has volume tiers. Each is another catalogue.
fn tiered(desk: &Desk, count: u32) -> Vec<PathBuf> {
    let tiers = json!([{"up_to": 1000, "credits": "0"}, {"up_to": 100_000, "credits": "0.001"}, {"credits": "0.0005"}]);
    let file = |number: u32| {
        let words = format!("Edition {number}");
        let route =
            json!({"path": "/mpp/extra", "method": "GET", "metered": true, "price": tiers, "description": words});
        desk.site.write(&format!("tiered-{number}.json"), &changed(&route))
    };
    (1..=count).map(file).collect()
}

#[test]
fn price_versions_are_read_applied_and_cancelled() {
    let desk = Desk::new(&[]);
    desk.play("consolePrices", json!({"files": tiered(&desk, 2)}));
    let versions = desk.site.admin_json(&["catalogue", "versions"]);
    let statuses = versions["versions"].as_array().unwrap().iter().map(|version| version["status"].clone());
    assert_eq!(statuses.collect::<Vec<_>>(), ["cancelled", "scheduled", "cancelled", "in_force"], "{versions}");
    assert_eq!(versions["versions"][0]["applied_by"], "operator:boss");
}

#[test]
fn price_version_that_changed_meanwhile_is_shown_as_it_is() {
    let desk = Desk::new(&[]);
    let viewer = operator(&desk.site, "reader", "viewer");
    desk.play("consolePricesMeanwhile", json!({"files": tiered(&desk, 4), "viewer": viewer}));
}

#[test]
fn price_versions_fit_phones_and_desktops() {
    let desk = Desk::new(&[]);
    let files = tiered(&desk, 2);
    for (file, at) in files.iter().zip(["2099-01-01T00:00:00Z", "2099-02-01T00:00:00Z"]) {
        let _ = desk.site.admin_json(&["catalogue", "apply", file.to_str().unwrap(), "--at", at]);
    }
    let _ = desk.site.admin_json(&["catalogue", "cancel", "3"]);
    desk.play("consolePricesLooks", json!({"file": files[0]}));
}

#[test]
fn operators_come_and_go_and_the_log_has_them() {
    let desk = Desk::new(&[]);
    let account = desk.account("holder", &["--credits", "2"]);
    desk.play("consoleOperators", json!({"org": account["org_id"]}));
}

#[test]
fn unclaimed_payment_is_found_and_assigned() {
    let explorer = "explorer_url = 'https://explorer.example'";
    let Some(mut shop) = Shop::with(Chain::setup(), "1", explorer) else { return };
    let address = free_address().to_string();
    shop.restart_with(&[("METERING_ADMIN_LISTEN", &address)]);
    let token = operator(&shop.site, "boss", "manager");
    let account = shop.site.admin_json(&["account", "create", "--agent-name", "payer", "--credits", "0"]);
    let customer = shop.customer();
    let _ = shop.signed_up(Kind::Token, &customer);
    let hash = shop.pay(Kind::Token, &shop.customer(), STARTER);
    let more = json!({
        "base": format!("http://{address}"), "token": token, "hash": hash, "org": account["org_id"],
        "wallet": customer.checksummed(),
    });
    play("consolePayments", &shop.server, more);
}

#[test]
fn lost_responses_of_actions_are_not_taken_for_failures() {
    let desk = Desk::new(&[]);
    let account = desk.account("holder", &["--credits", "2"]);
    desk.play("consoleFailures", json!({"org": account["org_id"]}));
}

#[test]
fn console_works_with_the_keyboard_alone() {
    let desk = Desk::new(&[]);
    let _ = desk.account("holder", &["--credits", "2"]);
    desk.play("consoleKeyboard", json!({}));
}

#[test]
fn console_is_accessible_in_both_schemes_and_widths() {
    let desk = Desk::new(&[("METERING_BRAND__NAME", "Acme Data")]);
    let account = desk.account("price-watcher", &["--credits", "60", "--email", "owner@example.com"]);
    let _ = desk.account("research-bot-with-a-long-name-for-an-agent", &["--credits", "2"]);
    let org = account["org_id"].as_str().unwrap();
    for (command, credits, note) in [("grant", "5", "Sorry about Friday"), ("adjust", "-0.5", "Granted twice")] {
        let flags = ["--credits", credits, "--note", note, "--reason", "Ticket 311"];
        let _ = desk.site.admin_json(&[&["account", command, org], &flags[..]].concat());
    }
    desk.play("consoleLooks", json!({"key": account["api_key"], "org": account["org_id"]}));
}

const BILLING_SECRET: &str = "correct horse battery staple";

/// A desk with an account of two credits, which made a request that held all of them and cost 0.25; and the ids of
/// both.
fn charged_desk() -> (Desk, Value) {
    let desk = Desk::new(&[("METERING_BILLING__INTERNAL_SECRET", BILLING_SECRET)]);
    let _ = desk.account("other", &[]);
    let (name, email) = ("price-watcher", "owner@example.com");
    let account = desk.account(name, &["--credits", "2", "--email", email]);
    let org = account["org_id"].as_str().unwrap();
    let keys = desk.site.admin_json(&["key", "list", org]);
    let service = desk.server.client_with(account["api_key"].as_str().unwrap());
    let service = service.with_header("X-BDS-Internal-Billing-Secret", BILLING_SECRET);
    let hold = json!({"path": "/chat", "method": "POST", "amount": "2"});
    let held = service.post("/internal/billing/hold", &hold).expect(200).json();
    let request = held["request"]["id"].clone();
    let _ = service.post("/internal/billing/capture", &json!({"id": request, "amount": "0.25"})).expect(200);
    let known = json!({
        "org": org, "name": name, "email": email, "request": request, "key": keys["data"][0]["id"],
    });
    (desk, known)
}

#[test]
fn everything_is_found_by_one_search() {
    let (desk, known) = charged_desk();
    desk.play("consoleSearch", known);
}

#[test]
fn search_works_with_the_keyboard_alone() {
    let (desk, known) = charged_desk();
    desk.play("consoleSearchKeyboard", known);
}

#[test]
fn tabs_of_an_account_have_its_keys_and_charges() {
    let (desk, known) = charged_desk();
    desk.play("consoleTabs", known);
}

#[test]
fn deliveries_are_read_and_sent_again() {
    let files = Loopback::new();
    let authority = files.authority.display().to_string();
    let settings = [("METERING_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.0/8"), ("METERING_WEBHOOKS__CA_FILE", &authority)];
    let desk = Desk::new(&settings);
    let account = desk.account("holder", &["--credits", "2"]);
    let identity = json!({"certificate": files.identity.certificate, "key": files.identity.key});
    desk.play("consoleWebhooks", json!({"key": account["api_key"], "org": account["org_id"], "identity": identity}));
}

#[test]
fn empty_console_says_so() {
    Desk::new(&[]).play("consoleEmpty", json!({}));
}

#[test]
fn what_needs_attention_leads_to_where_it_is_solved() {
    let desk = Desk::new(&[]);
    let account = desk.account("price-watcher", &["--credits", "2"]);
    desk.play("consoleAttention", json!({"org": account["org_id"]}));
}

#[test]
fn console_is_light() {
    if chromium().is_some() {
        Desk::new(&[]).play("consoleWeights", json!({"most": {"requests": 16, "bytes": 125_000}}));
    }
}
