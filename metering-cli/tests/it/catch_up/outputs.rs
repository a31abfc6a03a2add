//! Which output a cursor belongs to.

use std::fs;

use crate::fixture::Fixture;
use crate::service::{Service, lines};

#[test]
fn other_output_needs_a_flag() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    fixture.catch_up(&service, &["--from", "499", "--output", "october.jsonl"]).expect(0);
    service.is_at(502);
    let _ = service.requests();
    fixture.catch_up(&service, &[]).expect(5).says("october.jsonl").says("--new-output");
    fixture.catch_up(&service, &["--output", "november.jsonl"]).expect(5).says("at block 500");
    assert_eq!(service.requests(), [], "nothing is requested that could not be written");
    let november = ["--output", "november.jsonl", "--new-output"];
    fixture.catch_up(&service, &november).expect(0).says("Continuing after block 500 in ");
    service.is_at(503);
    fixture.catch_up(&service, &november).expect(0);
    assert_eq!(fixture.content("october.jsonl"), lines(499..=500));
    assert_eq!(fixture.content("november.jsonl"), lines(501..=503));
}

#[test]
fn unwritable_output_is_found_before_any_request() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    fs::write(fixture.path("other.jsonl"), "{}\n").unwrap();
    fs::create_dir(fixture.path("directory")).unwrap();
    // output, exit code
    for (output, code) in [("no/such/directory", 1), ("directory", 1), ("other.jsonl", 5), ("/dev/full", 2)] {
        fixture.catch_up(&service, &["--output", output]).expect(code);
    }
    let homeless = Fixture::new();
    fs::write(homeless.path("home"), "in the way").unwrap();
    homeless.catch_up(&service, &["--output", "blocks.jsonl"]).expect(1);
    assert_eq!(service.requests(), []);
}

#[test]
fn changed_file_is_not_written_to() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    fixture.catch_up(&service, &["--from", "498", "--output", "blocks.jsonl"]).expect(0);
    service.is_at(501);
    let _ = service.requests();
    for changed in [lines(498..=499), String::new(), lines(498..=500) + "note\n", lines(497..=499) + &lines(499..=499)]
    {
        fs::write(fixture.path("blocks.jsonl"), &changed).unwrap();
        fixture.catch_up(&service, &["--output", "blocks.jsonl"]).expect(5).says("--new-output");
        assert_eq!(fixture.content("blocks.jsonl"), changed);
    }
    assert_eq!(service.requests(), []);
}

#[test]
fn damaged_cursor_is_an_error() {
    let (fixture, service) = (Fixture::new(), Service::at(500));
    fixture.catch_up(&service, &[]).expect(0);
    fs::write(fixture.cursor(), "{").unwrap();
    let _ = service.requests();
    fixture.catch_up(&service, &[]).expect(1).says("cursor.json");
    assert_eq!(service.requests(), []);
}
