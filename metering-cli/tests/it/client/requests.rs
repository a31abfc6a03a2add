//! `metering requests`, and what `metering call` and `metering stream` say about held credits.

use std::time::Duration;

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const ID: &str = "req_0123456789abcdef0123456789abcdef";
const OTHER: &str = "req_fedcba9876543210fedcba9876543210";

/// A request of the service. `end` are the members from `settled_by` on that tell how it was settled.
fn request(id: &str, state: &str, money: [&str; 3], settled: Option<&str>) -> String {
    let [held, charged, released] = money;
    let by = settled.map_or("null".to_owned(), |by| format!("\"{by}\""));
    let at = settled.map_or("null", |_| "\"2026-11-21T08:00:09.500Z\"");
    format!(
        r#"{{"id":"{id}","state":"{state}","held":{held},"charged":{charged},"released":{released},"settled_by":{by},"route_template":"/v1/chat","http_method":"POST","request_path":"/v1/chat\u0007","created_at":"2026-11-21T08:00:00.000Z","expires_at":"2026-11-21T08:02:00.000Z","settled_at":{at}}}"#
    )
}

fn held(id: &str) -> String {
    request(id, "held", ["0.5", "0", "0"], None)
}

#[test]
fn held_requests_are_listed() {
    let list = format!(r#"{{"data":[{},{}]}}"#, held(ID), held(OTHER));
    let service = StandIn::start();
    service.on("/requests", Reply::ok(list.clone()));
    let (home, key) = Home::of(&service);
    let text = home.metering(&["requests"]).success();
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["REQUEST", "ROUTE", "HELD", "ACCEPTED", "LEASE_ENDS"]);
    let route = "/v1/chat\u{fffd}";
    assert_eq!(rows[1], [ID, "POST", route, "0.5", "2026-11-21T08:00:00.000Z", "2026-11-21T08:02:00.000Z"]);
    assert_eq!((rows[2][0], rows.len()), (OTHER, 3));
    assert_eq!(home.metering(&["requests", "--json"]).success(), format!("{list}\n"));
    let bearer = format!("Bearer {}", key.expose());
    assert_eq!(service.requests()[0].header("authorization"), Some(bearer.as_str()));
}

#[test]
fn a_full_list_says_that_there_may_be_more() {
    for (count, says) in [(99, false), (100, true)] {
        let service = StandIn::start();
        service.on("/requests", Reply::ok(format!(r#"{{"data":[{}]}}"#, vec![held(ID); count].join(","))));
        let (home, _) = Home::of(&service);
        let ran = home.metering(&["requests"]);
        assert_eq!((ran.code, ran.stdout.lines().count()), (0, count + 1));
        assert_eq!(ran.stderr.contains("the newest 100"), says, "{}", ran.stderr);
    }
}

#[test]
fn a_request_is_shown_with_what_became_of_it() {
    // the document, lines of the text
    let table = [
        (
            held(ID),
            [
                "State       held: its cost is not known yet",
                "Held        0.5",
                "Charged     0",
                "Why         -",
                "Settled     -",
            ],
        ),
        (
            request(ID, "captured", ["0", "0.0000694444", "0.4999305556"], Some("report")),
            [
                "State       charged",
                "Charged     0.0000694444",
                "Released    0.4999305556",
                "Why         the response said what it cost",
                "Settled     2026-11-21T08:00:09.500Z",
            ],
        ),
        (
            request(ID, "captured", ["0", "0.1", "0.4"], Some("no_report")),
            [
                "State       charged",
                "Held        0",
                "Charged     0.1",
                "Why         the response did not say what it cost",
                "Route       POST /v1/chat\u{fffd}",
            ],
        ),
        (
            request(ID, "captured", ["0", "0", "0.5"], Some("expiry")),
            [
                "State       charged",
                "Charged     0",
                "Why         its cost was not reported before its lease ended",
                "Lease ends  2026-11-21T08:02:00.000Z",
                "Accepted    2026-11-21T08:00:00.000Z",
            ],
        ),
        (
            request(ID, "released", ["0", "0", "0.5"], Some("release")),
            [
                "State       released: it cost nothing",
                "Charged     0",
                "Released    0.5",
                "Why         it was not served, or its response was an error",
                "Request     req_0123456789abcdef0123456789abcdef",
            ],
        ),
        (
            // A reason of a newer service.
            request(ID, "captured", ["0", "0.5", "0"], Some("audit")),
            ["Why         audit", "State       charged", "Charged     0.5", "Held        0", "Released    0"],
        ),
    ];
    for (document, lines) in table {
        let service = StandIn::start();
        service.on(&format!("/requests/{ID}"), Reply::ok(document.clone()));
        let (home, _) = Home::of(&service);
        let text = home.metering(&["requests", "show", ID]).success();
        for line in lines {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert_eq!(home.metering(&["requests", "show", ID, "--json"]).success(), format!("{document}\n"));
    }
}

#[test]
fn refusals_have_their_exit_codes() {
    let service = StandIn::start();
    service.on(&format!("/requests/{ID}"), Reply::error(404, "not_found"));
    service.on("/requests", Reply::error(403, "key_scope"));
    let (home, _) = Home::of(&service);
    let missing = home.metering(&["requests", "show", ID]).failure(4);
    assert!(missing.contains("not_found"), "{missing}");
    let refused = home.metering(&["requests"]).failure(6);
    assert!(refused.contains("key_scope") && !refused.contains("metering rotate"), "{refused}");
    let sent = service.requests().len();
    for id in ["42", "req_42", "req_0123456789ABCDEF0123456789abcdef", ""] {
        assert_eq!(home.metering(&["requests", "show", id]).code, 2, "{id}");
    }
    assert_eq!(home.metering(&["requests", "--json", "show", ID]).code, 2, "the option belongs to one of the two");
    assert_eq!(service.requests().len(), sent, "nothing invalid was requested");
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
    let target = format!("/requests/{ID}");
    let settled = request(ID, "captured", ["0", "0.02", "0.48"], Some("report"));
    let slow = Reply::ok(settled.clone()).late(Duration::from_secs(60));
    // what the service says about the request after its response, what the call prints
    let table = [
        (Reply::ok(settled.clone()), "Charged 0.02 credits; 0.5 were held.\n".to_owned()),
        (Reply::ok(held(ID)), format!("{HOLDING} The balance is 1.5 credits.\n")),
        (Reply::error(404, "not_found"), format!("{HOLDING} The balance is 1.5 credits.\n")),
        (Reply::html(502), format!("{HOLDING} The balance is 1.5 credits.\n")),
        (slow, format!("{HOLDING} The balance is 1.5 credits.\n")),
    ];
    for (reply, notice) in table {
        let service = StandIn::start();
        service.on("/v1/chat", held_response("{}")).on(&target, reply);
        let (home, _) = Home::of(&service);
        let ran = home.metering(&["call", "/v1/chat", "--data", "{}"]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr), (0, "{}", notice));
        assert_eq!(service.targets(), ["/v1/chat", target.as_str()]);
    }
    // The response says what it cost.
    let service = StandIn::start();
    let known = Reply::ok("{}").header("x-bds-credit-balance", "1.98").header("x-bds-credit-charged", "0.02");
    service.on("/v1/chat", known.header("x-bds-request-id", ID));
    let (home, _) = Home::of(&service);
    let ran = home.metering(&["call", "/v1/chat"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "Charged 0.02 credits; the balance is 1.98.\n"));
    assert_eq!(service.targets(), ["/v1/chat"]);
}

#[test]
fn a_quiet_call_does_not_look_up_its_cost() {
    let service = StandIn::start();
    service.on("/v1/chat", held_response("{}"));
    let (home, _) = Home::of(&service);
    assert_eq!(home.metering(&["call", "/v1/chat", "--quiet"]).success(), "{}");
    assert_eq!(service.targets(), ["/v1/chat"]);
}

#[test]
fn a_stream_says_what_it_cost_or_what_is_held() {
    let events = || held_response("data: 1\n\ndata: 2\n\n").header("content-type", "text/event-stream");
    let settled = request(ID, "captured", ["0", "0.02", "0.48"], Some("report"));
    for (reply, notice) in [
        (Reply::ok(settled), "1 event. Charged 0.02 credits; 0.5 were held.\n".to_owned()),
        (Reply::ok(held(ID)), format!("1 event. {HOLDING}\n")),
    ] {
        let service = StandIn::start();
        service.on("/v1/events", events()).on(&format!("/requests/{ID}"), reply);
        let (home, _) = Home::of(&service);
        let ran = home.metering(&["stream", "/v1/events", "--max-events", "1"]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr), (0, "1\n", notice));
    }
}
