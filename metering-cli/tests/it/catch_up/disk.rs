//! Disks that are full, and readers that have gone away.

use std::fs::OpenOptions;
use std::process::Command;

use super::{OUTPUT, lines, scene};
use crate::program::{Program, RunOutput};

#[test]
fn full_disk_stops_the_run_and_the_next_run_resumes() {
    let (program, service) = scene(500);
    // The shell's limit makes writes beyond it fail, as on a full disk, and part of the line may be written.
    let metering = env!("CARGO_BIN_EXE_metering");
    let script = format!("trap '' XFSZ; ulimit -f 4; exec '{metering}' catch-up --from 400 --output blocks.jsonl");
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    program.prepare(&mut command);
    let ran = RunOutput::of(&mut command).expect(1).says("cannot write").says("safe in it");
    let written = program.read(OUTPUT);
    let count = u64::try_from(written.lines().count()).unwrap();
    assert!((5..60).contains(&count), "{count}");
    assert_eq!(written, lines(400..=399 + count));
    let _ = ran.says(&format!("Wrote {count} blocks"));
    assert_eq!(service.requested().last(), Some(&Some(400 + count)), "nothing more is requested");
    for _ in 0..2 {
        let _ = program.run("catch-up --output blocks.jsonl").expect(0);
    }
    assert_eq!(program.read(OUTPUT), lines(400..=500));
}

#[test]
fn block_that_nobody_got_is_written_by_the_next_run() {
    type Run = fn(&Program, &str) -> RunOutput;
    // how it is run, exit code, what it says
    let table: [(Run, i32, &str); 2] =
        [(Program::on_full_disk, 1, "cannot write the output"), (Program::unread, 0, "No block written.")];
    for (run, code, says) in table {
        let (program, service) = scene(500);
        let _ = run(&program, "catch-up --from 498").expect(code).says(says).says("No block written.");
        assert_eq!(service.requested(), [None, Some(498)]);
        assert_eq!(program.run("catch-up").expect(0).stdout, lines(498..=500));
    }
}

#[test]
fn redirected_output_is_appended_by_several_runs() {
    let (program, service) = scene(500);
    for latest in [500, 502, 503] {
        service.is_at(latest);
        let file = OpenOptions::new().create(true).append(true).open(program.path("all.jsonl")).unwrap();
        let _ = RunOutput::of(program.command("catch-up").stdout(file)).expect(0);
    }
    assert_eq!(program.read("all.jsonl"), lines(500..=503));
}
