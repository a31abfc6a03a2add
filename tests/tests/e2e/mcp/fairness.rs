//! Accounts that take as much of the MCP server as they can must not lock out others.

use metering_tests::client::Client;
use metering_tests::response::OpenResponse;
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::mcp::http::{accepting, call, initialize, post, sse_session};
use crate::mcp::{BASE_TOOL, metric};
use crate::support::upstream::{Upstream, catalogue};

/// Opens as many sessions as the account can get.
fn open_sessions(client: &Client) -> Vec<OpenResponse> {
    let opened = std::iter::repeat_with(|| client.open("/sse"));
    opened.take(40).take_while(|stream| stream.status == 200).collect()
}

#[track_caller]
fn assert_served(server: &Server, key: &str) {
    let client = server.client_with(key);
    let (mut stream, endpoint) = sse_session(&client);
    assert_eq!(post(&client, &endpoint, &call(2, BASE_TOOL)).status, 202);
    let _ = stream.read_until("credit_balance");
    let _ = post(&client, "/mcp", &initialize()).expect(200);
}

#[test]
fn accounts_without_credits_cannot_lock_others_out() {
    let site = Site::verified();
    let (empty, paying) = ([(); 32].map(|()| site.account("0")), site.account("1"));
    let server = site.server().set("METERING_MCP__MAX_SESSIONS", "100").start();
    let held: Vec<_> = empty.iter().map(|account| open_sessions(&server.client_with(&account.api_key))).collect();
    assert!(held.iter().all(|streams| streams.len() <= 4), "an account without credit can hold few");
    assert_eq!(metric(&server, "metering_mcp_sessions"), 100, "together they can fill the server");
    assert_served(&server, &paying.api_key);
}

#[test]
fn accounts_with_credit_share_the_sessions_fairly() {
    let site = Site::verified();
    let accounts = [(); 8].map(|()| site.account("1"));
    let server = site.server().set("METERING_MCP__MAX_SESSIONS", "40").start();
    let [first, second, new_accounts @ ..] = &accounts;
    let greedy = [first, second].map(|account| open_sessions(&server.client_with(&account.api_key)));
    assert_eq!(metric(&server, "metering_mcp_sessions"), 40, "{:?}", greedy.each_ref().map(Vec::len));
    let kept: Vec<_> =
        new_accounts.iter().map(|account| open_sessions(&server.client_with(&account.api_key))).collect();
    assert!((5..=6).contains(&kept[5].len()), "eight accounts have five each: {}", kept[5].len());
    for account in new_accounts {
        // Accounts with their share of sessions are served within it.
        let _ = post(&server.client_with(&account.api_key), "/mcp", &initialize()).expect(200);
    }
}

#[test]
fn sessions_and_calls_have_separate_slots() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let accounts = [(); 3].map(|()| site.account("1"));
    let server = site
        .server()
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .set("METERING_MCP__MAX_SESSIONS", "3")
        .set("METERING_MCP__MAX_CALLS", "6")
        .set("METERING_MCP__MAX_CALLS_PER_KEY", "6")
        .set("METERING_MCP__STREAM_WAIT", "10m")
        .start();
    let [greedy, other, third] = accounts.each_ref().map(|account| server.client_with(&account.api_key));
    // Three calls leave three slots; a fourth call would give this account more than any other could have.
    for count in 1..=3 {
        let client = accepting(&greedy);
        std::thread::spawn(move || {
            let message = call(2, "bds_api_events").to_string();
            drop(client.try_send("POST", "/mcp", Some(message.as_bytes())));
        });
        upstream.wait_for_streams(count);
    }
    assert_eq!(post(&greedy, "/mcp", &initialize()).expect(429).error(), "too_many_sessions");
    let _ = post(&other, "/mcp", &initialize()).expect(200);
    let sessions: Vec<_> = [&greedy, &other, &third].into_iter().map(|client| client.open("/sse")).collect();
    assert!(sessions.iter().all(|stream| stream.status == 200), "calls use no session slots");
    assert_eq!(greedy.get("/sse").expect(429).error(), "too_many_sessions");
    let _ = post(&third, "/mcp", &initialize()).expect(200);
}
