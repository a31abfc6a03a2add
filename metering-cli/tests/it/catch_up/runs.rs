//! Runs that finish: what they request, what they write, what they say.

use crate::fixture::Fixture;
use crate::service::{Reply, Service, document, lines};

#[test]
fn first_run_fetches_the_latest_block_and_later_runs_the_rest() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let ran = fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), lines(500..=500));
    assert_eq!(
        ran.stderr,
        "Wrote block 500. That is the latest finalized block. The balance is 1.2345678901 credits.\n"
    );
    assert_eq!((ran.stdout.as_str(), service.requested()), ("", vec![None]));
    service.is_at(503);
    let ran = fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0).says("Wrote 3 blocks, 501 to 503.");
    assert_eq!(fixture.content("blocks.jsonl"), lines(500..=503));
    assert_eq!((ran.stdout.as_str(), service.requested()), ("", vec![None, Some(501), Some(502)]));
    let again = fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(0);
    again.says("No block written; the cursor is at block 503. That is the latest finalized block.");
    assert_eq!((fixture.content("blocks.jsonl"), service.requested()), (lines(500..=503), vec![None]));
}

#[test]
fn at_most_a_hundred_blocks_are_fetched_in_a_run() {
    let (fixture, service) = (Fixture::new(), Service::at(1_000));
    let args = ["--from", "750", "--output", "blocks.jsonl"];
    fixture
        .catch_up(&service, &args)
        .expect(0)
        .says("Wrote 100 blocks, 750 to 849. 151 blocks remain: run the command");
    assert_eq!(service.requested().len(), 101);
    fixture.catch_up(&service, &args).expect(0).says("51 blocks remain");
    fixture.catch_up(&service, &[&args[..], &["--max-blocks", "7"]].concat()).expect(0).says("44 blocks remain");
    fixture
        .catch_up(&service, &args)
        .expect(0)
        .says("Wrote 44 blocks, 957 to 1000. That is the latest finalized block.");
    assert_eq!(fixture.content("blocks.jsonl"), lines(750..=1_000));
    for most in ["0", "101"] {
        fixture.catch_up(&service, &["--max-blocks", most]).expect(2);
    }
}

#[test]
fn stdout_gets_the_same_lines_only() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let ran = fixture.catch_up(&service, &["--from", "498"]).expect(0);
    assert_eq!(ran.stdout, lines(498..=500));
    service.is_at(501);
    let ran = fixture.catch_up(&service, &[]).expect(0);
    assert_eq!(ran.stdout, lines(501..=501));
    assert!(!ran.stderr.contains('\u{1b}'), "no progress bar in a pipe: {:?}", ran.stderr);
}

#[test]
fn a_document_of_several_lines_becomes_one_line_with_every_digit() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let pretty = document(499).replace(',', ",\r\n  ");
    service.then_at(499, Reply::body(&format!("\n{pretty}\n")));
    fixture.catch_up(&service, &["--from", "499", "--output", "blocks.jsonl"]).expect(0);
    assert_eq!(fixture.content("blocks.jsonl"), pretty.replace("\r\n", "") + "\n" + &lines(500..=500));
}

#[test]
fn programs_read_a_summary() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    let args = ["--from", "497", "--max-blocks", "2", "--output", "blocks.jsonl", "--json"];
    let ran = fixture.catch_up(&service, &args).expect(0);
    let expected = concat!(
        r#"{"written":2,"first_block":497,"last_block":498,"latest_block":500,"remaining":2,"missing":[],"#,
        r#""credit_balance":1.2345678901}"#,
        "\n"
    );
    assert_eq!(ran.stdout, expected);
    fixture.catch_up(&service, &["--json"]).expect(2);
}

#[test]
fn reset_cursor_fetches_only_the_latest_block() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    fixture.catch_up(&service, &[]).expect(0);
    service.is_at(510);
    let ran = fixture.catch_up(&service, &["--reset"]).expect(0);
    assert_eq!(ran.stdout, lines(510..=510));
    let ran = fixture.catch_up(&service, &["--reset", "--from", "509"]).expect(0);
    assert_eq!(ran.stdout, lines(509..=510));
}

#[test]
fn profiles_and_services_have_cursors_of_their_own() {
    let (fixture, service, other) = (Fixture::new(), Service::at(500), Service::at(900));
    fixture.catch_up(&service, &[]).expect(0);
    let ran = fixture.catch_up(&other, &[]).expect(0);
    assert_eq!(ran.stdout, lines(900..=900));
    service.is_at(502);
    let ran = fixture.catch_up(&service, &["--profile", "work"]).expect(0);
    assert_eq!(ran.stdout, lines(502..=502));
    let ran = fixture.catch_up(&service, &[]).expect(0);
    assert_eq!(ran.stdout, lines(501..=502));
}
