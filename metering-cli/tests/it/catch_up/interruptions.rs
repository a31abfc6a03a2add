//! Runs that are stopped by Ctrl-C or SIGTERM.

use std::time::{Duration, Instant};

use super::{CATCH_UP, OUTPUT, busy, document, good, lines, scene, writes};
use crate::program::{ended, signal};
use crate::stand_in::NEVER;

#[test]
fn paid_block_is_written_despite_interruption() {
    for name in ["INT", "TERM"] {
        let (program, service) = scene(500);
        service.then_at(493, good(document(493)).late(Duration::from_secs(1)));
        let child = program.start(CATCH_UP);
        service.wait_for(493);
        signal(&child, name);
        let ran = ended(child).expect(130).says("Wrote 4 blocks, 490 to 493.");
        let _ = ran.says("interrupted; run the command again");
        assert_eq!(program.read(OUTPUT), lines(490..=493));
        assert_eq!(service.requested().last(), Some(&Some(493)), "nothing more is requested");
        let _ = writes(&program, "", 0, 500);
    }
}

#[test]
fn interrupted_request_without_response_is_dropped() {
    let (program, service) = scene(500);
    // One signal is enough, too, since no response comes within a few seconds.
    for signals in [&["INT", "INT"][..], &["TERM"]] {
        service.then_at(493, good("").late(NEVER));
        let mut child = program.start(CATCH_UP);
        let _ = service.requests();
        service.wait_for(493);
        let start = Instant::now();
        for name in signals {
            signal(&child, name);
            std::thread::sleep(Duration::from_millis(200));
        }
        // Two signals that a busy program has not read yet are one.
        while signals.len() > 1 && child.try_wait().unwrap().is_none() {
            signal(&child, signals[1]);
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = ended(child).expect(130);
        assert!(signals.len() == 1 || start.elapsed() < Duration::from_secs(4), "the second one ends it immediately");
        assert_eq!(program.read(OUTPUT), lines(490..=492));
    }
    let _ = writes(&program, "", 0, 500);
}

#[test]
fn interruption_ends_a_pause_immediately() {
    let (program, service) = scene(500);
    service.then_at(493, busy(429, "rate_limited", 59));
    let child = program.start(CATCH_UP);
    service.wait_for(493);
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    signal(&child, "INT");
    let _ = ended(child).expect(130);
    assert!(start.elapsed() < Duration::from_secs(20));
    let _ = writes(&program, "", 0, 500);
}
