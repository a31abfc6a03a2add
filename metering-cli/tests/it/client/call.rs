//! `metering call`.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use super::prices::CATALOGUE;
use super::{client, misuses};
use crate::program::{ended, kill, signal};
use crate::stand_in::Reply;

/// Bytes that are not text and do not end in a line break.
const BODY: &[u8] = b"{\"a\": 1.10}\r\n\xff\x00 \x1b[2J";

fn metered(body: &'static [u8]) -> Reply {
    Reply::ok(body).charged("0.0006944444", "1.9993055556")
}

#[test]
fn response_is_printed_unchanged_and_charge_goes_to_stderr() {
    let (program, service) = client([("/mpp/ethPrice", metered(BODY))]);
    for (line, notice) in [
        ("call /mpp/ethPrice?a=1&b=%20", "Charged 0.0006944444 credits; the balance is 1.9993055556.\n"),
        ("call /mpp/ethPrice?a=1&b=%20 --quiet", ""),
    ] {
        let output = program.command(line).output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (BODY, notice.as_bytes()));
        let request = service.last();
        assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/mpp/ethPrice?a=1&b=%20"));
        let key = program.text("$key");
        assert_eq!((request.key(), request.header("x-bds-client-source")), (Some(key.as_str()), Some("cli")));
    }
}

#[test]
fn signed_receipt_is_asked_for_and_written_to_a_new_file() {
    let signed = metered(b"{}").header("metering-receipt", "a.0-1..b.c.d");
    let (program, service) = client([("/mpp/ethPrice", signed), ("/mpp/free", Reply::ok("{}"))]);
    program.run("call /mpp/ethPrice --receipt receipt.txt --quiet -H 'Prefer: wait=5'").success();
    assert_eq!(fs::read_to_string(program.path("receipt.txt")).unwrap(), "a.0-1..b.c.d\n");
    assert_eq!(service.last().header("prefer"), Some("wait=5"), "the user's preferences come first");
    program.refuses(&[("call /mpp/ethPrice --receipt receipt.txt", 5, "--force")]);
    assert_eq!(service.targets().len(), 1, "nothing is charged if the receipt cannot be written");
    let output = program.command("call /mpp/free --receipt none.txt").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("no signed receipt"));
    assert!(output.status.success() && !program.path("none.txt").exists());
    assert_eq!(service.last().header("prefer"), Some("metering-receipt"));
}

#[test]
fn response_is_printed_as_it_arrives() {
    let (program, _service) = client([("/mpp/stream", Reply::ok("first\n").then(Duration::from_secs(120), "never\n"))]);
    let mut child = program.start("call /mpp/stream");
    let (mut first, began) = ([0; 6], Instant::now());
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let _ = kill(child);
    assert_eq!(&first, b"first\n");
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
}

#[test]
fn a_route_is_filled_in_by_the_catalogue() {
    let (program, service) = client([("/endpoints.json", Reply::ok(CATALOGUE)), ("/mpp/token/a%20b", Reply::ok("{}"))]);
    let line = "call /mpp/token/{name} --param 'name=a b'";
    assert_eq!(program.run(&format!("{line} --param q=x&y=é")).success(), "{}");
    assert_eq!(service.targets(), ["/endpoints.json", "/mpp/token/a%20b?q=x%26y%3D%C3%A9"]);
    assert_eq!(service.requests()[0].key(), None, "the catalogue needs no key");
    program.refuses(&[(line, 2, "--param q=VALUE"), ("call /mpp/none/{x} --param x=1", 4, "")]);
    assert_eq!(service.targets().len(), 4, "nothing invalid was requested");
    let lines = [
        "call mpp/ethPrice",
        "call https://other.example/",
        "call /mpp/../internal",
        "call '/a b'",
        "call /a#b",
        "call /mpp/x --method BREW",
        "call /mpp/x --param x",
        "call /mpp/x --data {",
        "call /mpp/x --force",
        "call /mpp/x --retry-limit 5",
    ];
    misuses(&program, &service, &lines);
}

#[test]
fn data_comes_from_the_argument_a_file_or_standard_input() {
    let (program, service) = client([("/mpp/search", Reply::ok("{}"))]);
    let document = "{\"q\": 1.10}";
    program.write("query.json", document);
    program.run("call /mpp/search --data '{\"q\": 1.10}'").success();
    program.run("call /mpp/search --data @query.json --method put").success();
    program.reading("call /mpp/search --data -", document).success();
    program.refuses(&[("call /mpp/search --data @missing.json", 1, "missing.json")]);
    let requests = service.requests();
    assert_eq!(requests.iter().map(|request| &*request.method).collect::<Vec<_>>(), ["POST", "PUT", "POST"]);
    for request in &requests {
        assert_eq!((request.text(), request.header("content-type")), (document, Some("application/json")));
    }
}

#[test]
fn file_is_written_completely_or_not_at_all() {
    let (program, service) = client([("/mpp/whole", metered(BODY)), ("/mpp/part", metered(BODY).cut_off())]);
    let content = || fs::read(program.path("answer.json")).unwrap();
    let before = program.files();
    let cut_off = format!("cut off after {} bytes", BODY.len());
    program.refuses(&[("call /mpp/part --output answer.json", 8, &cut_off)]);
    assert_eq!(program.files(), before, "nothing is left of a response that was cut off");
    let ran = program.run("call /mpp/whole --output answer.json").expect(0);
    assert_eq!((ran.stdout.as_str(), content().as_slice()), ("", BODY));
    let requests = service.requests().len();
    program.refuses(&[
        ("call /mpp/whole --output answer.json", 5, "--force"),
        ("call /mpp/whole --output missing/answer.json", 1, ""),
    ]);
    // A file that cannot be written is noticed before anything is charged.
    assert_eq!(service.requests().len(), requests);
    // The old file stays until the new one is complete.
    program.refuses(&[("call /mpp/part --output answer.json --force", 8, &cut_off)]);
    assert_eq!(content(), BODY);
    let _ = program.run("call /mpp/whole --output answer.json --force").expect(0);
    assert_eq!(program.files(), before + 1);
}

#[test]
fn an_interrupted_download_leaves_nothing_behind() {
    let minute = Duration::from_secs(60);
    let slow = Reply::ok("first").then(minute, "never");
    // The response has not started, or the client waits to retry.
    let hangs = Reply::ok("{}").late(minute);
    let busy = Reply::error(429, "rate_limited").header("retry-after", 60);
    for (reply, name, says) in [
        (slow, "INT", "the file was not written"),
        (hangs.clone(), "INT", ""),
        (hangs, "TERM", ""),
        (busy.clone(), "INT", ""),
        (busy, "TERM", ""),
    ] {
        let (program, service) = client([("/mpp/slow", reply)]);
        let before = program.files();
        let child = program.start("call /mpp/slow --output answer.json --retry");
        service.await_requests("/mpp/slow", 1);
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, name);
        let _ = ended(child).expect(130).says(says);
        assert_eq!(program.files(), before, "{name}");
    }
}

#[test]
fn cap_is_waited_for_with_retry() {
    let capped = |seconds: u32| Reply::error(429, "rate_limited").header("retry-after", seconds);
    let (program, service) = client([
        ("/mpp/x", capped(1)),
        ("/mpp/x", Reply::html(503)),
        ("/mpp/x", metered(b"{}")),
        ("/mpp/y", capped(3600)),
        ("/mpp/z", Reply::error(402, "insufficient_credits")),
    ]);
    let began = Instant::now();
    let ran = program.run("call /mpp/x --retry").expect(0).says("rate_limited. (rate_limited); retrying in 1 s");
    assert!(ran.stdout == "{}" && began.elapsed() >= Duration::from_secs(2), "{ran:?}");
    program.refuses(&[
        ("call /mpp/y --retry --retry-limit 5", 8, "; try again in 3600 s"),
        ("call /mpp/z --retry", 7, "insufficient_credits"),
    ]);
    assert_eq!(["/mpp/x", "/mpp/y", "/mpp/z"].map(|path| service.count(path)), [3, 1, 1]);
}

/// Errors from the source behind a route come after the charge.
#[test]
fn charge_of_a_rejected_request_is_reported() {
    let (program, _service) = client([("/mpp/pool", Reply::error(404, "unknown_pool").charged("0.01", "1.99"))]);
    for command in ["call", "stream"] {
        let line = format!("{command} /mpp/pool");
        let _ = program.run(&line).expect(4).says("Charged 0.01 credits; the balance is 1.99.");
        assert!(!program.run(&format!("{line} --quiet")).stderr.contains("Charged"));
    }
}

#[test]
fn a_stream_is_stopped_while_it_is_looked_up() {
    let (program, service) = client([("/endpoints.json", Reply::ok("{}").late(Duration::from_secs(60)))]);
    for (number, name) in [(1, "INT"), (2, "TERM")] {
        let child = program.start("stream /mpp/stream/allTrades");
        service.await_requests("/endpoints.json", number);
        let start = Instant::now();
        signal(&child, name);
        let _ = ended(child).expect(130);
        assert!(start.elapsed() < Duration::from_secs(50));
    }
}
