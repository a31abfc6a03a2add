//! Credits and rate limits that run out in the middle of a run.

use std::time::{Duration, Instant};

use crate::desk::Desk;
use crate::service::{BLOCKS, Reply, Service, lines};

const ARGS: [&str; 4] = ["--from", "490", "--output", "blocks.jsonl"];

#[test]
fn credits_that_end_stop_the_run_at_the_last_block_written() {
    let (desk, service) = (Desk::new(), Service::at(500));
    service.then_at(495, Reply::no_credits());
    let ran = desk.catch_up(&service, &ARGS).expect(7);
    let ran = ran.says("Wrote 5 blocks, 490 to 494. 6 blocks remain");
    ran.says("The balance is -0.0000694444 credits.").says("metering topup");
    assert_eq!(desk.content("blocks.jsonl"), lines(490..=494));
    service.then(BLOCKS, Reply::no_credits());
    desk.catch_up(&service, &ARGS).expect(7).says("No block written; the cursor is at block 494.");
    let _ = service.asked();
    desk.catch_up(&service, &ARGS).expect(0);
    assert_eq!(desk.content("blocks.jsonl"), lines(490..=500));
    assert_eq!(service.asked()[..2], [None, Some(495)]);
}

#[test]
fn where_to_begin_survives_a_run_that_had_no_credits_at_all() {
    let (desk, service) = (Desk::new(), Service::at(500));
    service.then(BLOCKS, Reply::no_credits());
    desk.catch_up(&service, &ARGS).expect(7).says("No block written.");
    desk.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    assert_eq!(desk.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn the_cap_per_minute_is_waited_for_as_long_as_the_service_says() {
    let (desk, service) = (Desk::new(), Service::at(500));
    service.then_at(495, Reply::error(429, "rate_limited", Some(2)));
    let begun = Instant::now();
    desk.catch_up(&service, &ARGS).expect(0).says("It says rate_limited. (rate_limited); retrying in 2 s");
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert_eq!(desk.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn a_cap_that_takes_too_long_stops_the_run_and_says_when() {
    let (desk, service) = (Desk::new(), Service::at(500));
    // options, what the service says
    for (args, seconds) in [(&[][..], 61), (&["--max-wait", "0"], 1), (&["--max-wait", "3"], 4)] {
        service.then_at(495, Reply::error(429, "rate_limited", Some(seconds)));
        let begun = Instant::now();
        let ran = desk.catch_up(&service, &[&ARGS[..], args].concat()).expect(8);
        let _ = ran.says(&format!("; try again in {seconds} s"));
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(desk.content("blocks.jsonl"), lines(490..=494));
    }
    desk.catch_up(&service, &ARGS).expect(0);
    assert_eq!(desk.content("blocks.jsonl"), lines(490..=500));
}
