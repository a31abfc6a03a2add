//! Credits and rate limits that run out in the middle of a run.

use std::time::{Duration, Instant};

use crate::fixture::Fixture;
use crate::service::{BLOCKS, Reply, Service, lines};

const ARGS: [&str; 4] = ["--from", "490", "--output", "blocks.jsonl"];

#[test]
fn exhausted_credits_stop_the_run_after_the_last_block() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then_at(495, Reply::no_credits());
    let ran = fixture.catch_up(&service, &ARGS).expect(7);
    let ran = ran.says("Wrote 5 blocks, 490 to 494. 6 blocks remain");
    ran.says("The balance is -0.0000694444 credits.").says("metering topup");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=494));
    service.then(BLOCKS, Reply::no_credits());
    fixture.catch_up(&service, &ARGS).expect(7).says("No block written; the cursor is at block 494.");
    let _ = service.requested();
    fixture.catch_up(&service, &ARGS).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
    assert_eq!(service.requested()[..2], [None, Some(495)]);
}

#[test]
fn start_block_survives_a_run_without_credits() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then(BLOCKS, Reply::no_credits());
    fixture.catch_up(&service, &ARGS).expect(7).says("No block written.");
    fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn minute_cap_is_waited_for_as_long_as_retry_after() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then_at(495, Reply::error(429, "rate_limited", Some(2)));
    let start = Instant::now();
    fixture.catch_up(&service, &ARGS).expect(0).says("It says rate_limited. (rate_limited); retrying in 2 s");
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn long_rate_limit_stops_the_run_and_says_when_to_retry() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    // options, what the service says
    for (args, seconds) in [(&[][..], 61), (&["--max-wait", "0"], 1), (&["--max-wait", "3"], 4)] {
        service.then_at(495, Reply::error(429, "rate_limited", Some(seconds)));
        let start = Instant::now();
        let ran = fixture.catch_up(&service, &[&ARGS[..], args].concat()).expect(8);
        let _ = ran.says(&format!("; try again in {seconds} s"));
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(fixture.content("blocks.jsonl"), lines(490..=494));
    }
    fixture.catch_up(&service, &ARGS).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}
