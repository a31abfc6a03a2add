//! Failures between the client and the service, and what the commands say about them.

use std::time::Duration;

use crate::home::Home;
use crate::stand_in::{Reply, StandIn, closed_url};

/// Commands that need a key, with the first path that they request.
const WITH_KEY: [(&[&str], &str); 4] = [
    (&["balance"], "/credits/balance"),
    (&["usage"], "/credits/usage/summary"),
    (&["usage", "--activity"], "/credits/usage"),
    (&["call", "/mpp/ethPrice"], "/mpp/ethPrice"),
];

/// Commands that need no key.
const WITHOUT_KEY: [(&[&str], &str); 2] = [(&["plans"], "/credits/plans"), (&["routes"], "/endpoints.json")];

#[test]
fn without_a_key_no_request_is_sent_and_advice_is_printed() {
    let service = StandIn::start();
    let home = Home::new();
    for (args, _) in WITH_KEY.into_iter().chain([(&["mcp"][..], "")]) {
        let message = home.metering(&[args, &["--url", &service.url()]].concat()).failure(6);
        for way in ["metering signup", "config set api-key", "METERING_CLIENT_API_KEY"] {
            assert!(message.contains(way), "{args:?}: {message}");
        }
    }
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn service_errors_map_to_exit_codes() {
    // status, code, exit code, text
    let table = [
        (401, "unauthorized", 6, "The service says unauthorized. (unauthorized)"),
        (402, "insufficient_credits", 7, "metering plans"),
        (403, "forbidden", 1, "forbidden"),
        (404, "unknown_route", 4, "unknown_route"),
        (429, "rate_limited", 8, "; try again in 7 s"),
        (500, "internal", 1, "internal"),
        (503, "overloaded", 8, "; try again in 7 s"),
    ];
    for (status, code, exit, expected) in table {
        let service = StandIn::start();
        let (home, key) = Home::of(&service);
        for (args, path) in WITH_KEY.into_iter().chain(WITHOUT_KEY) {
            let reply = Reply::error(status, code);
            service.on(path, if matches!(status, 429 | 503) { reply.header("retry-after", 7) } else { reply });
            let ran = home.metering(args);
            assert_eq!(ran.stdout, "", "{args:?}");
            let message = ran.failure(exit);
            assert!(message.contains(expected) && !message.contains(key.expose()), "{args:?}: {message}");
        }
    }
}

#[test]
fn unreachable_service_exits_with_try_later() {
    let home = Home::new();
    let service = StandIn::start();
    home.add_profile("default", &service);
    let url = closed_url();
    let key = metering_core::ApiKey::generate(&metering_core::SystemRandomness);
    for (args, _) in WITH_KEY.into_iter().chain(WITHOUT_KEY) {
        let mut command = home.command(&[args, &["--url", &url]].concat());
        let output = command.env("METERING_CLIENT_API_KEY", key.expose()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(8), "{args:?}: {message}");
        assert!(message.contains("the request to the service failed") && message.contains(&url), "{args:?}: {message}");
        assert!(!message.contains(key.expose()), "{message}");
    }
}

#[test]
fn proxy_pages_and_garbage_are_reported_as_such() {
    // reply, exit code
    let table = [
        (Reply::html(502), 8),
        (Reply::html(403), 1),
        (Reply::html(200), 1),
        (Reply::ok("{"), 1),
        (Reply::ok("[]"), 1),
        (Reply::ok(""), 1),
        (Reply::ok(&b"\xff\xfe{}"[..]), 1),
        (Reply::ok("{\"plans\":[").cut_off(), 8),
        (Reply::new(302, "").header("location", "/elsewhere"), 1),
    ];
    for (reply, code) in table {
        let service = StandIn::start();
        let (home, _) = Home::of(&service);
        for (args, path) in [WITH_KEY[0], WITH_KEY[1], WITH_KEY[2], WITHOUT_KEY[0], WITHOUT_KEY[1]] {
            service.on(path, reply.clone());
            for json in [&[][..], &["--json"]] {
                let ran = home.metering(&[args, json].concat());
                assert_eq!(ran.stdout, "", "{args:?}");
                let message = ran.failure(code);
                assert!(!message.contains("<html>"), "{message}");
            }
        }
        assert!(!service.targets().iter().any(|target| target == "/elsewhere"), "redirects are not followed");
    }
}

#[test]
fn terminal_escapes_of_an_error_are_not_passed_on() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    service.on("/credits/balance", Reply::new(403, r#"{"error":"x\u001b[2J","message":"a\u001b]0;b\u0007\nc"}"#));
    let ran = home.metering(&["balance"]);
    assert!(!ran.stderr.trim_end().contains(|c: char| c.is_control()), "{ran:?}");
    assert_eq!(ran.failure(1), "a ]0;b c (x [2J)");
}

#[test]
fn closed_stdout_is_not_a_failure() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    service.on("/endpoints.json", Reply::ok(crate::routes::CATALOGUE));
    service.on("/mpp/ethPrice", Reply::ok("{}").then(Duration::from_millis(100), "more"));
    for args in [
        &["routes"][..],
        &["routes", "--json"],
        &["config", "list"],
        &["config", "path"],
        &["call", "/mpp/ethPrice", "-q"],
    ] {
        let ran = home.unread(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    service.on("/mpp/ethPrice", Reply::ok("{}"));
    for args in [&["config", "show"][..], &["call", "/mpp/ethPrice", "-q"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = home.command(args).stdout(full).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.starts_with("error: cannot write the output"), "{message}");
    }
}
