//! Errors as a user of the client sees them: one sentence on stderr, nothing on standard output, and the documented
//! exit code.

use std::net::TcpListener;

use metering_core::{ApiKey, SystemRandomness};
use metering_tests::server::Server;
use metering_tests::site::Site;

use super::terminal::{CommandOutput, Terminal};
use crate::signup::server;
use crate::support::wire::{BASE, STREAM, balance};

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const NOT_FOUND: i32 = 4;
const CONFLICT: i32 = 5;
const UNAUTHORIZED: i32 = 6;
const NO_CREDITS: i32 = 7;
const TRY_LATER: i32 = 8;

/// A deployment, and a terminal without a key.
struct Fixture {
    site: Site,
    server: Server,
    terminal: Terminal,
}

impl Fixture {
    fn new() -> Self {
        let site = Site::new();
        let server = server(&site, &[]);
        let url = format!("http://{}", server.address());
        let terminal = Terminal::new(site.path("home")).set("METERING_CLIENT_URL", &url);
        Self { site, server, terminal }
    }

    fn with_key(&self, key: &str) -> Terminal {
        self.terminal.clone().set("METERING_CLIENT_API_KEY", key)
    }
}

/// Asserts that a command fails with this code and message.
#[track_caller]
fn assert_fails(terminal: &Terminal, args: &[&str], code: i32, says: &str) -> CommandOutput {
    let output = terminal.run(args);
    assert_eq!(output.code, Some(code), "{args:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    assert!(
        output.stderr.contains("error: ") && output.stderr.contains(says),
        "{args:?} did not say {says:?}: {output:?}"
    );
    assert!(!output.stderr.contains("panicked"), "{args:?}: {output:?}");
    output
}

#[test]
fn commands_without_a_valid_key_say_how_to_get_one() {
    let fixture = Fixture::new();
    let unknown_key = ApiKey::generate(&SystemRandomness);
    let account = fixture.site.account("1");
    let _ = fixture.site.admin_json(&["account", "rotate-key", &account.org_id]);
    let commands: [&[&str]; 6] =
        [&["balance"], &["usage"], &["call", BASE], &["stream", STREAM], &["catch-up"], &["topup", "--plan", "x"]];
    for command in commands {
        assert_fails(&fixture.terminal, command, UNAUTHORIZED, "metering signup");
        for key in [unknown_key.expose(), &account.api_key] {
            let refused = assert_fails(&fixture.with_key(key), command, UNAUTHORIZED, "(unauthorized)");
            assert!(!refused.stderr.contains(key), "{refused:?}");
        }
        let mistyped = account.api_key.replace("sk_live_", "sk_live_x");
        let refused = assert_fails(&fixture.with_key(&mistyped), command, USAGE, "METERING_CLIENT_API_KEY");
        assert!(!refused.stderr.contains(&mistyped), "{refused:?}");
    }
    assert_fails(&fixture.terminal, &["mcp"], UNAUTHORIZED, "metering signup");
    // Commands that need no key still work.
    assert_eq!(fixture.terminal.run_successfully(&["routes"]).stderr, "");
    assert!(fixture.terminal.run_successfully(&["plans"]).stderr.contains("No plans are on sale"));
}

#[test]
fn metered_commands_without_credits_say_how_to_buy() {
    let fixture = Fixture::new();
    let account = fixture.site.account("0");
    let terminal = fixture.with_key(&account.api_key);
    let output = fixture.site.path("blocks.jsonl");
    let commands: [&[&str]; 3] =
        [&["call", BASE], &["stream", STREAM], &["catch-up", "--output", output.to_str().unwrap()]];
    for command in commands {
        assert_fails(&terminal, command, NO_CREDITS, "metering topup");
    }
    assert_eq!(std::fs::read(&output).unwrap_or_default(), b"", "nothing was written");
    assert!(terminal.run_successfully(&["balance"]).stderr.contains("metering topup"));
    assert_eq!(terminal.json(&["usage"])["totals"]["usage_events"], 0);
    fixture.site.verify();
}

#[test]
fn client_at_a_cap_says_when_to_retry() {
    let fixture = Fixture::new();
    let account = fixture.site.account_with_caps("1", 0, 1);
    let terminal = fixture.with_key(&account.api_key);
    terminal.run_successfully(&["call", BASE]);
    for command in
        [&["call", BASE][..], &["stream", STREAM], &["catch-up"], &["call", BASE, "--retry", "--retry-limit", "1"]]
    {
        assert_fails(&terminal, command, TRY_LATER, "; try again in");
    }
    assert_eq!(terminal.json(&["usage"])["totals"]["usage_events"], 1, "a refusal is not charged");
}

#[test]
fn unreachable_service_is_a_retryable_failure() {
    let fixture = Fixture::new();
    let account = fixture.site.account("1");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let terminal = fixture.with_key(&account.api_key).set("METERING_CLIENT_URL", &url);
    let commands: [&[&str]; 9] = [
        &["plans"],
        &["signup", "--email", "name@example.com", "--agent-name", "agent"],
        &["balance"],
        &["usage"],
        &["routes"],
        &["call", BASE],
        &["stream", STREAM],
        &["mcp"],
        &["topup", "--plan", "x", "--yes"],
    ];
    for command in commands {
        assert_fails(&terminal, command, TRY_LATER, &url);
    }
}

#[test]
fn refused_requests_are_explained_and_not_charged() {
    let fixture = Fixture::new();
    let account = fixture.site.account("1");
    let terminal = fixture.with_key(&account.api_key);
    let taken = fixture.site.write("taken.json", "{}");
    let taken = taken.to_str().unwrap();
    // what is typed, exit code, part of the message
    let table: [(&[&str], i32, &str); 9] = [
        (&["call", "/mpp/nothing"], NOT_FOUND, "unknown_route"),
        (&["call", "/mpp/ethPrice/abc"], USAGE, "invalid_parameter"),
        (&["call", "/mpp/ethPrice?x=1"], USAGE, "invalid_parameter"),
        (&["call", "/mpp/ethPrice/{block_number}"], USAGE, "block_number"),
        (&["call", BASE, "--output", taken], CONFLICT, "taken.json"),
        (&["call", BASE, "--output", "/nonexistent/file"], FAILED, "/nonexistent/file"),
        (&["stream", BASE], USAGE, "metering call"),
        (&["topup", "--plan", "nothing", "--yes"], NOT_FOUND, "nothing"),
        (&["signup", "--email", "no-address", "--agent-name", "agent"], USAGE, "email"),
    ];
    for (command, code, says) in table {
        assert_fails(&terminal, command, code, says);
    }
    assert_eq!(balance(&fixture.server.client_with(&account.api_key)), "1");
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "{}");
}

#[test]
fn invalid_arguments_are_refused_before_any_request() {
    let site = Site::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", service.local_addr().unwrap());
    let key = ApiKey::generate(&SystemRandomness);
    let terminal = Terminal::new(site.path("home"));
    let terminal = terminal.set("METERING_CLIENT_URL", &url).set("METERING_CLIENT_API_KEY", key.expose());
    let table: [&[&str]; 24] = [
        &["nonsense"],
        &["balance", "more"],
        &["balance", "--profile", "../x"],
        &["balance", "--url", "nonsense"],
        &["balance", "--url", "ftp://127.0.0.1"],
        &["balance", "--url", "http://user:secret@127.0.0.1"],
        &["plans", "--url", "http://far.example"],
        &["usage", "--days", "0"],
        &["usage", "--days", "91"],
        &["usage", "--limit", "5"],
        &["call"],
        &["call", "mpp/ethPrice"],
        &["call", "http://127.0.0.1/mpp/ethPrice"],
        &["call", BASE, "--method", "BREW"],
        &["call", BASE, "--param", "x"],
        &["call", BASE, "--data", "{"],
        &["stream", STREAM, "--max-events", "0"],
        &["stream", STREAM, "--for", "soon"],
        &["catch-up", "--max-blocks", "101"],
        &["catch-up", "--from", "-1"],
        &["signup"],
        &["topup", "--tx", "0x12", "--plan", "x"],
        &["signup-pay", "--plan", "x", "--agent-name", "no spaces"],
        &["config", "set", "api-key", "sk_live_on_the_command_line"],
    ];
    for command in table {
        assert_fails(&terminal, command, USAGE, "");
    }
    assert_fails(&terminal, &["config", "show", "--profile", "nobody"], NOT_FOUND, "nobody");
    assert!(!terminal.profile("default").exists(), "no profile was created");
    service.set_nonblocking(true).unwrap();
    assert!(service.accept().is_err(), "no request was sent");
}

#[test]
fn profile_sends_its_key_only_to_its_service() {
    let fixture = Fixture::new();
    let account = fixture.site.account("1");
    let mut typing = fixture.terminal.spawn(&["config", "set", "api-key"]);
    typing.type_line(&account.api_key);
    assert_eq!(typing.finish().code, Some(0));
    assert_eq!(fixture.terminal.key("default"), account.api_key);
    fixture.terminal.run_successfully(&["balance"]);
    // Another service, even on this machine: the key is not sent.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("http://{}", listener.local_addr().unwrap());
    assert_fails(&fixture.terminal, &["balance", "--url", &elsewhere], UNAUTHORIZED, "another service");
    assert_fails(&fixture.terminal, &["config", "set", "url", &elsewhere], CONFLICT, "--keep-key");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "no request was sent");
    // The key is not replaced by accident either.
    let signup = ["signup", "--email", "name@example.com", "--agent-name", "agent"];
    assert_fails(&fixture.terminal, &signup, CONFLICT, "--replace-key");
    assert_eq!(fixture.terminal.key("default"), account.api_key);
}
