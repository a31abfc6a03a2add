//! The market's server with the settings of a test.

use std::time::{Duration, Instant};

use metering_tests::answer::Answer;
use metering_tests::server::ServerSetup;
use serde_json::Value;

use crate::market::Market;

/// How long to wait for something that should take only a moment.
const PATIENCE: Duration = Duration::from_secs(20);

impl Market {
    /// A server on the market's data and settings, with these variables in addition.
    pub(crate) fn server_with(&self, variables: &[(&str, &str)]) -> ServerSetup {
        let file = self.site.path("metering.toml");
        let setup = self.site.server().args(["--config", file.to_str().unwrap()]);
        variables.iter().fold(setup, |setup, (name, value)| setup.set(name, value))
    }

    /// Restarts the market's server with these variables.
    pub(crate) fn reopen(&mut self, variables: &[(&str, &str)]) {
        self.server = self.server_with(variables).start();
    }

    /// A metric of the server; `None` if it has none of that name.
    pub(crate) fn figure(&self, name: &str) -> Option<u64> {
        let text = self.client().get("/metrics").expect(200).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        value.map(|value| value.parse().unwrap())
    }

    /// Waits until the server's watcher has scanned all existing blocks.
    #[track_caller]
    pub(crate) fn watched(&self) {
        let newest = self.chain.block_number();
        let name = format!("metering_watched_block{{chain_id=\"{}\"}}", self.chain.chain_id());
        until("the newest block is scanned", || self.figure(&name).is_some_and(|block| block >= newest));
    }

    /// The store's accounts and payments as the operator sees them. Leaves out the state of payments, because it
    /// becomes final with later blocks, whatever a claim does.
    pub(crate) fn books(&self) -> [Value; 2] {
        let mut records = self.site.admin_json(&["payments", "records"]);
        for record in records["payments"].as_array_mut().unwrap() {
            let state = record.as_object_mut().unwrap().remove("state");
            assert!(state.is_some(), "{record}");
        }
        [self.site.admin_json(&["account", "list"]), records]
    }
}

/// The retry delay of a refusal in seconds; asserts that header and body agree.
#[track_caller]
pub(crate) fn retry_after(refused: &Answer) -> u64 {
    let header = refused.header("retry-after").unwrap_or_else(|| panic!("no Retry-After: {}", refused.text()));
    assert_eq!(refused.member("retry_after_sec"), header, "{}", refused.text());
    header.parse().unwrap()
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
