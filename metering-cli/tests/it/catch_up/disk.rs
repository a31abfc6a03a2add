//! Disks that are full, and readers that have gone away.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use crate::fixture::{Fixture, RunOutput};
use crate::service::{Service, lines};

#[test]
fn full_disk_stops_the_run_and_the_next_run_resumes() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    // The shell's limit makes writes beyond it fail, as on a full disk, and part of the line may be written.
    let program = env!("CARGO_BIN_EXE_metering");
    let script = format!("trap '' XFSZ; ulimit -f 4; exec '{program}' catch-up --from 400 --output blocks.jsonl");
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    fixture.prepare(&mut command, &service);
    let ran = RunOutput::of(command.output().unwrap()).expect(1).says("cannot write").says("safe in it");
    let written = fixture.content("blocks.jsonl");
    let count = u64::try_from(written.lines().count()).unwrap();
    assert!((5..60).contains(&count), "{count}");
    assert_eq!(written, lines(400..=399 + count));
    assert!(ran.stderr.contains(&format!("Wrote {count} blocks")), "{ran:?}");
    assert_eq!(service.requested().last(), Some(&Some(400 + count)), "nothing more is requested");
    fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(400..=500));
}

#[test]
fn failed_stdout_write_does_not_move_the_cursor() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = fixture.command(&service, &["catch-up", "--from", "498"]);
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let _ = RunOutput::of(output).expect(1).says("cannot write the output").says("No block written.");
    assert_eq!(service.requested(), [None, Some(498)]);
    let ran = fixture.catch_up(&service, &[]).expect(0);
    assert_eq!(ran.stdout, lines(498..=500));
}

#[test]
fn block_not_read_is_written_by_the_next_run() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = fixture.command(&service, &["catch-up", "--from", "498"]);
    let ran = RunOutput::of(command.stdout(writer).stderr(Stdio::piped()).output().unwrap()).expect(0);
    let _ = ran.says("No block written.");
    assert_eq!(service.requested(), [None, Some(498)]);
    let ran = fixture.catch_up(&service, &[]).expect(0);
    assert_eq!(ran.stdout, lines(498..=500));
}

#[test]
fn redirected_output_is_appended_by_several_runs() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    for latest in [500, 502, 503] {
        service.is_at(latest);
        let file = OpenOptions::new().create(true).append(true).open(fixture.path("all.jsonl")).unwrap();
        let output = fixture.command(&service, &["catch-up"]).stdout(file).stderr(Stdio::piped()).output().unwrap();
        let _ = RunOutput::of(output).expect(0);
    }
    assert_eq!(fixture.content("all.jsonl"), lines(500..=503));
}
