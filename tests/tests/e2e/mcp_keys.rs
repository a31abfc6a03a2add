//! A session belongs to the key that opened it, and ends with it.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::mcp::{Session, Wire};
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::{BASE_TOOL, for_each_client, wait_for_sessions};
use crate::mcp_http::{call, initialize, post, sse_session, streamable_session};
use crate::wire::{BASE_CALL, CREDIT, amount, balance};

/// How soon everything that belongs to an old key must end; the protocol promises this for streams.
const END: Duration = Duration::from_secs(5);

/// Asserts that a session is dead: it gets no results, and HTTP responded with 401 or the session is gone.
#[track_caller]
fn hold_dead(session: &Session, wire: Wire) {
    let outcome = session.try_call(BASE_TOOL, &json!({}));
    assert!(outcome.is_err(), "{wire:?}: {outcome:?}");
    let statuses = session.statuses();
    // Opening the session had status 200 or 202. A client that saw its stream end may not send another request.
    let refused = statuses.contains(&401);
    assert!(refused || wire == Wire::Sse, "{wire:?}: {statuses:?}");
}

#[test]
fn a_key_rotated_in_mid_session_ends_the_session_and_the_new_key_opens_another() {
    let site = Site::new();
    let server = site.server().start();
    for_each_client(|agent, wire| {
        let account = site.account("1");
        let session = agent.connect(&server, wire, &account.api_key);
        let _ = session.call(BASE_TOOL, &json!({})).expect_good();
        let issued = site.admin_json(&["account", "rotate-key", &account.org_id]);
        let new_key = issued["api_key"].as_str().unwrap();
        hold_dead(&session, wire);
        assert!(agent.try_connect(&server, wire, &account.api_key).is_err(), "{wire:?}: the old key opens nothing");
        let session = agent.connect(&server, wire, new_key);
        let _ = session.call(BASE_TOOL, &json!({})).expect_good();
        session.close();
        assert_eq!(balance(&server.client_with(new_key)), amount(CREDIT - 2 * BASE_CALL));
    });
    site.verify();
}

#[test]
fn a_revoked_account_ends_every_session_of_its_key_and_no_other() {
    let site = Site::new();
    let server = site.server().start();
    for_each_client(|agent, wire| {
        let (leaving, staying) = (site.account("1"), site.account("1"));
        let ended = agent.connect(&server, wire, &leaving.api_key);
        let kept = agent.connect(&server, wire, &staying.api_key);
        let _ = ended.call(BASE_TOOL, &json!({})).expect_good();
        let _ = site.admin_json(&["account", "revoke", &leaving.org_id, "--yes"]);
        hold_dead(&ended, wire);
        let _ = kept.call(BASE_TOOL, &json!({})).expect_good();
        kept.close();
    });
    site.verify();
}

#[test]
fn an_open_session_whose_key_dies_ends_by_itself_and_is_refused_from_the_first_moment() {
    let site = Site::new();
    let (account, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    let (stream, endpoint) = sse_session(&client);
    let (mut others, others_endpoint) = sse_session(&server.client_with(&other.api_key));
    let _ = site.admin_json(&["account", "rotate-key", &account.org_id]);
    let rotated = Instant::now();
    let refused = post(&client, &endpoint, &call(2, BASE_TOOL)).expect(401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{refused:?}");
    let _ = client.get("/sse").expect(401);
    let _ = post(&client, "/mcp", &initialize()).expect(401);
    let _ = stream.finish().expect("the body ends properly");
    assert!(rotated.elapsed() < END, "{:?}", rotated.elapsed());
    // The other account's session continues.
    assert_eq!(post(&server.client_with(&other.api_key), &others_endpoint, &call(2, BASE_TOOL)).status, 202);
    assert!(others.read_until("credit_balance").contains("\"id\":2"));
    assert_eq!(balance(&server.client_with(&other.api_key)), amount(CREDIT - BASE_CALL));
    wait_for_sessions(&server, 1);
}

#[test]
fn a_stream_call_ends_with_its_key() {
    let site = Site::new();
    let server = site.server().set("METERING_SAMPLE__BLOCK_TIME", "1h").set("METERING_MCP__STREAM_WAIT", "1m").start();
    for wire in Wire::ALL {
        let account = site.account("1");
        let client = server.client_with(&account.api_key);
        let begun = match wire {
            Wire::Sse => {
                let (stream, endpoint) = sse_session(&client);
                assert_eq!(post(&client, &endpoint, &call(2, "bds_mpp_stream_allTrades")).status, 202);
                thread::spawn(move || drop(stream.finish()))
            }
            Wire::Streamable => {
                let session = streamable_session(&client);
                thread::spawn(move || drop(post(&session, "/mcp", &call(2, "bds_mpp_stream_allTrades"))))
            }
        };
        let charged = Instant::now();
        while balance(&client) != "0.99" {
            assert!(charged.elapsed() < Duration::from_secs(20), "{wire:?}: the stream was not opened");
            thread::sleep(Duration::from_millis(20));
        }
        let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
        let revoked = Instant::now();
        while !begun.is_finished() {
            assert!(revoked.elapsed() < 2 * END, "{wire:?}: the call continued without its key");
            thread::sleep(Duration::from_millis(20));
        }
        begun.join().unwrap();
    }
    wait_for_sessions(&server, 0);
}

#[test]
fn nobody_uses_the_session_of_another_key() {
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

    let session = streamable_session(&owners);
    if let Some(id) = session_id(&owners) {
        let thiefs = thiefs.clone().with_header("Mcp-Session-Id", &id);
        let stolen = post(&thiefs, "/mcp", &call(7, BASE_TOOL));
        assert!([401, 403, 404].contains(&stolen.status), "{stolen:?}");
        assert!([401, 403, 404, 405].contains(&thiefs.send("DELETE", "/mcp", None).status));
        let listening = thiefs.with_header("Accept", "text/event-stream").open("/mcp");
        assert!([401, 403, 404, 405].contains(&listening.status), "{listening:?}");
    }
    let _ = post(&session, "/mcp", &call(8, BASE_TOOL)).expect(200);
    assert_eq!(balance(&owners), amount(CREDIT - 2 * BASE_CALL));
    assert_eq!(balance(&thiefs), "1", "the thief is neither served nor charged");
}

/// The id of a new session of Streamable HTTP, if the server uses ids.
fn session_id(client: &Client) -> Option<String> {
    post(client, "/mcp", &initialize()).expect(200).header("mcp-session-id").map(str::to_owned)
}

#[test]
fn without_a_good_key_everything_is_refused_alike() {
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
        let answers = [
            client.get("/sse"),
            post(&client, &endpoint, &call(1, BASE_TOOL)),
            post(&client, "/messages/?session_id=unknown", &call(1, BASE_TOOL)),
            post(&client, "/mcp", &initialize()),
            client.clone().with_header("Accept", "text/event-stream").get("/mcp"),
            client.send("DELETE", "/mcp", None),
        ];
        for answer in answers {
            assert_eq!((answer.status, answer.error().as_str()), (401, "unauthorized"), "{given:?}: {answer:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{given:?}: {answer:?}");
            bodies.push(answer.json());
        }
    }
    // One message per credential, whatever the request; the last two are an unknown and a revoked key.
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
