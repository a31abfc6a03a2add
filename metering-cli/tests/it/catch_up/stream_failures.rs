//! Streams that break off, or do not begin.

use super::{STREAM, broken, busy, ending, endless, good, scene};
use crate::stand_in::Reply;

const FIRST: &str = "id: 7\ndata: 7\n\n";
const SECOND: &str = "id: 8\ndata: 8\n\n";
const THIRD: &str = "id: 9\ndata: 9\n\n";

#[test]
fn broken_stream_is_paid_again_only_with_reconnect() {
    let (program, service) = scene(0);
    for (reply, expected) in [(broken(&[FIRST]), "the stream broke off"), (ending(&[FIRST]), "has ended")] {
        service.then(STREAM, reply);
        let ran = program.run(&format!("stream {STREAM} --max-events 2")).expect(8);
        let ran = ran.says(expected).says("after 1 event").says("--reconnect").says("1 event. Charged");
        assert_eq!((ran.stdout.as_str(), service.requests().len()), ("7\n", 1));
    }
}

#[test]
fn stream_resumes_after_the_last_event() {
    let (program, service) = scene(0);
    // A service that repeats the last event.
    let repeats = ending(&[FIRST, SECOND]);
    let replies = [broken(&[FIRST]), Reply::error(502, "upstream_unreachable"), repeats, endless(&[THIRD])];
    service.stand_in.on_each(STREAM, replies);
    let ran = program.run(&format!("stream {STREAM} --max-events 3 --reconnect")).expect(0);
    let ran = ran.says("; resuming after event 7 in 1 s").says("3 events over 3 connections, each charged.");
    assert_eq!(ran.stdout, "7\n8\n9\n");
    let requests = service.requests();
    let after: Vec<_> = requests.iter().map(|request| request.header("last-event-id")).collect();
    assert_eq!(after, [None, Some("7"), Some("7"), Some("8")]);
    assert!(requests.iter().all(|request| request.target == STREAM));
}

#[test]
fn rejected_stream_has_a_specific_exit_code() {
    let (program, service) = scene(0);
    // reply, code, exit code
    for (reply, code, exit) in [
        (Reply::error(401, "unauthorized"), "unauthorized", 6),
        (Reply::error(402, "insufficient_credits"), "insufficient_credits", 7),
        (busy(429, "too_many_streams", 5), "too_many_streams", 8),
        (busy(503, "overloaded", 1), "overloaded", 8),
        (Reply::error(400, "invalid_parameter"), "invalid_parameter", 2),
    ] {
        service.then(STREAM, reply.clone());
        let ran = program.run(&format!("stream {STREAM}")).expect(exit).says(code);
        assert!(!ran.stderr.contains("event"), "{ran:?}");
        if matches!(exit, 6 | 7) {
            service.then(STREAM, broken(&[FIRST])).then(STREAM, reply);
            let _ = program.run(&format!("stream {STREAM} --reconnect")).expect(exit).says(code);
        }
    }
}

#[test]
fn route_without_stream_is_not_paid_for() {
    let (program, service) = scene(0);
    program.refuses(&[("stream /mpp/ethPrice", 2, "/mpp/ethPrice is not a stream"), ("stream mpp", 2, "")]);
    assert!(service.requests().is_empty());
    service.then(STREAM, good("{}"));
    program.refuses(&[(&format!("stream {STREAM} --reconnect"), 1, "not an event stream")]);
}
