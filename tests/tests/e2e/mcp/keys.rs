//! A session belongs to the key that opened it, and ends with it.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::mcp::{Session, Transport};
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::http::{call, initialize, post, sse_session, streamable_session};
use crate::mcp::{BASE_TOOL, for_each_client, wait_for_sessions};
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance};

/// How soon everything that belongs to an old key must end; the protocol promises this for streams.
const END_WITHIN: Duration = Duration::from_secs(25);

/// Asserts that a session is dead: it gets no results, and HTTP responded with 401 or the session is gone.
#[track_caller]
fn assert_dead(session: &Session, transport: Transport) {
    let outcome = session.try_call(BASE_TOOL, &json!({}));
    let failure = outcome.expect_err("the key is dead");
    let is_told = failure.message.contains("this API key is not live");
    assert!(is_told || transport == Transport::Sse, "{transport:?}: {failure:?}");
    let statuses = session.statuses();
    // Opening the session had status 200 or 202. A client that saw its stream end may not send another request.
    let refused = statuses.contains(&401);
    assert!(refused || transport == Transport::Sse, "{transport:?}: {statuses:?}");
}

#[test]
fn rotated_key_ends_its_session_and_new_key_opens_one() {
    let site = Site::verified();
    let server = site.server().start();
    for_each_client(|agent, transport| {
        let account = site.account("1");
        let session = agent.connect(&server, transport, &account.api_key);
        let _ = session.call(BASE_TOOL, &json!({})).expect_success();
        let issued = site.admin_json(&["account", "rotate-key", &account.org_id]);
        let new_key = issued["api_key"].as_str().unwrap();
        assert_dead(&session, transport);
        assert!(
            agent.try_connect(&server, transport, &account.api_key).is_err(),
            "{transport:?}: the old key opens nothing"
        );
        let session = agent.connect(&server, transport, new_key);
        let _ = session.call(BASE_TOOL, &json!({})).expect_success();
        session.close();
        assert_eq!(balance(&server.client_with(new_key)), amount(CREDIT - 2 * BASE_CALL));
    });
}

#[test]
fn session_of_a_dead_key_is_refused_at_once_and_ends() {
    let site = Site::new();
    let (account, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    let (stream, endpoint) = sse_session(&client);
    let (mut others, others_endpoint) = sse_session(&server.client_with(&other.api_key));
    let _ = site.admin_json(&["account", "rotate-key", &account.org_id]);
    let rotated = Instant::now();
    let refused = post(&client, &endpoint, &call(2, BASE_TOOL)).expect(401);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer error=\"invalid_token\", "), "{refused:?}");
    let _ = client.get("/sse").expect(401);
    let _ = post(&client, "/mcp", &initialize()).expect(401);
    let _ = stream.finish().expect("the body ends properly");
    assert!(rotated.elapsed() < END_WITHIN, "{:?}", rotated.elapsed());
    // The other account's session continues.
    assert_eq!(post(&server.client_with(&other.api_key), &others_endpoint, &call(2, BASE_TOOL)).status, 202);
    assert!(others.read_until("credit_balance").contains("\"id\":2"));
    assert_eq!(balance(&server.client_with(&other.api_key)), amount(CREDIT - BASE_CALL));
    wait_for_sessions(&server, 1);
}

#[test]
fn clients_that_look_for_oauth_where_there_is_none_are_told_about_the_key() {
    let site = Site::new();
    let server = site.server().set("METERING_OAUTH__ENABLED", "false").start();
    let client = server.client_with("sk_live_unknown");
    let _ = post(&client, "/mcp", &initialize()).expect(401);
    for (method, path) in [
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/.well-known/openid-configuration"),
        ("POST", "/register"),
    ] {
        let response = server.client().send(method, path, Some(b"{}")).expect(404);
        let body = response.json();
        assert_eq!((&body["error"], &body["error_description"]), (&json!("not_found"), &body["message"]), "{path}");
        assert!(response.text().contains("no OAuth") && response.text().contains("Authorization: Bearer"), "{path}");
    }
}

#[test]
fn stream_call_ends_with_its_key() {
    let site = Site::new();
    let server = site.server().set("METERING_SAMPLE__BLOCK_TIME", "1h").set("METERING_MCP__STREAM_WAIT", "1m").start();
    for transport in Transport::ALL {
        let account = site.account("1");
        let client = server.client_with(&account.api_key);
        let started = match transport {
            Transport::Sse => {
                let (stream, endpoint) = sse_session(&client);
                assert_eq!(post(&client, &endpoint, &call(2, "bds_mpp_stream_allTrades")).status, 202);
                thread::spawn(move || drop(stream.finish()))
            }
            Transport::Streamable => {
                let session = streamable_session(&client);
                thread::spawn(move || drop(post(&session, "/mcp", &call(2, "bds_mpp_stream_allTrades"))))
            }
        };
        let charged = Instant::now();
        while balance(&client) != "0.99" {
            assert!(charged.elapsed() < Duration::from_secs(60), "{transport:?}: the stream was not opened");
            thread::sleep(Duration::from_millis(20));
        }
        let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
        let revoked = Instant::now();
        while !started.is_finished() {
            assert!(revoked.elapsed() < 2 * END_WITHIN, "{transport:?}: the call continued without its key");
            thread::sleep(Duration::from_millis(20));
        }
        started.join().unwrap();
    }
    wait_for_sessions(&server, 0);
}

#[test]
fn session_of_another_key_cannot_be_used() {
    let site = Site::new();
    let (owner, thief) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let (owners, thiefs) = (server.client_with(&owner.api_key), server.client_with(&thief.api_key));

    let (mut stream, endpoint) = sse_session(&owners);
    let stolen = post(&thiefs, &endpoint, &call(7, BASE_TOOL));
    assert!([401, 403, 404].contains(&stolen.status), "{stolen:?}");
    assert_eq!(post(&owners, &endpoint, &call(8, BASE_TOOL)).status, 202);
    let seen = stream.read_until("credit_balance");
    assert!(seen.contains("\"id\":8") && !seen.contains("\"id\":7"), "{seen}");

    assert_eq!(balance(&thiefs), "1", "the thief is neither served nor charged");

    // The id of a session of Streamable HTTP is not a credential: a thief who has it makes their own calls.
    let session = streamable_session(&owners);
    let thief_with_id = thiefs.clone().with_header("Mcp-Session-Id", &session_id(&owners));
    let _ = post(&thief_with_id, "/mcp", &call(7, BASE_TOOL)).expect(200);
    assert_eq!(thief_with_id.send("DELETE", "/mcp", None).status, 405);
    assert_eq!(thief_with_id.with_header("Accept", "text/event-stream").open("/mcp").status, 405);
    let _ = post(&session, "/mcp", &call(8, BASE_TOOL)).expect(200);
    assert_eq!(balance(&owners), amount(CREDIT - 2 * BASE_CALL));
    assert_eq!(balance(&thiefs), amount(CREDIT - BASE_CALL));
}

/// The id of a new session of Streamable HTTP.
#[track_caller]
fn session_id(client: &Client) -> String {
    post(client, "/mcp", &initialize()).expect(200).header("mcp-session-id").expect("the client gets an id").to_owned()
}

#[test]
fn requests_without_a_valid_key_are_refused_alike() {
    let site = Site::new();
    let (account, revoked) = (site.account("1"), site.account("1"));
    let _ = site.admin_json(&["account", "revoke", &revoked.org_id, "--yes"]);
    let server = site.server().start();
    let (_stream, endpoint) = sse_session(&server.client_with(&account.api_key));
    // Well-formed, but of another service.
    let unknown = Site::new().account("1").api_key;
    let mut mistyped = account.api_key.clone();
    let last = mistyped.pop().unwrap();
    mistyped.push(if last == 'A' { 'B' } else { 'A' });
    let bearer = |key: &str| format!("Bearer {key}");
    let credentials = [None, Some(String::new()), Some("Bearer".to_owned()), Some(bearer("sk_live_short"))];
    let credentials =
        credentials.into_iter().chain([&mistyped, &unknown, &revoked.api_key].map(|key| Some(bearer(key))));
    let mut bodies: Vec<Value> = Vec::new();
    for given in credentials {
        let client = match &given {
            Some(value) => server.client().with_header("Authorization", value),
            None => server.client(),
        };
        let responses = [
            client.get("/sse"),
            post(&client, &endpoint, &call(1, BASE_TOOL)),
            post(&client, "/messages/?session_id=unknown", &call(1, BASE_TOOL)),
            post(&client, "/mcp", &initialize()),
            client.clone().with_header("Accept", "text/event-stream").get("/mcp"),
            client.send("DELETE", "/mcp", None),
        ];
        for response in responses {
            assert_eq!((response.status, response.error().as_str()), (401, "unauthorized"), "{given:?}: {response:?}");
            let challenge = response.header("www-authenticate").unwrap();
            assert!(
                challenge.starts_with("Bearer ") && challenge.contains("resource_metadata="),
                "{given:?}: {challenge}"
            );
            bodies.push(response.problem());
        }
    }
    // One message per credential, for any request; the last two are an unknown and a revoked key.
    let by_credential: Vec<&[Value]> = bodies.chunks(6).collect();
    for alike in &by_credential {
        assert!(alike.iter().all(|body| *body == alike[0]), "{alike:?}");
    }
    let [.., of_unknown, of_revoked] = &by_credential[..] else { panic!("{bodies:?}") };
    assert_eq!(of_unknown, of_revoked, "the messages are identical");
    // `X-API-Key` is accepted here too.
    let by_header = server.client().with_header("X-API-Key", &account.api_key);
    let _ = post(&by_header, "/mcp", &initialize()).expect(200);
    // A key in the URL would end up in logs.
    let _ = post(&server.client(), &format!("/mcp?api_key={}", account.api_key), &initialize()).expect(401);
    let log = server.log();
    assert!(!log.contains(&account.api_key) && !log.contains(&revoked.api_key), "keys are in the log");
}
