//! Runs that are stopped by Ctrl-C or SIGTERM.

use std::time::{Duration, Instant};

use crate::fixture::Fixture;
use crate::service::{BLOCKS, Reply, Service, lines};

const ARGS: [&str; 5] = ["catch-up", "--from", "490", "--output", "blocks.jsonl"];

#[test]
fn paid_block_is_written_despite_interruption() {
    for signal in ["INT", "TERM"] {
        let (fixture, service) = (Fixture::new(), Service::at(500));
        service.then_at(493, Reply::Late(Duration::from_secs(1)));
        let mut started = fixture.start(&service, &ARGS);
        service.wait_for(&format!("{BLOCKS}/493"));
        started.signal(signal);
        started.wait().expect(130).says("Wrote 4 blocks, 490 to 493.").says("interrupted; run the command again");
        assert_eq!(fixture.content("blocks.jsonl"), lines(490..=493));
        assert_eq!(service.requested().last(), Some(&Some(493)), "nothing more is requested");
        fixture.catch_up(&service, &ARGS[1..]).expect(0);
        assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
    }
}

#[test]
fn interrupted_request_without_response_is_dropped() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then_at(493, Reply::Late(Duration::from_secs(3_600)));
    let mut started = fixture.start(&service, &ARGS);
    service.wait_for(&format!("{BLOCKS}/493"));
    let start = Instant::now();
    started.signal("INT");
    std::thread::sleep(Duration::from_millis(200));
    started.signal("INT");
    let _ = started.wait().expect(130);
    assert!(start.elapsed() < Duration::from_secs(4), "the second one ends it immediately");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=492));
    service.then_at(493, Reply::Late(Duration::from_secs(3_600)));
    let mut started = fixture.start(&service, &ARGS);
    let _ = service.requests();
    service.wait_for(&format!("{BLOCKS}/493"));
    started.signal("TERM");
    let _ = started.wait().expect(130);
    fixture.catch_up(&service, &ARGS[1..]).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn interruption_ends_a_pause_immediately() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then_at(493, Reply::error(429, "rate_limited", Some(59)));
    let mut started = fixture.start(&service, &ARGS);
    service.wait_for(&format!("{BLOCKS}/493"));
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    started.signal("INT");
    let _ = started.wait().expect(130);
    assert!(start.elapsed() < Duration::from_secs(20));
    fixture.catch_up(&service, &ARGS[1..]).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}
