//! `metering call`.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::home::{Home, RunOutput, signal};
use crate::routes::CATALOGUE;
use crate::stand_in::{Reply, StandIn};

/// Bytes that are not text and do not end in a line break.
const BODY: &[u8] = b"{\"a\": 1.10}\r\n\xff\x00 \x1b[2J";

fn metered(body: &'static [u8]) -> Reply {
    Reply::ok(body).header("x-bds-credit-balance", "1.9993055556").header("x-bds-credit-charged", "0.0006944444")
}

#[test]
fn response_is_printed_unchanged_and_charge_goes_to_stderr() {
    let service = StandIn::start();
    service.on("/mpp/ethPrice", metered(BODY));
    let (home, key) = Home::of(&service);
    let output = home.command(&["call", "/mpp/ethPrice?a=1&b=%20"]).output().unwrap();
    assert_eq!(output.stdout, BODY);
    let notice = String::from_utf8(output.stderr).unwrap();
    assert_eq!(notice, "Charged 0.0006944444 credits; the balance is 1.9993055556.\n");
    let output = home.command(&["call", "/mpp/ethPrice", "--quiet"]).output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (BODY, &b""[..]));
    let request = &service.requests()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/mpp/ethPrice?a=1&b=%20"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", key.expose()).as_str()));
    assert_eq!(request.header("x-bds-client-source"), Some("cli"));
}

#[test]
fn response_is_printed_as_it_arrives() {
    let service = StandIn::start();
    service.on("/mpp/stream", Reply::ok("first\n").then(Duration::from_secs(20), "never\n"));
    let (home, _) = Home::of(&service);
    let mut child = home.command(&["call", "/mpp/stream"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 6];
    let began = Instant::now();
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(&first, b"first\n");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn a_route_is_filled_in_by_the_catalogue() {
    let service = StandIn::start();
    service.on("/endpoints.json", Reply::ok(CATALOGUE)).on("/mpp/token/a%20b", Reply::ok("{}"));
    let (home, _) = Home::of(&service);
    let args = ["call", "/mpp/token/{name}", "--param", "name=a b", "--param", "q=x&y=é"];
    assert_eq!(home.metering(&args).success(), "{}");
    assert_eq!(service.targets(), ["/endpoints.json", "/mpp/token/a%20b?q=x%26y%3D%C3%A9"]);
    assert_eq!(service.requests()[0].header("authorization"), None, "the catalogue needs no key");
    let message = home.metering(&args[..4]).failure(2);
    assert!(message.contains("--param q=VALUE"), "{message}");
    home.metering(&["call", "/mpp/none/{x}", "--param", "x=1"]).failure(4);
    assert_eq!(service.targets().len(), 4, "nothing invalid was requested");
}

#[test]
fn invalid_path_is_rejected_before_sending() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    for route in ["mpp/ethPrice", "https://other.example/", "/mpp/../internal", "/a b", "/a#b"] {
        home.metering(&["call", route]).failure(2);
    }
    for args in [&["--method", "BREW"][..], &["--param", "x"], &["--data", "{"], &["--force"], &["--retry-limit", "5"]]
    {
        assert_eq!(home.metering(&[&["call", "/mpp/x"], args].concat()).code, 2, "{args:?}");
    }
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn data_comes_from_the_argument_a_file_or_standard_input() {
    let service = StandIn::start();
    service.on("/mpp/search", Reply::ok("{}"));
    let (home, _) = Home::of(&service);
    let document = "{\"q\": 1.10}";
    fs::write(home.path("query.json"), document).unwrap();
    home.metering(&["call", "/mpp/search", "--data", document]).success();
    home.metering(&["call", "/mpp/search", "--data", "@query.json", "--method", "put"]).success();
    home.reading(&["call", "/mpp/search", "--data", "-"], document).success();
    home.metering(&["call", "/mpp/search", "--data", "@missing.json"]).failure(1);
    let requests = service.requests();
    let methods: Vec<_> = requests.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["POST", "PUT", "POST"]);
    for request in &requests {
        assert_eq!(request.body, document);
        assert_eq!(request.header("content-type"), Some("application/json"));
    }
}

#[test]
fn file_is_written_completely_or_not_at_all() {
    let service = StandIn::start();
    service.on("/mpp/whole", metered(BODY)).on("/mpp/part", metered(BODY).cut_off());
    let (home, _) = Home::of(&service);
    let file = home.path("answer.json");
    let files = || fs::read_dir(home.path("")).unwrap().count();
    let before = files();
    let message = home.metering(&["call", "/mpp/part", "--output", "answer.json"]).failure(8);
    assert!(message.contains(&format!("cut off after {} bytes", BODY.len())), "{message}");
    assert_eq!(files(), before, "nothing is left of a response that was cut off");
    let ran = home.metering(&["call", "/mpp/whole", "--output", "answer.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    assert_eq!(fs::read(&file).unwrap(), BODY);
    let requests = service.requests().len();
    home.metering(&["call", "/mpp/whole", "--output", "answer.json"]).failure(5);
    home.metering(&["call", "/mpp/whole", "--output", "missing/answer.json"]).failure(1);
    assert_eq!(
        service.requests().len(),
        requests,
        "a file that cannot be written is noticed before anything is charged"
    );
    home.metering(&["call", "/mpp/part", "--output", "answer.json", "--force"]).failure(8);
    assert_eq!(fs::read(&file).unwrap(), BODY, "the old file stays until the new one is complete");
    assert_eq!(home.metering(&["call", "/mpp/whole", "--output", "answer.json", "--force"]).code, 0);
    assert_eq!(files(), before + 1);
}

#[cfg(unix)]
#[test]
fn an_interrupted_download_leaves_nothing_behind() {
    let service = StandIn::start();
    service.on("/mpp/slow", Reply::ok("first").then(Duration::from_secs(20), "never"));
    let (home, _) = Home::of(&service);
    let before = fs::read_dir(home.path("")).unwrap().count();
    let child = home.start(&["call", "/mpp/slow", "--output", "answer.json"]);
    service.await_requests("/mpp/slow", 1);
    std::thread::sleep(Duration::from_millis(300));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let message = RunOutput::from(child.wait_with_output().unwrap()).failure(130);
    assert!(message.contains("the file was not written"), "{message}");
    assert_eq!(fs::read_dir(home.path("")).unwrap().count(), before);
}

#[test]
fn cap_is_waited_for_with_retry() {
    let service = StandIn::start();
    let capped = Reply::error(429, "rate_limited").header("retry-after", 1);
    service.on("/mpp/x", capped.clone()).on("/mpp/x", Reply::html(503)).on("/mpp/x", metered(b"{}"));
    let (home, _) = Home::of(&service);
    let began = Instant::now();
    let ran = home.metering(&["call", "/mpp/x", "--retry"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{}"), "{ran:?}");
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(ran.stderr.contains("rate_limited. (rate_limited); retrying in 1 s"), "{}", ran.stderr);
    service.on("/mpp/y", Reply::error(429, "rate_limited").header("retry-after", 3600));
    let message = home.metering(&["call", "/mpp/y", "--retry", "--retry-limit", "5"]).failure(8);
    assert!(message.contains("; try again in 3600 s"), "{message}");
    service.on("/mpp/z", Reply::error(402, "insufficient_credits"));
    home.metering(&["call", "/mpp/z", "--retry"]).failure(7);
    let count = |path: &str| service.targets().iter().filter(|target| *target == path).count();
    assert_eq!((count("/mpp/x"), count("/mpp/y"), count("/mpp/z")), (3, 1, 1));
}

/// Errors from the source behind a route come after the charge.
#[test]
fn charge_of_a_rejected_request_is_reported() {
    let service = StandIn::start();
    let refused = Reply::error(404, "unknown_pool");
    service.on("/mpp/pool", refused.header("x-bds-credit-charged", "0.01").header("x-bds-credit-balance", "1.99"));
    let (home, _) = Home::of(&service);
    for command in ["call", "stream"] {
        let ran = home.metering(&[command, "/mpp/pool"]);
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stderr.contains("Charged 0.01 credits; the balance is 1.99."), "{ran:?}");
        let quiet = home.metering(&[command, "/mpp/pool", "--quiet"]);
        assert!(!quiet.stderr.contains("Charged"), "{quiet:?}");
    }
}

#[test]
fn incomplete_file_is_removed_when_the_call_is_stopped() {
    // While the response has not started, and while the client waits to retry.
    let hangs = Reply::ok("{}").late(Duration::from_secs(60));
    let busy = Reply::error(429, "rate_limited").header("retry-after", 60);
    for (reply, name) in [(hangs.clone(), "INT"), (hangs, "TERM"), (busy.clone(), "INT"), (busy, "TERM")] {
        let service = StandIn::start();
        service.on("/mpp/ethPrice", reply);
        let (home, _) = Home::of(&service);
        let child = home.start(&["call", "/mpp/ethPrice", "--output", "price.json", "--retry"]);
        service.await_requests("/mpp/ethPrice", 1);
        std::thread::sleep(Duration::from_millis(100));
        signal(&child, name);
        let ran = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 130, "{name} {ran:?}");
        let files: Vec<_> = fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, ["profiles"], "{name}");
    }
}

#[test]
fn a_stream_is_stopped_while_it_is_looked_up() {
    let service = StandIn::start();
    service.on("/endpoints.json", Reply::ok("{}").late(Duration::from_secs(60)));
    let (home, _) = Home::of(&service);
    for name in ["INT", "TERM"] {
        let child = home.start(&["stream", "/mpp/stream/allTrades"]);
        service.await_requests("/endpoints.json", if name == "INT" { 1 } else { 2 });
        let start = Instant::now();
        signal(&child, name);
        assert_eq!(RunOutput::from(child.wait_with_output().unwrap()).code, 130);
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
