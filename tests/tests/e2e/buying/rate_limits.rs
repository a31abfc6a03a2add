//! Limits per address and per wallet, and which forwarded addresses count.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

fn server(site: &Site, settings: &[(&str, &str)]) -> Server {
    settings.iter().fold(site.server(), |setup, (name, value)| setup.set(name, value)).start()
}

/// Requests a quote: the response is 503, because nothing is sold, or 429.
fn request_quote(client: &Client, wallet: u8) -> (u16, Option<u64>) {
    let body = json!({"agent_name": "a", "plan_id": "p", "chain_id": 1, "token_symbol": "T",
        "payer_address": format!("0x{}", format!("{wallet:02x}").repeat(20))});
    let response = client.post("/signup/pay/quote", &body);
    (response.status, response.header("retry-after").map(|seconds| seconds.parse().unwrap()))
}

#[test]
fn address_limit_ignores_forged_forwarded_headers() {
    let site = Site::new();
    let server = server(&site, &[("METERING_LIMITS__SIGNUP_PER_IP", "2/1h")]);
    let client = server.client();
    assert_eq!((request_quote(&client, 1).0, request_quote(&client, 2).0), (503, 503));
    let (status, seconds) = request_quote(&client.clone().with_header("X-Forwarded-For", "6.6.6.6"), 3);
    assert_eq!(status, 429);
    assert!(seconds.is_some_and(|seconds| (1_790..=1_800).contains(&seconds)), "{seconds:?}");
    // Claims and top-ups share this limit, recovery does not.
    let claim = client.post("/signup/pay/claim", &json!({}));
    assert_eq!((claim.status, claim.error().as_str()), (429, "rate_limited"));
    assert_eq!(client.post("/credits/topup", &json!({})).status, 429);
    assert_eq!(client.post("/api-key/recover/verify", &json!({})).status, 400);
    for path in ["/credits/plans", "/health"] {
        let _ = client.get(path).expect(200);
    }
}

#[test]
fn challenges_and_their_responses_share_one_rate_limit() {
    let site = Site::new();
    let server = server(&site, &[("METERING_LIMITS__RECOVERY_PER_IP", "2/1h")]);
    let client = server.client();
    let verify = || client.post("/api-key/recover/verify", &json!({"nonce": "n", "signature": "0xab"}));
    let challenge = || client.post("/api-key/recover/challenge", &json!({"address": format!("0x{}", "07".repeat(20))}));
    assert!(challenge().status != 429 && verify().status != 429);
    assert_eq!((challenge().error(), verify().error()), ("rate_limited".to_owned(), "rate_limited".to_owned()));
    assert_eq!(request_quote(&client, 1).0, 503, "signups have their own quota");
}

#[test]
fn only_trusted_proxies_can_distinguish_clients() {
    let site = Site::new();
    let quota = ("METERING_LIMITS__SIGNUP_PER_IP", "1/1h");
    let direct = server(&site, &[quota, ("METERING_HTTP__TRUSTED_PROXIES", "10.0.0.0/8, ::1")]);
    assert_eq!(request_quote(&direct.client(), 1).0, 503);
    for header in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"] {
        for value in ["6.6.6.6", "for=6.6.6.6", "10.0.0.1", "::1"] {
            assert_eq!(request_quote(&direct.client().with_header(header, value), 1).0, 429, "{header}: {value}");
        }
    }
    drop(direct);
    let server = server(&site, &[quota, ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")]);
    // lines, whether that client was counted before
    let table: [(&[&str], bool); 12] = [
        (&["1.1.1.1"], false),
        (&["1.1.1.1"], true),
        (&["2.2.2.2"], false),
        // Addresses that a client adds to the left of its own have no effect.
        (&["9.9.9.9, 1.1.1.1"], true),
        (&["9.9.9.9", "1.1.1.1"], true),
        (&["2.2.2.2, 3.3.3.3, 10.1.2.3"], false),
        (&["3.3.3.3:4711"], true),
        (&["2001:db8:0:1::1"], false),
        (&["2001:db8:0:1:ffff::2"], true),
        (&["2001:db8:0:2::1"], false),
        // An unreadable address counts as the proxy's own.
        (&["unknown"], false),
        (&["4.4.4.4, _hidden"], true),
    ];
    for (lines, seen) in table {
        let client = lines.iter().fold(server.client(), |client, line| client.with_header("X-Forwarded-For", line));
        assert_eq!(request_quote(&client, 1).0, if seen { 429 } else { 503 }, "{lines:?}");
    }
}

#[test]
fn network_limit_applies_per_wallet() {
    let site = Site::new();
    let server = server(&site, &[("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1")]);
    let from = |address: &str| server.client().with_header("X-Forwarded-For", address);
    for neighbour in 0..20 {
        assert_eq!(request_quote(&from(&format!("6.6.6.{neighbour}")), 7).0, 503);
    }
    let (status, seconds) = request_quote(&from("6.6.6.99"), 7);
    assert_eq!(status, 429);
    assert!(seconds.is_some_and(|seconds| (170..=180).contains(&seconds)), "{seconds:?}");
    assert_eq!(request_quote(&from("6.6.6.99"), 8).0, 503, "another wallet");
    assert_eq!(request_quote(&from("1.1.1.1"), 7).0, 503, "its owner, from elsewhere");
    let wallet = format!("0x{}", "07".repeat(20));
    let challenge = from("6.6.6.99").post("/api-key/recover/challenge", &json!({"address": wallet}));
    assert_ne!(challenge.status, 429, "the limit on quotes does not apply to rotation");
}

#[test]
fn wallet_limit_applies_across_addresses() {
    let site = Site::new();
    let settings = [("METERING_LIMITS__PER_WALLET", "2/1h"), ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let server = server(&site, &settings);
    let from = |address: &str| server.client().with_header("X-Forwarded-For", address);
    assert_eq!((request_quote(&from("1.1.1.1"), 7).0, request_quote(&from("2.2.2.2"), 7).0), (503, 503));
    assert_eq!(request_quote(&from("3.3.3.3"), 7).0, 429);
    assert_eq!(request_quote(&from("3.3.3.3"), 8).0, 503);
    for (spelling, status) in [("ab", 503), ("AB", 503), ("ab", 429), ("AB", 429)] {
        let body = json!({"agent_name": "a", "plan_id": "p", "chain_id": 1, "token_symbol": "T",
            "payer_address": format!("0x{}", spelling.repeat(20))});
        assert_eq!(from("3.3.3.3").post("/signup/pay/quote", &body).status, status, "{spelling}");
    }
    let wallet = format!("0x{}", "07".repeat(20));
    let challenge = |address: &str| from(address).post("/api-key/recover/challenge", &json!({"address": wallet}));
    assert_eq!(challenge("4.4.4.4").error(), "rate_limited");
    // Responding to a challenge does not count, because the owner's signature must get through.
    let body = json!({"address": wallet, "nonce": "n", "signature": "0xab"});
    assert_eq!(from("4.4.4.4").post("/api-key/recover/verify", &body).expect(404).error(), "not_found");
}

/// An account with many addresses is still one account. Requests without a key count for no account.
#[test]
fn top_up_quotes_are_limited_per_account_across_addresses() {
    let site = Site::new();
    let settings = [
        ("METERING_LIMITS__TOPUP_QUOTES_PER_ACCOUNT", "2/1h"),
        ("METERING_LIMITS__TOPUP_POLLS_PER_ACCOUNT", "3/1h"),
        ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let server = server(&site, &settings);
    let [one, other] = ["one", "other"].map(|name| {
        let made = site.admin_json(&["account", "create", "--agent-name", name]);
        made["api_key"].as_str().unwrap().to_owned()
    });
    let from = |address: u8, key: &str| {
        server.client_with(key).with_header("X-Forwarded-For", &format!("{address}.{address}.{address}.{address}"))
    };
    let request =
        |address, key: &str| from(address, key).post("/credits/topup/quote", &json!({"plan_id": "p", "chain_id": 1}));
    let path = format!("/credits/topup/quote?quote_id=tuq_{}", "0".repeat(64));
    let poll = |address, key: &str| from(address, key).get(&path);
    for address in 1..=5 {
        assert_eq!(server.client().get(&path).status, 401);
        assert_eq!(request(address, &one).status == 429, address > 2);
        assert_eq!(poll(address, &one).status == 429, address > 3);
    }
    for refused in [request(9, &one), poll(9, &one)] {
        assert_eq!((refused.status, refused.error().as_str()), (429, "rate_limited"));
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1_100..=1_800).contains(&seconds), "{seconds}");
        assert_eq!(refused.json()["retry_after_sec"], seconds);
    }
    assert_ne!(request(9, &other).status, 429, "another account");
    assert_ne!(poll(9, &other).status, 429);
}
