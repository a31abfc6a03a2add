//! Errors as a user of the client sees them: one sentence on stderr, nothing on standard output, and the documented
//! exit code.

use std::net::TcpListener;

use metering_core::{ApiKey, SystemRandomness};
use metering_tests::server::Server;
use metering_tests::site::Site;

use super::terminal::{Terminal, Typed};
use crate::signup::server;
use crate::wire::{BASE, STREAM, balance};

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const NOT_FOUND: i32 = 4;
const CONFLICT: i32 = 5;
const UNAUTHORIZED: i32 = 6;
const NO_CREDITS: i32 = 7;
const TRY_LATER: i32 = 8;

/// A deployment, and a terminal without a key.
struct Scene {
    site: Site,
    server: Server,
    terminal: Terminal,
}

impl Scene {
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
fn fails(terminal: &Terminal, args: &[&str], code: i32, says: &str) -> Typed {
    let typed = terminal.run(args);
    assert_eq!(typed.code, Some(code), "{args:?}: {typed:?}");
    assert!(typed.stdout.is_empty(), "{args:?}: {typed:?}");
    assert!(
        typed.stderr.contains("error: ") && typed.stderr.contains(says),
        "{args:?} did not say {says:?}: {typed:?}"
    );
    assert!(!typed.stderr.contains("panicked"), "{args:?}: {typed:?}");
    typed
}

#[test]
fn without_a_key_that_is_taken_every_command_says_how_to_get_one() {
    let scene = Scene::new();
    let strange = ApiKey::generate(&SystemRandomness);
    let account = scene.site.account("1");
    let _ = scene.site.admin_json(&["account", "rotate-key", &account.org_id]);
    let commands: [&[&str]; 6] =
        [&["balance"], &["usage"], &["call", BASE], &["stream", STREAM], &["catch-up"], &["topup", "--plan", "x"]];
    for command in commands {
        fails(&scene.terminal, command, UNAUTHORIZED, "metering signup");
        for key in [strange.expose(), &account.api_key] {
            let refused = fails(&scene.with_key(key), command, UNAUTHORIZED, "(unauthorized)");
            assert!(!refused.stderr.contains(key), "{refused:?}");
        }
        let mistyped = account.api_key.replace("sk_live_", "sk_live_x");
        let refused = fails(&scene.with_key(&mistyped), command, USAGE, "METERING_CLIENT_API_KEY");
        assert!(!refused.stderr.contains(&mistyped), "{refused:?}");
    }
    fails(&scene.terminal, &["mcp"], UNAUTHORIZED, "metering signup");
    // Commands that need no key still work.
    assert_eq!(scene.terminal.good(&["routes"]).stderr, "");
    assert!(scene.terminal.good(&["plans"]).stderr.contains("No plans are on sale"));
}

#[test]
fn without_credits_what_is_metered_says_how_to_buy_some_and_the_rest_goes_on() {
    let scene = Scene::new();
    let account = scene.site.account("0");
    let terminal = scene.with_key(&account.api_key);
    let output = scene.site.path("blocks.jsonl");
    let commands: [&[&str]; 3] =
        [&["call", BASE], &["stream", STREAM], &["catch-up", "--output", output.to_str().unwrap()]];
    for command in commands {
        fails(&terminal, command, NO_CREDITS, "metering topup");
    }
    assert_eq!(std::fs::read(&output).unwrap_or_default(), b"", "nothing was written");
    assert!(terminal.good(&["balance"]).stderr.contains("metering topup"));
    assert_eq!(terminal.json(&["usage"])["totals"]["usage_events"], 0);
    scene.site.verify();
}

#[test]
fn at_a_cap_the_client_says_when_to_try_again() {
    let scene = Scene::new();
    let account = scene.site.account_with_caps("1", 0, 1);
    let terminal = scene.with_key(&account.api_key);
    terminal.good(&["call", BASE]);
    for command in
        [&["call", BASE][..], &["stream", STREAM], &["catch-up"], &["call", BASE, "--retry", "--retry-limit", "1"]]
    {
        fails(&terminal, command, TRY_LATER, "; try again in");
    }
    assert_eq!(terminal.json(&["usage"])["totals"]["usage_events"], 1, "a refusal is not charged");
}

#[test]
fn a_service_that_is_away_is_for_later() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let terminal = scene.with_key(&account.api_key).set("METERING_CLIENT_URL", &url);
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
        fails(&terminal, command, TRY_LATER, &url);
    }
}

#[test]
fn what_the_service_refuses_is_not_charged_and_says_what_is_wrong() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    let terminal = scene.with_key(&account.api_key);
    let taken = scene.site.write("taken.json", "{}");
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
        fails(&terminal, command, code, says);
    }
    assert_eq!(balance(&scene.server.client_with(&account.api_key)), "1");
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "{}");
}

#[test]
fn rubbish_is_refused_before_anything_is_asked() {
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
        fails(&terminal, command, USAGE, "");
    }
    fails(&terminal, &["config", "show", "--profile", "nobody"], NOT_FOUND, "nobody");
    assert!(!terminal.profile("default").exists(), "no profile was created");
    service.set_nonblocking(true).unwrap();
    assert!(service.accept().is_err(), "no request was sent");
}

#[test]
fn a_profile_keeps_its_key_and_sends_it_nowhere_else() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    let mut typing = scene.terminal.begin(&["config", "set", "api-key"]);
    typing.say(&account.api_key);
    assert_eq!(typing.finish().code, Some(0));
    assert_eq!(scene.terminal.key("default"), account.api_key);
    scene.terminal.good(&["balance"]);
    // Another service, even on this machine: the key is not sent.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("http://{}", listener.local_addr().unwrap());
    fails(&scene.terminal, &["balance", "--url", &elsewhere], UNAUTHORIZED, "another service");
    fails(&scene.terminal, &["config", "set", "url", &elsewhere], CONFLICT, "--keep-key");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "no request was sent");
    // The key is not replaced by accident either.
    let signup = ["signup", "--email", "name@example.com", "--agent-name", "agent"];
    fails(&scene.terminal, &signup, CONFLICT, "--replace-key");
    assert_eq!(scene.terminal.key("default"), account.api_key);
}
