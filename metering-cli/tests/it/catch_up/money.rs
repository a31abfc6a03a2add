//! Credits and rate limits that run out in the middle of a run.

use std::time::{Duration, Instant};

use super::{BLOCKS, OUTPUT, busy, lines, no_credits, scene, writes};

#[test]
fn exhausted_credits_stop_the_run_after_the_last_block() {
    let (program, service) = scene(500);
    service.then_at(495, no_credits());
    let ran = writes(&program, "", 7, 494).says("Wrote 5 blocks, 490 to 494. 6 blocks remain");
    let _ = ran.says("The balance is -0.0000694444 credits.").says("metering topup");
    service.then(BLOCKS, no_credits());
    let _ = writes(&program, "", 7, 494).says("No block written; the cursor is at block 494.");
    let _ = service.requested();
    let _ = writes(&program, "", 0, 500);
    assert_eq!(service.requested()[..2], [None, Some(495)]);
}

#[test]
fn start_block_survives_a_run_without_credits() {
    let (program, service) = scene(500);
    service.then(BLOCKS, no_credits());
    program.refuses(&[("catch-up --from 490 --output blocks.jsonl", 7, "No block written.")]);
    let _ = program.run("catch-up --output blocks.jsonl").expect(0);
    assert_eq!(program.read(OUTPUT), lines(490..=500));
}

#[test]
fn rate_limit_is_waited_for_unless_it_is_long() {
    let (program, service) = scene(500);
    // options, what the service says
    for (options, seconds) in [("", 61), ("--max-wait 0", 1), ("--max-wait 3", 4)] {
        service.then_at(495, busy(429, "rate_limited", seconds));
        let start = Instant::now();
        let _ = writes(&program, options, 8, 494).says(&format!("; try again in {seconds} s"));
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    service.then_at(495, busy(429, "rate_limited", 2));
    let start = Instant::now();
    let _ = writes(&program, "", 0, 500).says("The service says rate_limited. (rate_limited); retrying in 2 s");
    assert!(start.elapsed() >= Duration::from_secs(2));
}
