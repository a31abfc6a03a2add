//! The client's commands, against a stand-in for the service.

mod call;
mod config;
mod failures;
mod keys;
mod mcp;
mod paying;
mod prices;
mod processor;
mod receipts;
mod recover;
mod requests;
mod rotate;
mod signup;
mod usage;
mod webhooks;

use metering_core::{ApiKey, SystemRandomness};

use crate::program::Program;
use crate::stand_in::{Reply, StandIn};

/// The program with a profile `default` for a service with these responses, whose key is `$key`.
fn client<'a>(replies: impl IntoIterator<Item = (&'a str, Reply)>) -> (Program, StandIn) {
    let (program, service) = (Program::new(), StandIn::start());
    for (path, reply) in replies {
        service.on(path, reply);
    }
    program.call("key", program.add_profile("default", &service));
    program.call("url", service.url());
    (program, service)
}

impl Program {
    /// Adds a profile for the service, and returns its key.
    pub(crate) fn add_profile(&self, name: &str, service: &StandIn) -> String {
        let key = new_key();
        let set = format!("config set api-key --profile {name} --url {}", service.url());
        let _ = self.reading(&set, &format!("{key}\n")).expect(0);
        key
    }

    /// A file of a profile.
    pub(crate) fn profile(&self, name: &str, file: &str) -> std::path::PathBuf {
        self.path(&format!("profiles/{name}/{file}"))
    }
}

fn new_key() -> String {
    ApiKey::generate(&SystemRandomness).expose().to_owned()
}

/// Each command succeeds, sends this (`METHOD target body`) as its last request, and prints this text.
#[track_caller]
fn sends(program: &Program, service: &StandIn, cases: &[(&str, &str, &str)]) {
    for (line, sent, shown) in cases {
        let ran = program.run(line).expect(0);
        let last = service.last();
        let found = format!("{} {} {}", last.method, last.target, last.text());
        assert_eq!(found.trim_end(), program.text(sent), "{line}");
        assert!(ran.stdout.contains(&program.text(shown)), "{line}, {shown}: {ran:?}");
    }
}

/// A service that refuses a command with each error (path, status, code) lets it end with this exit code, at once.
#[track_caller]
fn fails_with(line: &str, cases: &[(&str, u16, &str, i32)]) {
    for (path, status, code, exit) in cases {
        let (program, service) = client([(*path, Reply::error(*status, code))]);
        let message = program.run(line).failure(*exit);
        assert!(message.contains(code) && !message.contains("metering rotate"), "{line}: {message}");
        assert_eq!(service.requests().len(), 1, "{line}: it is not repeated");
    }
}

/// Each command is refused for its arguments, and sends nothing.
#[track_caller]
fn misuses(program: &Program, service: &StandIn, lines: &[&str]) {
    let before = service.requests().len();
    for line in lines {
        assert_eq!(program.run(line).code, 2, "{line}");
    }
    assert_eq!(service.requests().len(), before);
}
