//! Streams that work: what is printed, when, and how they end.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use super::{STREAM, ending, endless, scene};
use crate::program::{ended, signal};
use crate::stand_in::Reply;

const CHARGE: &str = "Charged 0.0001388889 credits. The balance is 1.2345678901 credits.\n";
const FIRST: &str =
    ": hello\n\nid: 7\nevent: block\ndata: {\"block_number\":7,\ndata: \"price\":0.10000000000000000001}\n\n";
const SECOND: &str = "id: 8\nevent: block\ndata: {\"block_number\":8}\n\n";
const THIRD: &str = "data: no JSON\n\n";

#[test]
fn each_event_is_a_line_and_count_ends_the_stream() {
    let (program, service) = scene(0);
    let data = "{\"block_number\":7,\"price\":0.10000000000000000001}";
    let events = [
        format!("{{\"type\":\"block\",\"id\":\"7\",\"data\":{data}}}\n"),
        "{\"type\":\"block\",\"id\":\"8\",\"data\":{\"block_number\":8}}\n".to_owned(),
        "{\"type\":\"message\",\"id\":null,\"data\":\"no JSON\"}\n".to_owned(),
    ];
    // options, stdout, stderr
    for (options, stdout, stderr) in [
        ("", format!("{data}\n{{\"block_number\":8}}\nno JSON\n"), format!("3 events. {CHARGE}")),
        ("--events --quiet", events.concat(), String::new()),
    ] {
        service.then(STREAM, endless(&[FIRST, SECOND, THIRD, SECOND]));
        let ran = program.run(&format!("stream {STREAM} --max-events 3 {options}")).expect(0);
        assert_eq!((ran.stdout, ran.stderr), (stdout, stderr));
    }
}

#[test]
fn stream_ends_after_the_given_time() {
    let (program, service) = scene(0);
    service.then(STREAM, endless(&[FIRST]));
    let start = Instant::now();
    let ran = program.run(&format!("stream {STREAM} --for 1s")).expect(0).says("1 event. Charged");
    assert!(start.elapsed() >= Duration::from_secs(1) && start.elapsed() < Duration::from_secs(60));
    assert_eq!(ran.stdout.lines().count(), 1);
}

#[test]
fn events_are_printed_at_once_until_interrupted() {
    // the signal, the options, the exit code
    for (name, options, code) in [("INT", "", 0), ("TERM", "", 0), ("INT", "--max-events 3", 130)] {
        let (program, service) = scene(0);
        service.then(STREAM, endless(&[FIRST, SECOND]));
        let mut child = program.start(&format!("stream {STREAM} {options}"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for block in ["\"block_number\":7", "\"block_number\":8"] {
            assert!(lines.next().unwrap().unwrap().contains(block));
        }
        signal(&child, name);
        let ran = ended(child).expect(code);
        assert!(ran.stderr.starts_with("2 events."), "{ran:?}");
        assert!(code != 0 || ran.stderr == format!("2 events. {CHARGE}"), "{ran:?}");
    }
}

#[test]
fn stream_parameters_are_sent() {
    let (program, service) = scene(0);
    let target = format!("{STREAM}?from_epoch=24000000");
    for line in [format!("stream {target}"), format!("stream {STREAM} --param from_epoch=24000000")] {
        service.then(&target, endless(&[FIRST]));
        let _ = program.run(&format!("{line} --max-events 1")).expect(0);
        let requests = service.requests();
        assert_eq!((requests.len(), &requests[0].target), (1, &target));
    }
}

#[test]
fn closed_stdout_ends_the_stream() {
    let (program, service) = scene(0);
    let more = |reply: Reply, _| reply.then(Duration::from_millis(300), SECOND);
    service.then(STREAM, (0..200).fold(ending(&[FIRST]), more));
    let mut child = program.start(&format!("stream {STREAM}"));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    let _ = ended(child).expect(0);
}
