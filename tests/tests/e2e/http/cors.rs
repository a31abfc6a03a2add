//! Cross-origin requests: pages of origins that the operator listed may call from a browser, all others may not.

use metering_tests::client::Client;
use metering_tests::site::Site;
use serde_json::json;

use crate::mcp::http::{accepting, initialize};
use crate::pages::play;
use crate::support::wire::{BASE, balance};

const PAGE: &str = "https://app.example";
const ELSEWHERE: &str = "https://evil.example";

/// The preflight request that a browser sends before the page's request.
fn preflight(client: &Client, origin: &str, method: &str, path: &str) -> (u16, Option<String>) {
    let client = client
        .clone()
        .with_header("Origin", origin)
        .with_header("Access-Control-Request-Method", method)
        .with_header("Access-Control-Request-Headers", "authorization,content-type");
    let response = client.send("OPTIONS", path, None);
    let allowed = response.header("access-control-allow-origin").map(str::to_owned);
    if allowed.is_some() {
        assert_eq!(response.header("access-control-allow-methods"), Some(method), "{path}");
        assert_eq!(response.header("access-control-allow-headers"), Some("authorization,content-type"), "{path}");
        assert_eq!(response.header("access-control-max-age"), Some("3600"), "{path}");
        assert_eq!(response.header("access-control-allow-credentials"), None, "{path}");
    }
    (response.status, allowed)
}

#[test]
fn only_listed_origins_may_call() {
    let (_site, account, server) = Site::serving_with("1", |server| server.set("METERING_HTTP__ALLOWED_ORIGINS", PAGE));
    let (anonymous, client) = (server.client(), server.client_with(&account.api_key));
    let before = balance(&client);
    let own =
        [("GET", "/credits/balance"), ("POST", "/credits/topup"), ("PATCH", "/keys/current"), ("DELETE", "/keys/x")];
    for (method, path) in own.into_iter().chain([("GET", BASE), ("POST", "/mcp")]) {
        assert_eq!(preflight(&anonymous, PAGE, method, path), (200, Some(PAGE.to_owned())), "{path}");
        let (status, allowed) = preflight(&anonymous, ELSEWHERE, method, path);
        assert!(status >= 400 && allowed.is_none(), "{path}: {status} {allowed:?}");
    }
    assert_eq!(balance(&client), before, "preflight requests are free");

    let page = client.clone().with_header("Origin", PAGE);
    // The page can read refusals too.
    let refused = [anonymous.with_header("Origin", PAGE).get(BASE).expect(401), page.get("/nothing").expect(404)];
    let responses = [page.get("/credits/balance").expect(200), page.get(BASE).expect(200)];
    let initialized = accepting(&page).post("/mcp", &initialize()).expect(200);
    for response in refused.iter().chain(&responses).chain([&initialized]) {
        assert_eq!(response.header("access-control-allow-origin"), Some(PAGE));
        assert_eq!(response.header("access-control-expose-headers"), Some("*"));
        // One header with several values, or several headers.
        let varies = |(name, value): &(String, String)| name == "vary" && value.contains("origin");
        assert!(response.headers.iter().any(varies), "{:?}", response.headers);
    }
    // A response that the browser withholds from the page.
    let response = client.clone().with_header("Origin", ELSEWHERE).get("/credits/balance").expect(200);
    assert_eq!(response.header("access-control-allow-origin"), None);
    let _ = accepting(&client.with_header("Origin", ELSEWHERE)).post("/mcp", &initialize()).expect(403);
}

#[test]
fn origins_listed_for_tools_may_call_only_tools() {
    let (_site, account, server) = Site::serving_with("1", |server| server.set("METERING_MCP__ALLOWED_ORIGINS", PAGE));
    assert_eq!(preflight(&server.client(), PAGE, "POST", "/mcp"), (200, Some(PAGE.to_owned())));
    assert_eq!(preflight(&server.client(), PAGE, "GET", "/sse"), (200, Some(PAGE.to_owned())));
    assert_eq!(preflight(&server.client(), PAGE, "GET", BASE).1, None);
    let page = server.client_with(&account.api_key).with_header("Origin", PAGE);
    let _ = accepting(&page).post("/mcp", &initialize()).expect(200);
    assert_eq!(page.get("/credits/balance").expect(200).header("access-control-allow-origin"), None);
}

#[test]
fn browser_lets_only_listed_origins_call() {
    let (site, pages) = (Site::verified(), [Site::new(), Site::new()]);
    let account = site.account("1");
    // Two servers, for pages of two other origins.
    let pages = pages.each_ref().map(|site| site.server().start());
    let [page, elsewhere] = pages.each_ref().map(|server| format!("http://{}", server.address()));
    let server = site.server().set("METERING_HTTP__ALLOWED_ORIGINS", &page).start();
    play("crossOrigin", &server, json!({"key": account.api_key, "page": page, "elsewhere": elsewhere}));
}
