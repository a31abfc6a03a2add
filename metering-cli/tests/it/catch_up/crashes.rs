//! Runs that are killed (SIGKILL) at any moment leave no gap and no duplicate.

use std::time::{Duration, Instant};

use super::{BLOCKS, OUTPUT, lines, no_credits, scene};
use crate::program::kill;

/// How many runs are killed. The moments differ from run to run and from machine to machine.
const KILLS: u64 = 40;

#[test]
fn killed_runs_leave_no_gap_or_duplicate() {
    let (program, service) = scene(1_200);
    service.delay(1);
    let line = "catch-up --from 1000 --output blocks.jsonl";
    let mut killed_in_the_middle = 0;
    for run in 0..KILLS {
        let start = Instant::now();
        let child = program.start(line);
        // Spread over the start, the first blocks and some of the later ones.
        std::thread::sleep(Duration::from_micros(3_000 + 4_700 * (run % 20)).saturating_sub(start.elapsed()));
        killed_in_the_middle += i32::from(kill(child).code == -1);
        assert!(service.requests().len() <= 101);
    }
    assert!(killed_in_the_middle > 0, "no run was killed in time");
    // Killed runs may leave anything behind, but the next run puts it in order.
    while program.run(line).expect(0).stderr.contains("remain") {}
    assert_eq!(program.read(OUTPUT), lines(1_000..=1_200));
}

#[test]
fn line_written_before_a_crash_is_not_duplicated() {
    let (program, service) = scene(500);
    let line = "catch-up --from 498 --output blocks.jsonl";
    let _ = program.run(line).expect(0);
    service.is_at(502);
    let next = lines(501..=501);
    for tail in ["{", &next[..next.len() - 1], &next] {
        program.write(OUTPUT, lines(498..=500) + tail);
        service.then(BLOCKS, no_credits());
        let _ = program.run(line).expect(7).says(&format!("Removed {} bytes", tail.len()));
        assert_eq!(program.read(OUTPUT), lines(498..=500));
    }
    let _ = program.run(line).expect(0);
    assert_eq!(program.read(OUTPUT), lines(498..=502));
}

#[test]
fn stdout_of_killed_runs_has_no_gap() {
    let (program, service) = scene(1_050);
    service.delay(1);
    let mut output = String::new();
    for run in 0..12 {
        let child = program.start("catch-up --from 1000");
        std::thread::sleep(Duration::from_millis(10 + 5 * run));
        output += &kill(child).stdout;
    }
    while !output.ends_with(&lines(1_050..=1_050)) {
        output += &program.run("catch-up --from 1000").expect(0).stdout;
    }
    let mut distinct: Vec<&str> = output.lines().collect();
    distinct.dedup();
    assert_eq!(distinct.join("\n") + "\n", lines(1_000..=1_050), "a block may appear twice in a row");
}
