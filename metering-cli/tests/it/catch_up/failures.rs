//! A service that is unreachable, busy or restored, or responds with something that was not requested.

use std::time::Duration;

use crate::fixture::Fixture;
use crate::service::{BLOCKS, Reply, Service, document, lines};

const ARGS: [&str; 4] = ["--from", "490", "--output", "blocks.jsonl"];

#[test]
fn temporary_failures_are_retried() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then(BLOCKS, Reply::error(503, "overloaded", Some(1)));
    service.then_at(491, Reply::error(502, "upstream_unreachable", None));
    service.then_at(492, Reply::error(504, "upstream_timeout", None)).then_at(492, Reply::CutOff);
    fixture.catch_up(&service, &ARGS).expect(0).says("; retrying in 0.5 s");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn persistent_failure_ends_the_run() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    for _ in 0..5 {
        service.then_at(492, Reply::error(502, "upstream_unreachable", None));
    }
    fixture.catch_up(&service, &ARGS).expect(8).says("It says upstream_unreachable.");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=491));
    assert_eq!(service.requested().iter().filter(|block| **block == Some(492)).count(), 5);
    fixture.catch_up(&service, &ARGS).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn unreachable_service_costs_nothing_and_loses_nothing() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let mut command = fixture.command(&service, &["catch-up", "--from", "499", "--output", "blocks.jsonl"]);
    command.env("METERING_CLIENT_URL", "http://127.0.0.1:1");
    let ran =
        crate::fixture::RunOutput::of(command.output().unwrap()).expect(8).says("the request to the service failed");
    let _ = ran.says("No block written.");
    assert_eq!(fixture.content("blocks.jsonl"), "");
}

#[test]
fn unexpected_responses_are_not_written() {
    // response, what the message says about it
    let table = [
        (document(494), "is block 494"),
        (document(495).replace("block_number", "number"), "is JSON without a block_number"),
        ("<html>busy</html>".to_owned(), "is not JSON"),
        (document(495)[..20].to_owned(), "is not JSON"),
        (String::new(), "is not JSON"),
    ];
    let (fixture, service) = (Fixture::new(), Service::at(500));
    for (body, expected) in table {
        service.then_at(495, Reply::body(&body));
        let ran = fixture.catch_up(&service, &ARGS).expect(1);
        let _ = ran.says(&format!("response for block 495 {expected}")).says("charged (0.0001388889 credits)");
        assert_eq!(fixture.content("blocks.jsonl"), lines(490..=494));
    }
    service.then(BLOCKS, Reply::body("[]"));
    fixture.catch_up(&service, &ARGS).expect(1).says("response for the latest block is JSON without a block_number");
    fixture.catch_up(&service, &ARGS).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}

#[test]
fn missing_block_is_skipped_only_with_permission() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let gap = || {
        service.then_at(495, Reply::error(404, "unknown_block", None));
        service.then_at(496, Reply::error(410, "pruned", None));
    };
    gap();
    fixture.catch_up(&service, &ARGS).expect(4).says("does not have block 495").says("--skip-missing");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=494));
    gap();
    fixture.catch_up(&service, &ARGS).expect(4);
    let ran = fixture.catch_up(&service, &[&ARGS[..], &["--skip-missing", "--json"]].concat()).expect(0);
    assert!(ran.stdout.contains(r#""missing":[496]"#), "{ran:?}");
    let _ = ran.says("does not have block 496; skipping it");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=495) + &lines(497..=500));
    let cursor: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(fixture.cursor()).unwrap()).unwrap();
    assert_eq!(cursor["cursors"][0]["missing"], serde_json::json!([[496, 496]]));
}

#[test]
fn error_unrelated_to_the_block_never_skips_it() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let skipping = [&ARGS[..], &["--skip-missing"]].concat();
    // status, code, exit code
    for (status, code, exit) in
        [(404, "unknown_route", 4), (404, "block_not_final", 8), (401, "unauthorized", 6), (500, "internal", 1)]
    {
        service.then_at(493, Reply::error(status, code, None));
        fixture.catch_up(&service, &skipping).expect(exit).says(code);
        assert_eq!(fixture.content("blocks.jsonl"), lines(490..=492));
    }
}

#[test]
fn service_behind_the_cursor_stops_the_run() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    fixture.catch_up(&service, &ARGS).expect(0);
    service.is_at(450);
    fixture.catch_up(&service, &ARGS).expect(5).says("block 500 is already written").says("finalized block is 450");
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
    service.is_at(501);
    fixture.catch_up(&service, &ARGS).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=501));
}

#[test]
fn future_block_is_left_for_later() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let args = ["--from", "502", "--output", "blocks.jsonl"];
    fixture.catch_up(&service, &args).expect(8).says("block 502 is not final yet");
    service.is_at(503);
    fixture.catch_up(&service, &args).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(502..=503));
}

#[test]
fn without_a_key_nothing_is_touched() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let mut command = fixture.command(&service, &["catch-up", "--output", "blocks.jsonl"]);
    command.env_remove("METERING_CLIENT_API_KEY");
    let _ = crate::fixture::RunOutput::of(command.output().unwrap()).expect(6);
    assert!(!fixture.path("blocks.jsonl").exists() && !fixture.cursor().exists());
}

#[test]
fn concurrent_run_is_rejected() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    service.then_at(492, Reply::Late(Duration::from_secs(3)));
    let first = fixture.start(&service, &[&["catch-up"], &ARGS[..]].concat());
    service.wait_for(&format!("{BLOCKS}/492"));
    fixture.catch_up(&service, &ARGS).expect(5).says("another process is catching up");
    let elsewhere = [&ARGS[..], &["--profile", "work"]].concat();
    fixture.catch_up(&service, &elsewhere).expect(5).says("another process is writing to");
    let _ = first.wait().expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(490..=500));
}
