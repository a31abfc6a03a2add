//! A service that is unreachable, busy or restored, or responds with something that was not requested.

use std::time::Duration;

use serde_json::{Value, json};

use super::{BLOCKS, CATCH_UP, OUTPUT, busy, document, good, lines, scene, writes};
use crate::program::ended;
use crate::stand_in::Reply;

#[test]
fn temporary_failures_are_retried() {
    let (program, service) = scene(500);
    service.then(BLOCKS, busy(503, "overloaded", 1));
    service.then_at(491, Reply::error(502, "upstream_unreachable")).then_at(492, Reply::error(504, "upstream_timeout"));
    service.then_at(492, good("{\"block_number\":").header("content-length", 1_000).cut_off());
    let _ = writes(&program, "", 0, 500).says("; retrying in 0.5 s");
}

#[test]
fn persistent_failure_ends_the_run() {
    let (program, service) = scene(500);
    for _ in 0..5 {
        service.then_at(492, Reply::error(502, "upstream_unreachable"));
    }
    let _ = writes(&program, "", 8, 491).says("The service says upstream_unreachable.");
    assert_eq!(service.requested().iter().filter(|block| **block == Some(492)).count(), 5);
    let _ = writes(&program, "", 0, 500);
}

#[test]
fn unreachable_service_or_missing_key_costs_and_loses_nothing() {
    let (program, _service) = scene(500);
    let _ = program.run_without("METERING_CLIENT_API_KEY", CATCH_UP).expect(6);
    assert!(!program.path(OUTPUT).exists() && !program.profile("default", "cursor.json").exists());
    let closed = [("METERING_CLIENT_URL", "http://127.0.0.1:1")];
    let ran = program.run_with(&closed, CATCH_UP).expect(8).says("the request to the service failed");
    let _ = ran.says("No block written.");
    assert_eq!(program.read(OUTPUT), "");
}

#[test]
fn unexpected_responses_are_not_written() {
    let (program, service) = scene(500);
    // response, what the message says about it
    for (body, expected) in [
        (document(494), "is block 494"),
        (document(495).replace("block_number", "number"), "is JSON without a block_number"),
        ("<html>busy</html>".to_owned(), "is not JSON"),
        (document(495)[..20].to_owned(), "is not JSON"),
        (String::new(), "is not JSON"),
    ] {
        service.then_at(495, good(body));
        let ran = writes(&program, "", 1, 494).says(&format!("response for block 495 {expected}"));
        let _ = ran.says("charged (0.0001388889 credits)");
    }
    service.then(BLOCKS, good("[]"));
    let _ = writes(&program, "", 1, 494).says("response for the latest block is JSON without a block_number");
    let _ = writes(&program, "", 0, 500);
}

#[test]
fn missing_block_is_skipped_only_with_permission() {
    let (program, service) = scene(500);
    let gap = || {
        service.then_at(495, Reply::error(404, "unknown_block")).then_at(496, Reply::error(410, "pruned"));
    };
    gap();
    let _ = writes(&program, "", 4, 494).says("does not have block 495").says("--skip-missing");
    gap();
    let _ = program.run(CATCH_UP).expect(4);
    let ran = program.run(&format!("{CATCH_UP} --skip-missing --json")).expect(0);
    assert!(ran.stdout.contains(r#""missing":[496]"#), "{ran:?}");
    let _ = ran.says("does not have block 496; skipping it");
    assert_eq!(program.read(OUTPUT), lines(490..=495) + &lines(497..=500));
    let cursor: Value = serde_json::from_str(&program.read("profiles/default/cursor.json")).unwrap();
    assert_eq!(cursor["cursors"][0]["missing"], json!([[496, 496]]));
}

#[test]
fn error_unrelated_to_the_block_never_skips_it() {
    let (program, service) = scene(500);
    // status, code, exit code
    for (status, code, exit) in
        [(404, "unknown_route", 4), (404, "block_not_final", 8), (401, "unauthorized", 6), (500, "internal", 1)]
    {
        service.then_at(493, Reply::error(status, code));
        let _ = writes(&program, "--skip-missing", exit, 492).says(code);
    }
}

#[test]
fn service_behind_the_cursor_stops_the_run() {
    let (program, service) = scene(500);
    let _ = writes(&program, "", 0, 500);
    service.is_at(450);
    let _ = writes(&program, "", 5, 500).says("block 500 is already written").says("finalized block is 450");
    service.is_at(501);
    let _ = writes(&program, "", 0, 501);
}

#[test]
fn future_block_is_left_for_later() {
    let (program, service) = scene(500);
    let line = "catch-up --from 502 --output blocks.jsonl";
    program.refuses(&[(line, 8, "block 502 is not final yet")]);
    service.is_at(503);
    let _ = program.run(line).expect(0);
    assert_eq!(program.read(OUTPUT), lines(502..=503));
}

#[test]
fn concurrent_run_is_rejected() {
    let (program, service) = scene(500);
    service.then_at(492, good(document(492)).late(Duration::from_secs(3)));
    let first = program.start(CATCH_UP);
    service.wait_for(492);
    let elsewhere = format!("{CATCH_UP} --profile work");
    program
        .refuses(&[(CATCH_UP, 5, "another process is catching up"), (&elsewhere, 5, "another process is writing to")]);
    let _ = ended(first).expect(0);
    assert_eq!(program.read(OUTPUT), lines(490..=500));
}
