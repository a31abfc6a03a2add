//! Failures between the client and the service, and what the commands say about them.

use std::time::Duration;

use super::prices::CATALOGUE;
use super::{client, new_key};
use crate::program::Program;
use crate::stand_in::{Reply, closed_url};

/// Commands with the first path that they request; the first four need a key.
const COMMANDS: [(&str, &str); 6] = [
    ("balance", "/credits/balance"),
    ("usage", "/credits/usage/summary"),
    ("usage --activity", "/credits/usage"),
    ("call /mpp/ethPrice", "/mpp/ethPrice"),
    ("plans", "/credits/plans"),
    ("routes", "/endpoints.json"),
];

#[test]
fn without_a_key_no_request_is_sent_and_advice_is_printed() {
    let (program, service) = (Program::new(), crate::stand_in::StandIn::start());
    for line in COMMANDS[..4].iter().map(|(line, _)| *line).chain(["mcp"]) {
        let message = program.run(&format!("{line} --url {}", service.url())).failure(6);
        for way in ["metering signup", "config set api-key", "METERING_CLIENT_API_KEY"] {
            assert!(message.contains(way), "{line}: {message}");
        }
    }
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn service_errors_map_to_exit_codes() {
    let (program, service) = client([]);
    // status, code, exit code, text
    for (status, code, exit, expected) in [
        (401, "unauthorized", 6, "The service says unauthorized. (unauthorized)"),
        (402, "insufficient_credits", 7, "metering plans"),
        (403, "forbidden", 1, "forbidden"),
        (404, "unknown_route", 4, "unknown_route"),
        (429, "rate_limited", 8, "; try again in 7 s"),
        (500, "internal", 1, "internal"),
        (503, "overloaded", 8, "; try again in 7 s"),
    ] {
        for (line, path) in COMMANDS {
            let reply = Reply::error(status, code);
            service.only(path, if matches!(status, 429 | 503) { reply.header("retry-after", 7) } else { reply });
            let ran = program.run(line);
            assert!(ran.stdout.is_empty() && !ran.shows(&program.text("$key")), "{line}: {ran:?}");
            let message = ran.failure(exit);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}

#[test]
fn unreachable_service_exits_with_try_later() {
    let (program, url, key) = (Program::new(), closed_url(), new_key());
    for (line, _) in COMMANDS {
        let ran = program.run_with(&[("METERING_CLIENT_API_KEY", &key)], &format!("{line} --url {url}"));
        let ran = ran.expect(8).says("the request to the service failed").says(&url);
        assert!(!ran.shows(&key), "{ran:?}");
    }
}

#[test]
fn proxy_pages_and_garbage_are_reported_as_such() {
    let (program, service) = client([]);
    // reply, exit code
    for (reply, code) in [
        (Reply::html(502), 8),
        (Reply::html(403), 1),
        (Reply::html(200), 1),
        (Reply::ok("{"), 1),
        (Reply::ok("[]"), 1),
        (Reply::ok(""), 1),
        (Reply::ok(&b"\xff\xfe{}"[..]), 1),
        (Reply::ok("{\"plans\":[").cut_off(), 8),
        (Reply::new(302, "").header("location", "/elsewhere"), 1),
    ] {
        for (line, path) in COMMANDS.into_iter().filter(|(line, _)| !line.starts_with("call")) {
            service.only(path, reply.clone());
            for line in [line.to_owned(), format!("{line} --json")] {
                let ran = program.run(&line);
                assert_eq!(ran.stdout, "", "{line}");
                let message = ran.failure(code);
                assert!(!message.contains("<html>"), "{message}");
            }
        }
    }
    assert_eq!(service.count("/elsewhere"), 0, "redirects are not followed");
}

#[test]
fn terminal_escapes_of_an_error_are_not_passed_on() {
    let refusal = Reply::new(403, r#"{"error":"x\u001b[2J","message":"a\u001b]0;b\u0007\nc"}"#);
    let (program, _service) = client([("/credits/balance", refusal)]);
    let ran = program.run("balance");
    assert!(!ran.stderr.trim_end().contains(|c: char| c.is_control()), "{ran:?}");
    assert_eq!(ran.failure(1), "a ]0;b c (x [2J)");
}

#[test]
fn closed_stdout_is_not_a_failure_and_a_full_disk_is() {
    let (program, _service) = client([
        ("/endpoints.json", Reply::ok(CATALOGUE)),
        ("/mpp/ethPrice", Reply::ok("{}").then(Duration::from_millis(100), "more")),
    ]);
    for line in ["routes", "routes --json", "config list", "config path", "call /mpp/ethPrice -q"] {
        program.unread(line).success();
    }
    for line in ["config show", "call /mpp/ethPrice -q"] {
        let message = program.on_full_disk(line).failure(1);
        assert!(message.starts_with("cannot write the output"), "{line}: {message}");
    }
}
