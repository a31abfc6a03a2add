//! Streams that work: what is printed, when, and how they end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::desk::Desk;
use crate::service::{Piece, Reply, STREAM, Service};

const MONEY: &str = "Charged 0.0001388889 credits. The balance is 1.2345678901 credits.\n";

const FIRST: &str =
    ": hello\n\nid: 7\nevent: block\ndata: {\"block_number\":7,\ndata: \"price\":0.10000000000000000001}\n\n";
const SECOND: &str = "id: 8\nevent: block\ndata: {\"block_number\":8}\n\n";
const THIRD: &str = "data: no JSON\n\n";

#[test]
fn each_event_is_a_line_and_so_many_are_enough() {
    let (desk, service) = (Desk::new(), Service::at(0));
    service.then(STREAM, Reply::events(&[FIRST, SECOND, THIRD, SECOND]));
    let ran = desk.run(&service, &["stream", STREAM, "--max-events", "3"]).expect(0);
    let data = "{\"block_number\":7,\"price\":0.10000000000000000001}";
    assert_eq!(ran.stdout, format!("{data}\n{{\"block_number\":8}}\nno JSON\n"));
    assert_eq!(ran.stderr, format!("3 events. {MONEY}"));
    service.then(STREAM, Reply::events(&[FIRST, SECOND, THIRD]));
    let ran = desk.run(&service, &["stream", STREAM, "--max-events", "3", "--events", "--quiet"]).expect(0);
    let events = [
        format!("{{\"type\":\"block\",\"id\":\"7\",\"data\":{data}}}\n"),
        "{\"type\":\"block\",\"id\":\"8\",\"data\":{\"block_number\":8}}\n".to_owned(),
        "{\"type\":\"message\",\"id\":null,\"data\":\"no JSON\"}\n".to_owned(),
    ];
    assert_eq!(ran.stdout, events.concat());
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_time_is_enough_too() {
    let (desk, service) = (Desk::new(), Service::at(0));
    service.then(STREAM, Reply::events(&[FIRST]));
    let begun = Instant::now();
    let ran = desk.run(&service, &["stream", STREAM, "--for", "1s"]).expect(0).says("1 event. Charged");
    assert!(begun.elapsed() >= Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(20));
    assert_eq!(ran.stdout.lines().count(), 1);
}

#[test]
fn events_are_there_as_soon_as_they_come_and_the_person_ends_the_stream() {
    for signal in ["INT", "TERM"] {
        let (desk, service) = (Desk::new(), Service::at(0));
        service.then(STREAM, Reply::events(&[FIRST, SECOND]));
        let mut command = desk.command(&service, &["stream", STREAM]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("\"block_number\":7"));
        assert!(lines.next().unwrap().unwrap().contains("\"block_number\":8"));
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("2 events. {MONEY}"));
    }
}

#[test]
fn a_stream_that_was_to_have_more_events_was_interrupted() {
    let (desk, service) = (Desk::new(), Service::at(0));
    service.then(STREAM, Reply::events(&[FIRST]));
    let mut started = desk.start(&service, &["stream", STREAM, "--max-events", "2"]);
    service.wait_for(STREAM);
    std::thread::sleep(Duration::from_millis(300));
    started.signal("INT");
    let _ = started.wait().expect(130).says("1 event.");
}

#[test]
fn parameters_reach_the_stream() {
    let (desk, service) = (Desk::new(), Service::at(0));
    let target = format!("{STREAM}?from_epoch=24000000");
    for args in [&["stream", &target][..], &["stream", STREAM, "--param", "from_epoch=24000000"]] {
        service.then(&target, Reply::events(&[FIRST]));
        desk.run(&service, &[args, &["--max-events", "1"]].concat()).expect(0);
        let requests = service.requests();
        assert_eq!((requests.len(), &requests[0].target), (1, &target));
    }
}

#[test]
fn a_reader_that_has_enough_ends_the_stream() {
    let (desk, service) = (Desk::new(), Service::at(0));
    let late = Piece::Pause(Duration::from_millis(300));
    let end = Piece::Pause(Duration::from_secs(3_600));
    let pieces = vec![Piece::Data(FIRST.to_owned()), late.clone(), Piece::Data(SECOND.to_owned()), late, end];
    service.then(STREAM, Reply::Events(pieces));
    let mut command = desk.command(&service, &["stream", STREAM]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
