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
