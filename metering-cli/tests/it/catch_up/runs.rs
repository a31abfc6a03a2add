//! Runs that finish: what they request, what they write, what they say, and which output a cursor belongs to.

use super::{OUTPUT, Service, document, good, lines, scene};

#[test]
fn first_run_fetches_the_latest_block_and_later_runs_the_rest() {
    let (program, service) = scene(500);
    let all = "That is the latest finalized block. The balance is 1.2345678901 credits.\n";
    // latest block, message, requests
    for (latest, says, requested) in [
        (500, format!("Wrote block 500. {all}"), &[None][..]),
        (503, format!("Wrote 3 blocks, 501 to 503. {all}"), &[None, Some(501), Some(502)]),
        (503, format!("No block written; the cursor is at block 503. {all}"), &[None]),
    ] {
        service.is_at(latest);
        let ran = program.run("catch-up --output blocks.jsonl").expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr), ("", says));
        assert_eq!((program.read(OUTPUT), service.requested().as_slice()), (lines(500..=latest), requested));
    }
}

#[test]
fn at_most_a_hundred_blocks_are_fetched_in_a_run() {
    let (program, service) = scene(1_000);
    let line = "catch-up --from 750 --output blocks.jsonl";
    for (options, says) in [
        ("", "Wrote 100 blocks, 750 to 849. 151 blocks remain: run the command"),
        ("", "51 blocks remain"),
        ("--max-blocks 7", "44 blocks remain"),
        ("", "Wrote 44 blocks, 957 to 1000. That is the latest finalized block."),
    ] {
        let _ = program.run(&format!("{line} {options}")).expect(0).says(says);
        assert!(service.requested().len() <= 101);
    }
    assert_eq!(program.read(OUTPUT), lines(750..=1_000));
    program.refuses(&[("catch-up --max-blocks 0", 2, ""), ("catch-up --max-blocks 101", 2, "")]);
}

#[test]
fn stdout_gets_the_same_lines_only() {
    let (program, service) = scene(500);
    assert_eq!(program.run("catch-up --from 498").expect(0).stdout, lines(498..=500));
    service.is_at(501);
    let ran = program.run("catch-up").expect(0);
    assert_eq!(ran.stdout, lines(501..=501));
    assert!(!ran.stderr.contains('\u{1b}'), "no progress bar in a pipe: {:?}", ran.stderr);
    service.is_at(510);
    // A reset cursor fetches only the latest block.
    assert_eq!(program.run("catch-up --reset").expect(0).stdout, lines(510..=510));
    assert_eq!(program.run("catch-up --reset --from 509").expect(0).stdout, lines(509..=510));
}

#[test]
fn a_document_of_several_lines_becomes_one_line_with_every_digit() {
    let (program, service) = scene(500);
    let pretty = document(499).replace(',', ",\r\n  ");
    service.then_at(499, good(format!("\n{pretty}\n")));
    let _ = program.run("catch-up --from 499 --output blocks.jsonl").expect(0);
    assert_eq!(program.read(OUTPUT), pretty.replace("\r\n", "") + "\n" + &lines(500..=500));
}

#[test]
fn programs_read_a_summary() {
    let (program, _service) = scene(500);
    let ran = program.run("catch-up --from 497 --max-blocks 2 --output blocks.jsonl --json").expect(0);
    let expected = concat!(
        r#"{"written":2,"first_block":497,"last_block":498,"latest_block":500,"remaining":2,"missing":[],"#,
        r#""credit_balance":1.2345678901}"#,
        "\n"
    );
    assert_eq!(ran.stdout, expected);
    program.refuses(&[("catch-up --json", 2, "")]);
}

#[test]
fn profiles_and_services_have_cursors_of_their_own() {
    let ((program, service), other) = (scene(500), Service::at(900));
    let _ = program.run("catch-up").expect(0);
    let url = other.stand_in.url();
    assert_eq!(program.run_with(&[("METERING_CLIENT_URL", &url)], "catch-up").expect(0).stdout, lines(900..=900));
    service.is_at(502);
    assert_eq!(program.run("catch-up --profile work").expect(0).stdout, lines(502..=502));
    assert_eq!(program.run("catch-up").expect(0).stdout, lines(501..=502));
}

#[test]
fn other_output_needs_a_flag() {
    let (program, service) = scene(500);
    let _ = program.run("catch-up --from 499 --output october.jsonl").expect(0);
    service.is_at(502);
    let _ = service.requests();
    program.refuses(&[
        ("catch-up", 5, "october.jsonl"),
        ("catch-up", 5, "--new-output"),
        ("catch-up --output november.jsonl", 5, "at block 500"),
    ]);
    assert!(service.requests().is_empty(), "nothing is requested that could not be written");
    let november = "catch-up --output november.jsonl --new-output";
    let _ = program.run(november).expect(0).says("Continuing after block 500 in ");
    service.is_at(503);
    let _ = program.run(november).expect(0);
    assert_eq!(program.read("october.jsonl"), lines(499..=500));
    assert_eq!(program.read("november.jsonl"), lines(501..=503));
}

#[test]
fn output_that_cannot_be_continued_is_found_before_any_request() {
    let (program, service) = scene(500);
    program.write("other.jsonl", "{}\n");
    program.write("directory/file", "");
    program.refuses(&[
        ("catch-up --output no/such/directory", 1, ""),
        ("catch-up --output directory", 1, ""),
        ("catch-up --output other.jsonl", 5, ""),
        ("catch-up --output /dev/full", 2, ""),
    ]);
    assert!(service.requests().is_empty());
    let (homeless, _) = scene(500);
    homeless.write("profiles", "in the way");
    homeless.refuses(&[("catch-up --output blocks.jsonl", 1, "")]);

    let _ = program.run("catch-up --from 498 --output blocks.jsonl").expect(0);
    service.is_at(501);
    let _ = service.requests();
    for changed in [lines(498..=499), String::new(), lines(498..=500) + "note\n", lines(497..=499) + &lines(499..=499)]
    {
        program.write(OUTPUT, &changed);
        program.refuses(&[("catch-up --output blocks.jsonl", 5, "--new-output")]);
        assert_eq!(program.read(OUTPUT), changed);
    }
    program.write("profiles/default/cursor.json", "{");
    program.refuses(&[("catch-up", 1, "cursor.json")]);
    assert!(service.requests().is_empty());
}
