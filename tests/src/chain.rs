//! A real chain of one's own: anvil as a process, a wallet beside it that is not our code, and a proxy that spoils what
//! the node says. Tests are synchronous, as everywhere here.
//!
//! Both processes end with the [`Chain`]. Were the test itself killed, the wallet would notice and end the node.

pub mod account;
mod node;
mod packages;
pub mod proxy;
pub mod rpc;
mod setup;
mod sidecar;
pub mod wallet;
pub mod write;

use std::net::SocketAddr;

use serde_json::{Value, json};

use self::node::Node;
use self::rpc::Rpc;
pub use self::setup::ChainSetup;
use self::sidecar::Sidecar;
use self::wallet::Wallet;

/// A running chain. Dropping it ends its processes.
#[derive(Debug)]
pub struct Chain {
    // Dropped before the node: a wallet that outlives its test ends the node by its process id.
    wallet: Wallet,
    node: Node,
    rpc: Rpc,
    chain_id: u64,
}

/// A state of the chain to go back to.
#[derive(Debug, Clone)]
pub struct Snapshot(Value);

impl Chain {
    /// A chain to be started: by default with id 31337 and a block for each transaction at once.
    #[must_use]
    pub fn setup() -> ChainSetup {
        ChainSetup::new()
    }

    /// A chain with the defaults; see [`ChainSetup::start`].
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::setup().start()
    }

    /// Its id (EIP-155).
    #[must_use]
    pub fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Where its node listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.node.address()
    }

    /// Its RPC URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.node.url()
    }

    /// Its wallet.
    #[must_use]
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The node's and the wallet's process ids.
    #[must_use]
    pub fn process_ids(&self) -> [u32; 2] {
        [self.node.process_id(), self.wallet.process_id()]
    }

    /// Asks the node anything.
    ///
    /// # Panics
    /// When it refuses.
    #[track_caller]
    pub fn rpc(&self, method: &str, params: Value) -> Value {
        self.rpc.call(method, params)
    }

    /// The newest block's number.
    ///
    /// # Panics
    /// When the node does not say.
    #[track_caller]
    #[must_use]
    pub fn block_number(&self) -> u64 {
        self.number("eth_blockNumber")
    }

    /// The newest block's time, in Unix seconds.
    ///
    /// # Panics
    /// When the node does not say.
    #[track_caller]
    #[must_use]
    pub fn block_time(&self) -> u64 {
        rpc::quantity(&self.rpc("eth_getBlockByNumber", json!(["latest", false]))["timestamp"])
    }

    /// Makes so many blocks, the first of which takes the transactions that wait. Each is at least a second younger than
    /// the one before: many at once are ahead of the real time.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    pub fn mine(&self, blocks: u64) {
        let _ = self.rpc("anvil_mine", json!([rpc::hex(blocks)]));
    }

    /// Makes so many blocks whose times are so many seconds apart. The chain's clock goes on from there.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    pub fn mine_apart(&self, blocks: u64, seconds: u64) {
        let _ = self.rpc("anvil_mine", json!([rpc::hex(blocks), rpc::hex(seconds)]));
    }

    /// Makes a block every so many seconds from now on, and none for each transaction.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    pub fn set_block_time(&self, seconds: u64) {
        let _ = self.rpc("evm_setAutomine", json!([false]));
        let _ = self.rpc("evm_setIntervalMining", json!([seconds]));
    }

    /// A transaction as it was signed.
    ///
    /// # Panics
    /// When the node does not know it.
    #[track_caller]
    #[must_use]
    pub fn raw(&self, hash: &str) -> Value {
        let raw = self.rpc("eth_getRawTransactionByHash", json!([hash]));
        assert!(raw.is_string(), "the node knows {hash}");
        raw
    }

    /// Sends a signed transaction.
    ///
    /// # Panics
    /// When the node refuses it.
    #[track_caller]
    pub fn send_raw(&self, raw: &Value) {
        let _ = self.rpc("eth_sendRawTransaction", json!([raw]));
    }

    /// Switches blocks for each transaction at once on or off.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    pub fn set_automine(&self, on: bool) {
        let _ = self.rpc("evm_setAutomine", json!([on]));
    }

    /// Sets the chain's clock to a time (Unix seconds), earlier ones too, from where it goes on. The next block has it.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    pub fn set_time(&self, unix_seconds: u64) {
        let _ = self.rpc("anvil_setTime", json!([rpc::hex(unix_seconds)]));
    }

    /// Puts the chain's clock forward. The next block has it.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    pub fn increase_time(&self, seconds: u64) {
        let _ = self.rpc("evm_increaseTime", json!([rpc::hex(seconds)]));
    }

    /// Remembers the present state.
    ///
    /// # Panics
    /// When the node does not.
    #[track_caller]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.rpc("evm_snapshot", json!([])))
    }

    /// Goes back to a state, which is then forgotten.
    ///
    /// # Panics
    /// When it was forgotten before.
    #[track_caller]
    pub fn revert(&self, snapshot: &Snapshot) {
        assert_eq!(self.rpc("evm_revert", json!([snapshot.0])), Value::Bool(true), "the state is known");
    }

    /// Replaces the newest `depth` blocks by empty ones with other hashes: their transactions are gone.
    ///
    /// # Panics
    /// When the chain is not so long.
    #[track_caller]
    pub fn reorg(&self, depth: u64) {
        let _ = self.rpc("anvil_reorg", json!([depth, []]));
    }

    /// Replaces the newest `depth` blocks by ones with other hashes, the last of which takes these transactions again.
    ///
    /// # Panics
    /// When the chain is not so long, or does not know one of the transactions.
    #[track_caller]
    pub fn reorg_keeping(&self, depth: u64, hashes: &[&str]) {
        let raw = |hash: &&str| self.rpc("eth_getRawTransactionByHash", json!([hash]));
        let kept: Vec<Value> = hashes.iter().map(|hash| json!([raw(hash), depth - 1])).collect();
        let _ = self.rpc("anvil_reorg", json!([depth, kept]));
    }

    /// A transaction's receipt; `None` while no block has it.
    ///
    /// # Panics
    /// When the node does not answer.
    #[track_caller]
    #[must_use]
    pub fn receipt(&self, hash: &str) -> Option<Value> {
        self.rpc.receipt(hash)
    }

    /// Waits until a block has the transaction, and returns its receipt. Makes no block for it.
    ///
    /// # Panics
    /// When that takes too long.
    #[track_caller]
    pub fn mined(&self, hash: &str) -> Value {
        self.rpc.mined(hash)
    }

    #[track_caller]
    fn start_node(chain_id: u64, args: &[String]) -> Self {
        let node = Node::start(chain_id, args);
        let sidecar = Sidecar::start(&node.url(), node.process_id());
        let rpc = Rpc::at(node.address());
        let chain = Self { wallet: Wallet::new(sidecar, rpc.clone()), node, rpc, chain_id };
        assert_eq!(chain.number("eth_chainId"), chain_id, "the node is of the chain that was asked for");
        chain
    }

    #[track_caller]
    fn number(&self, method: &str) -> u64 {
        rpc::quantity(&self.rpc(method, json!([])))
    }
}
