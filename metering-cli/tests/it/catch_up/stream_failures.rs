//! Streams that break off, or do not begin.

use crate::fixture::Fixture;
use crate::service::{Reply, Request, STREAM, Service};

const FIRST: &str = "id: 7\ndata: 7\n\n";
const SECOND: &str = "id: 8\ndata: 8\n\n";
const THIRD: &str = "id: 9\ndata: 9\n\n";

#[test]
fn broken_stream_is_paid_again_only_with_reconnect() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    for (reply, expected) in [(Reply::broken(&[FIRST]), "the stream broke off"), (Reply::ended(&[FIRST]), "has ended")]
    {
        service.then(STREAM, reply);
        let ran = fixture.run(&service, &["stream", STREAM, "--max-events", "2"]).expect(8);
        let ran = ran.says(expected).says("after 1 event").says("--reconnect").says("1 event. Charged");
        assert_eq!((ran.stdout.as_str(), service.requests().len()), ("7\n", 1));
    }
}

#[test]
fn stream_resumes_after_the_last_event() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    service.then(STREAM, Reply::broken(&[FIRST]));
    service.then(STREAM, Reply::error(502, "upstream_unreachable", None));
    // A service that repeats the last event.
    service.then(STREAM, Reply::ended(&[FIRST, SECOND]));
    service.then(STREAM, Reply::events(&[THIRD]));
    let ran = fixture.run(&service, &["stream", STREAM, "--max-events", "3", "--reconnect"]).expect(0);
    let ran = ran.says("; resuming after event 7 in 1 s").says("3 events over 3 connections, each charged.");
    assert_eq!(ran.stdout, "7\n8\n9\n");
    let id = |id: Option<&str>| Request { target: STREAM.to_owned(), last_event_id: id.map(str::to_owned) };
    assert_eq!(service.requests(), [id(None), id(Some("7")), id(Some("7")), id(Some("8"))]);
}

#[test]
fn rejected_stream_has_a_specific_exit_code() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    // status, code, retry after, exit code
    let table = [
        (401, "unauthorized", None, 6),
        (402, "insufficient_credits", None, 7),
        (429, "too_many_streams", Some(5), 8),
        (503, "overloaded", Some(1), 8),
        (400, "invalid_parameter", None, 2),
    ];
    for (status, code, retry_after, exit) in table {
        service.then(STREAM, Reply::error(status, code, retry_after));
        let ran = fixture.run(&service, &["stream", STREAM]).expect(exit).says(code);
        assert!(!ran.stderr.contains("event"), "{ran:?}");
    }
    for code in ["insufficient_credits", "unauthorized"] {
        let status = if code == "unauthorized" { 401 } else { 402 };
        service.then(STREAM, Reply::broken(&[FIRST])).then(STREAM, Reply::error(status, code, None));
        let ran = fixture.run(&service, &["stream", STREAM, "--reconnect"]).says(code);
        assert!(matches!(ran.code, 6 | 7), "{ran:?}");
    }
}

#[test]
fn route_without_stream_is_not_paid_for() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    fixture.run(&service, &["stream", "/mpp/ethPrice"]).expect(2).says("/mpp/ethPrice is not a stream");
    fixture.run(&service, &["stream", "mpp"]).expect(2);
    assert_eq!(service.requests(), []);
    service.then(STREAM, Reply::body("{}"));
    fixture.run(&service, &["stream", STREAM, "--reconnect"]).expect(1).says("not an event stream");
}
