//! The shop's server with other settings, and what its store and its metrics show.

use metering_tests::server::ServerSetup;
use serde_json::Value;

use crate::support::shop::Shop;
use crate::support::wait::until;

impl Shop {
    /// A server on the shop's data and settings, with these variables in addition.
    pub(crate) fn server_with(&self, variables: &[(&str, &str)]) -> ServerSetup {
        let file = self.site.path("metering.toml");
        let setup = self.site.server().args(["--config", file.to_str().unwrap()]);
        variables.iter().fold(setup, |setup, (name, value)| setup.set(name, value))
    }

    /// Restarts the shop's server with these variables.
    pub(crate) fn restart_with(&mut self, variables: &[(&str, &str)]) {
        self.server = self.server_with(variables).start();
    }

    /// A metric of the server; `None` if it has none of that name.
    pub(crate) fn metric(&self, name: &str) -> Option<u64> {
        let text = self.client().get("/metrics").expect(200).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        value.map(|value| value.parse().unwrap())
    }

    /// Waits until the server's watcher has scanned all existing blocks.
    #[track_caller]
    pub(crate) fn wait_until_scanned(&self) {
        let newest = self.chain.block_number();
        let name = format!("metering_watched_block{{chain_id=\"{}\"}}", self.chain.chain_id());
        until("the newest block is scanned", || self.metric(&name).is_some_and(|block| block >= newest));
    }

    /// The store's accounts and payments as the operator sees them. Leaves out the state of payments, because later
    /// blocks make it final, independently of claims.
    pub(crate) fn books(&self) -> [Value; 2] {
        let mut records = self.site.admin_json(&["payments", "records"]);
        for record in records["payments"].as_array_mut().unwrap() {
            let state = record.as_object_mut().unwrap().remove("state");
            assert!(state.is_some(), "{record}");
        }
        [self.site.admin_json(&["account", "list"]), records]
    }
}
