//! `metering requests`, and what `metering call` and `metering stream` say about held credits.

use std::time::Duration;

use super::{client, misuses};
use crate::stand_in::Reply;

const ID: &str = "req_0123456789abcdef0123456789abcdef";
const OTHER: &str = "req_fedcba9876543210fedcba9876543210";
const PATH: &str = "/requests/req_0123456789abcdef0123456789abcdef";

/// A request of the service: its state, what is held, charged and released, and how it was settled.
fn request(id: &str, state: &str, [held, charged, released]: [&str; 3], settled: Option<&str>) -> String {
    let by = settled.map_or("null".to_owned(), |by| format!("\"{by}\""));
    let at = settled.map_or("null", |_| "\"2026-11-21T08:00:09.500Z\"");
    format!(
        r#"{{"id":"{id}","state":"{state}","held":{held},"charged":{charged},"released":{released},"settled_by":{by},"route_template":"/v1/chat","http_method":"POST","request_path":"/v1/chat\u0007","created_at":"2026-11-21T08:00:00.000Z","expires_at":"2026-11-21T08:02:00.000Z","settled_at":{at}}}"#
    )
}

fn held(id: &str) -> String {
    request(id, "held", ["0.5", "0", "0"], None)
}

fn settled() -> Reply {
    Reply::ok(request(ID, "captured", ["0", "0.02", "0.48"], Some("report")))
}

#[test]
fn held_requests_are_listed() {
    let list = format!(r#"{{"data":[{},{}]}}"#, held(ID), held(OTHER));
    let (program, service) = client([("/requests", Reply::ok(list.clone()))]);
    let row = format!("{ID} POST /v1/chat\u{fffd} 0.5 2026-11-21T08:00:00.000Z 2026-11-21T08:02:00.000Z");
    program.tabulates(&[("requests", &["REQUEST ROUTE HELD ACCEPTED LEASE ENDS", &row])]);
    assert_eq!(program.run("requests --json").success(), format!("{list}\n"));
    assert_eq!(service.last().key(), Some(program.text("$key").as_str()));
    service.only("/requests", Reply::ok(r#"{"data":[]}"#));
    assert_eq!(program.run("requests").success(), "Nothing is held: no request waits for its cost.\n");
    for (count, says) in [(99, false), (100, true)] {
        service.only("/requests", Reply::ok(format!(r#"{{"data":[{}]}}"#, vec![held(ID); count].join(","))));
        let ran = program.run("requests").expect(0);
        assert_eq!((ran.stdout.lines().count(), ran.stderr.contains("the newest 100")), (count + 1, says));
    }
}

#[test]
fn a_request_is_shown_with_what_became_of_it() {
    let captured = |money, by| request(ID, "captured", money, Some(by));
    // the document, lines of the text
    let table: [(String, &[&str]); 6] = [
        (held(ID), &["State held: its cost is not known yet", "Held 0.5", "Charged 0", "Why -", "Settled -"]),
        (
            captured(["0", "0.0000694444", "0.4999305556"], "report"),
            &[
                "State charged",
                "Charged 0.0000694444",
                "Released 0.4999305556",
                "Why the response reported its cost",
                "Settled 2026-11-21T08:00:09.500Z",
            ],
        ),
        (
            captured(["0", "0.1", "0.4"], "no_report"),
            &["Held 0", "Charged 0.1", "Why the response did not report its cost", "Route POST /v1/chat\u{fffd}"],
        ),
        (
            captured(["0", "0", "0.5"], "expiry"),
            &[
                "Why its cost was not reported before its lease ended",
                "Lease ends 2026-11-21T08:02:00.000Z",
                "Accepted 2026-11-21T08:00:00.000Z",
            ],
        ),
        (
            request(ID, "released", ["0", "0", "0.5"], Some("release")),
            &[
                "State released: it cost nothing",
                "Released 0.5",
                "Why it was not served, or its response was an error",
                "Request req_0123456789abcdef0123456789abcdef",
            ],
        ),
        // A reason of a newer service.
        (captured(["0", "0.5", "0"], "audit"), &["Why audit", "Charged 0.5", "Released 0"]),
    ];
    let (program, service) = client([]);
    program.call("id", ID);
    for (document, lines) in table {
        service.only(PATH, Reply::ok(document.clone()));
        program.tabulates(&[("requests show $id", lines)]);
        assert_eq!(program.run("requests show $id --json").success(), format!("{document}\n"));
    }
}

#[test]
fn refusals_have_their_exit_codes() {
    super::fails_with(&format!("requests show {ID}"), &[(PATH, 404, "not_found", 4)]);
    super::fails_with("requests", &[("/requests", 403, "key_scope", 6)]);
    let (program, service) = client([]);
    let lines = [
        "requests show 42",
        "requests show req_42",
        "requests show req_0123456789ABCDEF0123456789abcdef",
        "requests show ''",
        // The option belongs to one of the two.
        &format!("requests --json show {ID}"),
    ];
    misuses(&program, &service, &lines);
}

/// A response to a request whose credits are held.
fn held_response(body: &'static str) -> Reply {
    let reply = Reply::ok(body).header("x-bds-credit-balance", "1.5").header("x-bds-credit-held", "0.5");
    reply.header("x-bds-request-id", ID)
}

const HOLDING: &str = "Holding 0.5 credits until the cost is known: `metering requests show \
                       req_0123456789abcdef0123456789abcdef` shows what was charged.";

#[test]
fn a_call_says_what_it_cost_or_what_is_held() {
    let unknown = format!("{HOLDING} The balance is 1.5 credits.\n");
    let unknown = unknown.as_str();
    // what the service says about the request after its response, what the call prints
    for (reply, notice) in [
        (settled(), "Charged 0.02 credits; 0.5 were held.\n"),
        (Reply::ok(held(ID)), unknown),
        (Reply::error(404, "not_found"), unknown),
        (Reply::html(502), unknown),
        (settled().late(Duration::from_secs(60)), unknown),
    ] {
        let (program, service) = client([("/v1/chat", held_response("{}")), (PATH, reply)]);
        let ran = program.run("call /v1/chat --data {}").expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("{}", notice));
        assert_eq!(service.targets(), ["/v1/chat", PATH]);
    }
    // The response says what it cost; or a quiet call does not want to know.
    let known = Reply::ok("{}").charged("0.02", "1.98").header("x-bds-request-id", ID);
    for (reply, line, notice) in [
        (known, "call /v1/chat", "Charged 0.02 credits; the balance is 1.98.\n"),
        (held_response("{}"), "call /v1/chat --quiet", ""),
    ] {
        let (program, service) = client([("/v1/chat", reply)]);
        let ran = program.run(line).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("{}", notice));
        assert_eq!(service.targets(), ["/v1/chat"]);
    }
}

#[test]
fn a_stream_says_what_it_cost_or_what_is_held() {
    for (reply, notice) in [
        (settled(), "1 event. Charged 0.02 credits; 0.5 were held.\n".to_owned()),
        (Reply::ok(held(ID)), format!("1 event. {HOLDING}\n")),
    ] {
        let events = held_response("data: 1\n\ndata: 2\n\n").header("content-type", "text/event-stream");
        let (program, _service) = client([("/v1/events", events), (PATH, reply)]);
        let ran = program.run("stream /v1/events --max-events 1").expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr), ("1\n", notice));
    }
}
