//! Runs that are killed (SIGKILL) at any moment leave no gap and no duplicate.

use std::time::{Duration, Instant};

use crate::fixture::Fixture;
use crate::service::{Service, lines};

/// How many runs are killed. The moments differ from run to run and from machine to machine.
const KILLS: u64 = 40;

#[test]
fn killed_runs_leave_no_gap_or_duplicate() {
    let (fixture, service) = (Fixture::new(), Service::at(1_200));
    service.delay(Duration::from_millis(1));
    let args = ["catch-up", "--from", "1000", "--output", "blocks.jsonl"];
    let mut killed_in_the_middle = 0;
    for run in 0..KILLS {
        let started = fixture.start(&service, &args);
        let start = Instant::now();
        // Spread over the start, the first blocks and some of the later ones.
        std::thread::sleep(Duration::from_micros(3_000 + 4_700 * (run % 20)).saturating_sub(start.elapsed()));
        if started.kill().code == -1 {
            killed_in_the_middle += 1;
        }
        assert!(service.requests().len() <= 101);
    }
    assert!(killed_in_the_middle > 0, "no run was killed in time");
    // Killed runs may leave anything behind, but the next run puts it in order.
    while fixture.catch_up(&service, &args[1..]).expect(0).stderr.contains("remain") {}
    assert_eq!(fixture.content("blocks.jsonl"), lines(1_000..=1_200));
}

#[test]
fn line_written_before_a_crash_is_not_duplicated() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let args = ["--from", "498", "--output", "blocks.jsonl"];
    fixture.catch_up(&service, &args).expect(0);
    service.is_at(502);
    let next = lines(501..=501);
    for tail in ["{", &next[..next.len() - 1], &next] {
        std::fs::write(fixture.path("blocks.jsonl"), lines(498..=500) + tail).unwrap();
        service.then(crate::service::BLOCKS, crate::service::Reply::no_credits());
        let ran = fixture.catch_up(&service, &args).expect(7);
        let _ = ran.says(&format!("Removed {} bytes", tail.len()));
        assert_eq!(fixture.content("blocks.jsonl"), lines(498..=500));
    }
    fixture.catch_up(&service, &args).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(498..=502));
}

#[test]
fn stdout_of_killed_runs_has_no_gap() {
    let (fixture, service) = (Fixture::new(), Service::at(1_050));
    service.delay(Duration::from_millis(1));
    let args = ["catch-up", "--from", "1000"];
    let mut output = String::new();
    for run in 0..12 {
        let started = fixture.start(&service, &args);
        std::thread::sleep(Duration::from_millis(10 + 5 * run));
        output += &started.kill().stdout;
    }
    while !output.ends_with(&lines(1_050..=1_050)) {
        output += &fixture.catch_up(&service, &args[1..]).expect(0).stdout;
    }
    let mut distinct: Vec<&str> = output.lines().collect();
    distinct.dedup();
    assert_eq!(distinct.join("\n") + "\n", lines(1_000..=1_050), "a block may appear twice in a row");
}
