//! Disks that are full, and readers that have gone away.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use crate::desk::{Desk, Ran};
use crate::service::{Service, lines};

#[test]
fn a_disk_that_fills_up_stops_the_run_and_is_gone_on_with_later() {
    let (desk, service) = (Desk::new(), Service::at(500));
    // The shell's limit makes writes beyond it fail, as on a full disk, and part of the line may be written.
    let program = env!("CARGO_BIN_EXE_metering");
    let script = format!("trap '' XFSZ; ulimit -f 4; exec '{program}' catch-up --from 400 --output blocks.jsonl");
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    desk.prepare(&mut command, &service);
    let ran = Ran::of(command.output().unwrap()).expect(1).says("cannot write").says("safe in it");
    let written = desk.content("blocks.jsonl");
    let count = u64::try_from(written.lines().count()).unwrap();
    assert!((5..60).contains(&count), "{count}");
    assert_eq!(written, lines(400..=399 + count));
    assert!(ran.stderr.contains(&format!("Wrote {count} blocks")), "{ran:?}");
    assert_eq!(service.asked().last(), Some(&Some(400 + count)), "nothing more is requested");
    desk.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    desk.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    assert_eq!(desk.content("blocks.jsonl"), lines(400..=500));
}

#[test]
fn standard_output_that_is_full_does_not_move_the_cursor() {
    let (desk, service) = (Desk::new(), Service::at(500));
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = desk.command(&service, &["catch-up", "--from", "498"]);
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let _ = Ran::of(output).expect(1).says("cannot write the output").says("No block written.");
    assert_eq!(service.asked(), [None, Some(498)]);
    let ran = desk.catch_up(&service, &[]).expect(0);
    assert_eq!(ran.stdout, lines(498..=500));
}

#[test]
fn a_reader_that_has_gone_gets_the_block_the_next_time() {
    let (desk, service) = (Desk::new(), Service::at(500));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = desk.command(&service, &["catch-up", "--from", "498"]);
    let ran = Ran::of(command.stdout(writer).stderr(Stdio::piped()).output().unwrap()).expect(0);
    let _ = ran.says("No block written.");
    assert_eq!(service.asked(), [None, Some(498)]);
    let ran = desk.catch_up(&service, &[]).expect(0);
    assert_eq!(ran.stdout, lines(498..=500));
}

#[test]
fn redirected_output_is_appended_to_by_several_runs() {
    let (desk, service) = (Desk::new(), Service::at(500));
    for latest in [500, 502, 503] {
        service.is_at(latest);
        let file = OpenOptions::new().create(true).append(true).open(desk.path("all.jsonl")).unwrap();
        let output = desk.command(&service, &["catch-up"]).stdout(file).stderr(Stdio::piped()).output().unwrap();
        let _ = Ran::of(output).expect(0);
    }
    assert_eq!(desk.content("all.jsonl"), lines(500..=503));
}
