//! The pages in a real browser: each test runs a scene of `tests/browser/pages.mjs`.

mod buying;
mod children;
mod console;
mod guides;
mod held;
mod keys;
mod months;
mod reference;
mod signin;
mod signing;
mod volumes;
mod webhooks;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use metering_tests::chain::Chain;
use metering_tests::ports::free_address;
use metering_tests::server::Server;
use metering_tests::site::Site;
use metering_tests::worker;
use serde_json::{Value, json};

use crate::signup::server;
use crate::support::shop::{Kind, STARTER, Shop};
use crate::support::upstream::{Upstream, catalogue};

/// The path of Chromium, or `None` if these tests are disabled.
fn chromium() -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .flat_map(|folder| [folder.join("chromium"), folder.join("chromium-browser")])
        .find(|file| file.is_file());
    if metering_tests::skipped::by("TESTS_SKIP_BROWSER") {
        return None;
    }
    Some(found.expect("Chromium must be installed; run ./test.sh"))
}

/// Whether there is a browser for running scenes.
pub(crate) fn with_browser() -> bool {
    chromium().is_some()
}

/// The folder of the screenshots that the documents show.
fn screens() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/screens")
}

/// `just screens` takes them. A scene fails if it does not take a screen that is listed for it.
#[test]
fn documented_screens_are_those_that_scenes_take() {
    let browser = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("browser");
    let listed = std::fs::read_to_string(browser.join("screens.json")).unwrap();
    let listed: BTreeMap<String, String> = serde_json::from_str(&listed).unwrap();
    let listed: BTreeSet<String> = listed.into_keys().map(|name| format!("{name}.png")).collect();
    let files = std::fs::read_dir(screens()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), listed, "the files in docs/screens and tests/browser/screens.json");
    let documents = std::fs::read_to_string(screens().join("../pages.md")).unwrap();
    let shown = documents.split("](screens/").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    assert_eq!(shown.collect::<BTreeSet<_>>(), listed, "the pictures in docs/pages.md and tests/browser/screens.json");
}

/// Runs a scene; if it fails, panics with its output.
pub(crate) fn play(scene: &str, server: &Server, more: Value) {
    let Some(chromium) = chromium() else { return };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("browser");
    let mut request = json!({"scene": scene, "base": format!("http://{}", server.address())});
    if let Some(shots) = std::env::var_os("BROWSER_SHOTS") {
        request["shots"] = shots.to_string_lossy().into_owned().into();
    }
    if std::env::var_os("TESTS_SCREENS").is_some() {
        request["screens"] = screens().to_string_lossy().into_owned().into();
    }
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let played = worker::ask(Command::new("node").arg(folder.join("pages.mjs")).arg(chromium), &request);
    println!("{}", played.unwrap_or_else(|error| panic!("{scene}: {error}")));
}

#[test]
fn new_user_gets_a_key_and_makes_a_first_call() {
    let site = Site::new();
    // The default proof of work, not the faster one of the tests.
    let server = server(&site, &[("METERING_SIGNUP__ALTCHA_COST", "5000")]);
    play("signup", &server, json!({}));
    assert!(!server.log().contains("sk_live_"));
    site.verify();
}

#[test]
fn every_accent_gives_readable_texts() {
    let site = Site::new();
    play("accents", &server(&site, &[]), json!({}));
}

#[test]
fn account_page_shows_usage() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("dashboard", &server, json!({"key": account(&site, "holder", "2"), "empty": account(&site, "holder", "0")}));
    site.verify();
}

/// The key of a new account.
fn account(site: &Site, name: &str, credits: &str) -> Value {
    site.admin_json(&["account", "create", "--agent-name", name, "--credits", credits])["api_key"].clone()
}

#[test]
fn pages_of_an_empty_store_are_accessible_in_both_schemes_and_widths() {
    let site = Site::new();
    play("emptyStore", &server(&site, &[]), json!({"key": account(&site, "holder", "0")}));
}

#[test]
fn late_responses_after_sign_out_change_nothing() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("late", &server, json!({"key": account(&site, "holder", "2"), "other": account(&site, "other", "2")}));
}

#[test]
fn account_tabs_load_after_a_second_try() {
    let site = Site::new();
    play("missingTabs", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn upstream_page_cannot_read_the_account_pages_key() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let key = site.account("1").api_key;
    let serving = || site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    play("upstreamPage", &serving().start(), json!({"key": key, "sandboxed": true}));
    // Without the policy the page can read it. This shows what the policy is for, and that the scene would notice.
    let bare = serving().set("METERING_GATEWAY__CONTENT_SECURITY_POLICY", "").start();
    play("upstreamPage", &bare, json!({"key": key, "sandboxed": false}));
}

#[test]
fn pages_on_their_own_origin_share_it_with_no_upstream() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let key = site.account("1").api_key;
    let port = free_address().port();
    let (pages, api) = (format!("account.localhost:{port}"), format!("api.localhost:{port}"));
    let server = site
        .server_at(&format!("127.0.0.1:{port}"))
        .set("METERING_PAGES_URL", &format!("http://{pages}"))
        .set("METERING_PUBLIC_URL", &format!("http://{api}"))
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let ask = |host: &str, path: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n");
        let response = metering_tests::client::exchange(server.address(), request.as_bytes()).unwrap();
        let response = String::from_utf8(response).unwrap();
        let status: u16 = response.split(' ').nth(1).unwrap().parse().unwrap();
        let location = response.lines().find_map(|line| line.strip_prefix("location: ").map(str::to_owned));
        (status, location)
    };
    // host, path, status
    let table = [
        (&pages, "/metering/account", 200),
        (&pages, "/verify?code=ABCD-EFGH", 200),
        (&pages, "/credits/balance", 200),
        (&pages, "/health", 200),
        (&pages, "/api/page", 404),
        (&pages, "/api/echo/word", 404),
        (&api, "/api/page", 200),
        (&api, "/api/echo/word", 200),
        (&api, "/credits/balance", 200),
        (&api, "/health", 200),
        (&api, "/metering/account", 302),
        (&api, "/verify?code=ABCD-EFGH", 302),
        (&api, "/", 302),
    ];
    for (host, path, status) in table {
        let (found, location) = ask(host, path);
        assert_eq!(found, status, "{host}{path}");
        if status == 302 {
            assert_eq!(location, Some(format!("http://{pages}{path}")), "{host}{path}");
        }
    }
    let started = server.client().post("/signup/initiate", &json!({"email": "a@example.com", "agent_name": "a"}));
    let started = started.expect(201).json();
    assert_eq!(started["verification_url"], format!("http://{pages}/verify"));
}

#[test]
fn long_lists_are_collapsed_and_wide_ones_scroll() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("longLists", &server, json!({"key": account(&site, "holder", "1")}));
}

#[test]
fn signup_continues_after_a_lost_response() {
    let site = Site::new();
    play("lostResponses", &server(&site, &[]), json!({}));
    site.verify();
}

#[test]
fn forms_are_not_sent_before_their_script_loads() {
    let site = Site::new();
    play("withoutScripts", &server(&site, &[]), json!({}));
}

#[test]
fn longest_texts_fit_the_narrowest_screen() {
    let site = Site::new();
    let word = "W".repeat(40);
    let terms = format!(
        "# Terms\n\n{}\n\n```\n{}\n```\n\n|{}\n|{}\n|{}\n",
        "x".repeat(200),
        "code ".repeat(60),
        "a column |".repeat(12),
        "---|".repeat(12),
        "a cell |".repeat(12),
    );
    let terms = site.write("terms.md", &terms);
    let settings = [
        ("METERING_BRAND__NAME", word.as_str()),
        ("METERING_BRAND__HEADLINE", word.as_str()),
        ("METERING_BRAND__TAGLINE", word.as_str()),
        ("METERING_TERMS__FILE", terms.to_str().unwrap()),
    ];
    let server = server(&site, &settings);
    let address = format!("0x{}", "07".repeat(20));
    let more = json!({"key": account(&site, "holder", "1"), "account": address, "terms": "/agents-tos/1"});
    play("narrow", &server, more);
}

#[test]
fn user_approves_a_terminal_signup() {
    let site = Site::new();
    play("device", &server(&site, &[]), json!({}));
    site.verify();
}

#[test]
fn browser_wallet_pays_and_rotates() {
    let Some(shop) = Shop::with(Chain::setup(), "1", "") else { return };
    let customer = shop.chain.wallet().account(3);
    shop.chain.wallet().mint(&shop.token, &customer.address(), 100_000_000);
    let key = shop.signed_up(Kind::Token, &customer);
    let other = shop.chain.wallet().account(4);
    shop.chain.wallet().mint(&shop.token, &other.address(), 100_000_000);
    let hash = shop.chain.wallet().transfer(&other, &shop.token, &shop.recipient.address(), STARTER);
    let (account, payer) = (customer.checksummed(), other.checksummed());
    let more = json!({"key": key, "node": shop.chain.url(), "account": account, "payer": payer, "hash": hash});
    play("wallet", &shop.server, more);
}

#[test]
fn declining_or_silent_wallet_loses_nothing() {
    let Some(shop) = Shop::with(Chain::setup(), "1", "") else { return };
    let customer = shop.chain.wallet().account(3);
    shop.chain.wallet().mint(&shop.token, &customer.address(), 100_000_000);
    let key = shop.signed_up(Kind::Token, &customer);
    let more = json!({"key": key, "node": shop.chain.url(), "account": customer.checksummed()});
    play("walletFailures", &shop.server, more);
}

#[test]
fn rounded_figures_keep_their_exact_value() {
    let site = Site::new();
    play("figures", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn runway_needs_enough_days() {
    let site = Site::new();
    play("runway", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn account_page_shows_history_and_downloads_it() {
    let site = Site::new();
    play("history", &server(&site, &[]), json!({"key": account(&site, "holder", "2"), "name": "holder"}));
}

#[test]
fn usage_is_split_by_route_and_key() {
    let site = Site::new();
    play("usageSplit", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn usage_is_filtered_by_mouse_and_keyboard() {
    let site = Site::new();
    play("usageFilters", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn month_of_usage_fits_phones_and_desktops() {
    let site = Site::new();
    play("looks", &server(&site, &[]), json!({"key": account(&site, "holder", "60")}));
}

#[test]
fn key_replaces_itself_even_if_the_response_is_lost() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("replace", &server, json!({"key": account(&site, "holder", "2")}));
    assert!(!server.log().contains("sk_live_"));
    site.verify();
}

#[test]
fn agents_are_connected_with_each_client() {
    let site = Site::new();
    play("connect", &server(&site, &[]), json!({"key": account(&site, "holder", "2"), "tools": 24}));
}

#[test]
fn receipt_is_shown_and_printed() {
    let seller = "[operator]\nname = 'Acme Data Ltd'\naddress = '''\n1 High Street\nLondon\n'''\ntax_id = 'GB 123'";
    let rates = "[receipts.currency]\ncode = 'EUR'\nsource = 'ECB'\nas_of = '2026-11-27'\n\
                 rates = { USDC = '0.8612' }\n[receipts.tax]\nname = 'VAT'\nrate = '0.19'";
    let Some(shop) = Shop::with(Chain::setup(), "1", &format!("{seller}\n{rates}")) else { return };
    let key = shop.signed_up(Kind::Token, &shop.customer());
    play("receipt", &shop.server, json!({"key": key, "seller": "Acme Data Ltd"}));
}

#[test]
fn billing_details_are_added_once_to_a_receipt_that_names_nobody() {
    let Some(shop) = Shop::with(Chain::setup(), "1", "") else { return };
    let key = shop.signed_up(Kind::Token, &shop.customer());
    play("billingDetails", &shop.server, json!({"key": key}));
}
