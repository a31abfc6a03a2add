//! How a chain is to be.

use super::{Chain, packages};

/// A chain that was not started yet.
#[derive(Debug, Clone)]
pub struct ChainSetup {
    chain_id: u64,
    args: Vec<String>,
}

impl ChainSetup {
    pub(crate) fn new() -> Self {
        Self { chain_id: 31_337, args: Vec::new() }
    }

    /// With this id instead of 31337.
    #[must_use]
    pub fn chain_id(mut self, chain_id: u64) -> Self {
        self.chain_id = chain_id;
        self
    }

    /// With a block every so many seconds, instead of one for each transaction at once.
    #[must_use]
    pub fn block_time(self, seconds: u64) -> Self {
        self.arg("--block-time", seconds)
    }

    /// With blocks only when [`Chain::mine`] makes them. Transactions wait until then.
    #[must_use]
    pub fn manual_mining(mut self) -> Self {
        self.args.push("--no-mining".to_owned());
        self
    }

    /// With its first block made at this time (Unix seconds), from where its clock goes on.
    #[must_use]
    pub fn genesis_time(self, unix_seconds: u64) -> Self {
        self.arg("--timestamp", unix_seconds)
    }

    /// With the rules of this hard fork, such as `london`, instead of the latest.
    #[must_use]
    pub fn hardfork(self, name: &str) -> Self {
        self.arg("--hardfork", name)
    }

    /// With `safe` so many blocks behind the newest, and `finalized` twice as many, instead of 32 and 64.
    #[must_use]
    pub fn slots_in_an_epoch(self, slots: u64) -> Self {
        self.arg("--slots-in-an-epoch", slots)
    }

    /// With so many rich accounts instead of 10.
    #[must_use]
    pub fn accounts(self, count: u32) -> Self {
        self.arg("--accounts", count)
    }

    /// With one more of anvil's own options.
    #[must_use]
    pub fn arg(mut self, option: &str, value: impl ToString) -> Self {
        self.args.extend([option.to_owned(), value.to_string()]);
        self
    }

    /// Starts it, and returns once it answers. `None` when tests against a real chain are switched off on this machine,
    /// which was then said in a line on standard error.
    ///
    /// # Panics
    /// When it does not start, or when CI wants to do without.
    #[track_caller]
    #[must_use]
    pub fn start(self) -> Option<Chain> {
        if packages::are_skipped() {
            return None;
        }
        Some(Chain::start_node(self.chain_id, &self.args))
    }
}
