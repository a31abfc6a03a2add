//! Settings of a chain before it starts.

use super::{Chain, packages};

impl Chain {
    /// A chain to start: by default with chain id 31337 and an immediate block for each transaction.
    #[must_use]
    pub fn setup() -> ChainSetup {
        ChainSetup::new()
    }

    /// A chain with the defaults; see [`ChainSetup::start`].
    #[track_caller]
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::setup().start()
    }
}

/// A chain that has not been started yet.
#[derive(Debug, Clone)]
pub struct ChainSetup {
    chain_id: u64,
    args: Vec<String>,
}

impl ChainSetup {
    pub(crate) fn new() -> Self {
        Self { chain_id: 31_337, args: Vec::new() }
    }

    /// Uses this chain id instead of 31337.
    #[must_use]
    pub fn chain_id(mut self, chain_id: u64) -> Self {
        self.chain_id = chain_id;
        self
    }

    /// Mines blocks only when [`Chain::mine`] is called. Transactions stay pending until then.
    #[must_use]
    pub fn manual_mining(mut self) -> Self {
        self.args.push("--no-mining".to_owned());
        self
    }

    /// Sets the time of the first block (Unix seconds); the clock continues from there.
    #[must_use]
    pub fn genesis_time(self, unix_seconds: u64) -> Self {
        self.arg("--timestamp", unix_seconds)
    }

    /// Uses the rules of this hard fork, such as `london`, instead of the latest.
    #[must_use]
    pub fn hardfork(self, name: &str) -> Self {
        self.arg("--hardfork", name)
    }

    /// Keeps `safe` `slots` blocks behind the newest, and `finalized` twice as many, instead of 32 and 64.
    #[must_use]
    pub fn slots_in_an_epoch(self, slots: u64) -> Self {
        self.arg("--slots-in-an-epoch", slots)
    }

    /// Adds one of anvil's own options.
    #[must_use]
    pub fn arg(mut self, option: &str, value: impl ToString) -> Self {
        self.args.extend([option.to_owned(), value.to_string()]);
        self
    }

    /// Starts it, and returns once it responds. `None` if tests against a real chain are disabled on this machine; a
    /// line on standard error then reports it.
    ///
    /// # Panics
    /// If it does not start, or if these tests are disabled in CI.
    #[track_caller]
    #[must_use]
    pub fn start(self) -> Option<Chain> {
        if packages::are_skipped() {
            return None;
        }
        Some(Chain::start_node(self.chain_id, &self.args))
    }
}
