//! Many sessions, clients that vanish, and idle sessions: everything they held is released.

use std::time::{Duration, Instant};

use metering_tests::mcp::{Agent, Sdk, Transport};
use metering_tests::site::Site;
use serde_json::json;

use crate::mcp::http::{accepting, call, initialize, post, sse_session, streamable_session};
use crate::mcp::{BASE_TOOL, metric, wait_for_sessions};
use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance, usage_events};

#[test]
fn two_hundred_sessions_are_served_and_charged_exactly() {
    let site = Site::new();
    let server = site.server().start();
    let accounts: Vec<_> = (0..10).map(|_| site.account("1")).collect();
    let agents: Vec<_> = Sdk::ALL.into_iter().filter_map(Agent::start).collect();
    if agents.is_empty() {
        return;
    }
    // Ten accounts with twenty sessions each: five of every client with every transport.
    let clients: Vec<_> = agents.iter().flat_map(|agent| Transport::ALL.map(|transport| (agent, transport))).collect();
    let opening: Vec<_> = (0..200)
        .map(|index| {
            let (agent, transport) = clients[index % 4];
            agent.begin_connect(&server, transport, &accounts[index / 20].api_key)
        })
        .collect();
    let sessions = opening.into_iter().map(|(session, opened)| {
        let _ = opened.wait().unwrap_or_else(|failure| panic!("{failure:?}"));
        session
    });
    let sessions: Vec<_> = sessions.collect();
    let open = metric(&server, "metering_mcp_sessions");
    assert!((100..=200).contains(&open), "one session per client with HTTP+SSE: {open}");
    for round in 1..=2_u64 {
        let called: Vec<_> = sessions.iter().map(|session| session.begin_call(BASE_TOOL, &json!({}))).collect();
        for called in called {
            let structured = called.wait().unwrap_or_else(|failure| panic!("{failure:?}")).expect_success();
            assert_eq!(structured["data"]["sample"], true);
        }
        for account in &accounts {
            let client = server.client_with(&account.api_key);
            let calls = i64::try_from(20 * round).unwrap();
            assert_eq!((balance(&client), usage_events(&client)), (amount(CREDIT - calls * BASE_CALL), 20 * round));
        }
    }
    site.verify();
    for agent in agents {
        agent.kill();
    }
    wait_for_sessions(&server, 0);
}

#[test]
fn killed_client_leaves_no_session_or_stream() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let server = site
        .server()
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .set("METERING_MCP__STREAM_WAIT", "10m")
        .start();
    // Each client has its own process; they start in parallel.
    let clients = Sdk::ALL.into_iter().flat_map(|sdk| Transport::ALL.map(|transport| (Agent::start(sdk), transport)));
    let clients: Vec<_> = clients.collect();
    for (agent, transport) in clients {
        let Some(agent) = agent else { return };
        let (sdk, account) = (agent.sdk(), site.account("1"));
        let idle = agent.connect(&server, transport, &account.api_key);
        let busy = agent.connect(&server, transport, &account.api_key);
        let _ = idle.call("bds_api_echo", &json!({})).expect_success();
        let called = busy.begin_call("bds_api_events", &json!({"max_events": 3}));
        upstream.wait_for_streams(1);
        upstream.send("one");
        assert!(transport == Transport::Streamable || metric(&server, "metering_mcp_sessions") == 2);
        agent.kill();
        upstream.wait_for_streams(0);
        wait_for_sessions(&server, 0);
        drop(called);
        // The opened stream was charged once; no one waits for its events.
        let client = server.client_with(&account.api_key);
        assert_eq!(balance(&client), amount(CREDIT - BASE_CALL - 72_000_000), "{sdk:?} {transport:?}");
    }
}

#[test]
fn aborted_calls_of_the_official_client_free_their_streams() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let Some(agent) = Agent::start(Sdk::TypeScript) else { return };
    let account = site.account("1");
    let server = site
        .server()
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .set("METERING_MCP__STREAM_WAIT", "10m")
        .start();
    let session = agent.connect(&server, Transport::Streamable, &account.api_key);
    // As many as a key may have at once, twice.
    for _ in 0..2 {
        let calls: Vec<_> = (0..16).map(|_| session.begin_call("bds_api_events", &json!({}))).collect();
        upstream.wait_for_streams(16);
        assert_eq!(session.abort(), 16);
        upstream.wait_for_streams(0);
        assert!(calls.into_iter().all(|call| call.wait().is_err()));
    }
    session.close();
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 32);
    assert!(!server.log().contains("ERROR"), "clients that hang up are ordinary: {}", server.log());
}

#[test]
fn closing_a_stream_call_frees_the_upstream() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let server = site
        .server()
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .set("METERING_MCP__STREAM_WAIT", "10m")
        .start();
    let client = server.client_with(&account.api_key);
    let (stream, endpoint) = sse_session(&client);
    for id in 2..5 {
        assert_eq!(post(&client, &endpoint, &call(id, "bds_api_events")).status, 202);
    }
    upstream.wait_for_streams(3);
    // One of them is cancelled by a message.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    assert_eq!(post(&client, &endpoint, &cancel).status, 202);
    upstream.wait_for_streams(2);
    drop(stream);
    upstream.wait_for_streams(0);
    wait_for_sessions(&server, 0);
    assert_eq!(post(&client, &endpoint, &call(9, "bds_api_echo")).status, 404, "the session is gone");
    assert_eq!(balance(&client), "0.97");
}

#[test]
fn only_idle_sessions_end() {
    let site = Site::new();
    let (account, other) = (site.account("1"), site.account("1"));
    let server = site.server().set("METERING_MCP__IDLE_TIMEOUT", "5s").start();
    let client = server.client_with(&account.api_key);
    let started = Instant::now();
    let (idle, endpoint) = sse_session(&client);
    let busy_client = server.client_with(&other.api_key);
    let (mut busy, busy_endpoint) = sse_session(&busy_client);
    let _ = streamable_session(&client);
    let watcher = std::thread::spawn(move || {
        let ended = idle.finish();
        (ended.is_ok(), started.elapsed())
    });
    for id in 2.. {
        if watcher.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(post(&busy_client, &busy_endpoint, &call(id, BASE_TOOL)).status, 202);
        let _ = busy.read_until("credit_balance");
    }
    let (in_good_order, after) = watcher.join().unwrap();
    assert!(in_good_order && after >= Duration::from_secs(5), "{after:?}");
    assert_eq!(post(&client, &endpoint, &call(2, BASE_TOOL)).status, 404);
    wait_for_sessions(&server, 1);
    drop(busy);
    wait_for_sessions(&server, 0);
    assert_eq!(balance(&client), "1");
}

#[test]
fn sessions_are_limited_per_key_and_per_server() {
    let site = Site::new();
    let accounts = [(); 3].map(|()| site.account("1"));
    let server =
        site.server().set("METERING_MCP__MAX_SESSIONS_PER_KEY", "3").set("METERING_MCP__MAX_SESSIONS", "5").start();
    let [first, second, third] = accounts.each_ref().map(|account| server.client_with(&account.api_key));
    let mut open: Vec<_> = (0..3).map(|_| sse_session(&first)).collect();
    let refused = first.get("/sse").expect(429);
    assert_eq!(refused.error(), "too_many_sessions");
    assert_eq!(refused.json()["retry_after_sec"].to_string(), refused.header("retry-after").unwrap());
    assert!(!refused.json()["message"].as_str().unwrap().is_empty());
    open.extend((0..2).map(|_| sse_session(&second)));
    assert_eq!(
        second.get("/sse").expect(429).error(),
        "too_many_sessions",
        "no other account has more sessions than this one would"
    );
    assert_eq!(metric(&server, "metering_mcp_sessions"), 5);
    // A new client takes the slot of the longest-idle session of the account with the most sessions.
    let _newcomer = sse_session(&third);
    let (stalest, endpoint) = open.remove(0);
    let _ = stalest.finish();
    assert_eq!(post(&first, &endpoint, &call(3, BASE_TOOL)).status, 404);
    assert_eq!(metric(&server, "metering_mcp_sessions"), 5);
    // The slot of a closed session becomes free.
    drop(open.remove(0));
    wait_for_sessions(&server, 4);
    let _again = sse_session(&third);
    // Open sessions are still served.
    assert_eq!(post(&second, &open[2].1, &call(3, BASE_TOOL)).status, 202);
    let _ = open[2].0.read_until("credit_balance");
}

#[test]
fn server_stops_promptly_with_open_sessions() {
    let (site, upstream, account, mut server) = served("1");
    let client = server.client_with(&account.api_key);
    let open: Vec<_> = (0..10).map(|_| sse_session(&client)).collect();
    for (_, endpoint) in &open[..2] {
        assert_eq!(post(&client, endpoint, &call(2, "bds_api_events")).status, 202);
    }
    let session = accepting(&streamable_session(&client));
    let streaming = std::thread::spawn(move || {
        let message = call(2, "bds_api_events").to_string();
        drop(session.try_send("POST", "/mcp", Some(message.as_bytes())));
    });
    upstream.wait_for_streams(3);
    let started = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(started.elapsed() < Duration::from_secs(18), "{:?}", started.elapsed());
    for (stream, _) in open {
        let _ = stream.finish();
    }
    streaming.join().unwrap();
    upstream.wait_for_streams(0);
    drop(server);
    let server = site.server().start();
    let _ = post(&server.client_with(&account.api_key), "/mcp", &initialize()).expect(200);
}
