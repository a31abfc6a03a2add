//! Streams that work: what is printed, when, and how they end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::fixture::Fixture;
use crate::service::{Piece, Reply, STREAM, Service};

const CHARGE: &str = "Charged 0.0001388889 credits. The balance is 1.2345678901 credits.\n";

const FIRST: &str =
    ": hello\n\nid: 7\nevent: block\ndata: {\"block_number\":7,\ndata: \"price\":0.10000000000000000001}\n\n";
const SECOND: &str = "id: 8\nevent: block\ndata: {\"block_number\":8}\n\n";
const THIRD: &str = "data: no JSON\n\n";

#[test]
fn each_event_is_a_line_and_count_ends_the_stream() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    service.then(STREAM, Reply::events(&[FIRST, SECOND, THIRD, SECOND]));
    let ran = fixture.run(&service, &["stream", STREAM, "--max-events", "3"]).expect(0);
    let data = "{\"block_number\":7,\"price\":0.10000000000000000001}";
    assert_eq!(ran.stdout, format!("{data}\n{{\"block_number\":8}}\nno JSON\n"));
    assert_eq!(ran.stderr, format!("3 events. {CHARGE}"));
    service.then(STREAM, Reply::events(&[FIRST, SECOND, THIRD]));
    let ran = fixture.run(&service, &["stream", STREAM, "--max-events", "3", "--events", "--quiet"]).expect(0);
    let events = [
        format!("{{\"type\":\"block\",\"id\":\"7\",\"data\":{data}}}\n"),
        "{\"type\":\"block\",\"id\":\"8\",\"data\":{\"block_number\":8}}\n".to_owned(),
        "{\"type\":\"message\",\"id\":null,\"data\":\"no JSON\"}\n".to_owned(),
    ];
    assert_eq!(ran.stdout, events.concat());
    assert_eq!(ran.stderr, "");
}

#[test]
fn stream_ends_after_the_given_time() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    service.then(STREAM, Reply::events(&[FIRST]));
    let start = Instant::now();
    let ran = fixture.run(&service, &["stream", STREAM, "--for", "1s"]).expect(0).says("1 event. Charged");
    assert!(start.elapsed() >= Duration::from_secs(1) && start.elapsed() < Duration::from_secs(20));
    assert_eq!(ran.stdout.lines().count(), 1);
}

#[test]
fn events_are_printed_at_once_until_interrupted() {
    for signal in ["INT", "TERM"] {
        let (fixture, service) = (Fixture::new(), Service::at(0));
        service.then(STREAM, Reply::events(&[FIRST, SECOND]));
        let mut command = fixture.command(&service, &["stream", STREAM]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("\"block_number\":7"));
        assert!(lines.next().unwrap().unwrap().contains("\"block_number\":8"));
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("2 events. {CHARGE}"));
    }
}

#[test]
fn stream_ended_before_its_event_count_was_interrupted() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    service.then(STREAM, Reply::events(&[FIRST]));
    let mut started = fixture.start(&service, &["stream", STREAM, "--max-events", "2"]);
    service.wait_for(STREAM);
    std::thread::sleep(Duration::from_millis(300));
    started.signal("INT");
    let _ = started.wait().expect(130).says("1 event.");
}

#[test]
fn stream_parameters_are_sent() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    let target = format!("{STREAM}?from_epoch=24000000");
    for args in [&["stream", &target][..], &["stream", STREAM, "--param", "from_epoch=24000000"]] {
        service.then(&target, Reply::events(&[FIRST]));
        fixture.run(&service, &[args, &["--max-events", "1"]].concat()).expect(0);
        let requests = service.requests();
        assert_eq!((requests.len(), &requests[0].target), (1, &target));
    }
}

#[test]
fn closed_stdout_ends_the_stream() {
    let (fixture, service) = (Fixture::new(), Service::at(0));
    let late = Piece::Pause(Duration::from_millis(300));
    let end = Piece::Pause(Duration::from_secs(3_600));
    let pieces = vec![Piece::Data(FIRST.to_owned()), late.clone(), Piece::Data(SECOND.to_owned()), late, end];
    service.then(STREAM, Reply::Events(pieces));
    let mut command = fixture.command(&service, &["stream", STREAM]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
