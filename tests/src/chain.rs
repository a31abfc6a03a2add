//! A real, local chain: anvil as a process, an independent wallet, and a proxy that injects faults into the node's
//! responses. Tests are synchronous, as everywhere here.
//!
//! The node ends with the [`Chain`], even if the test fails. The wallet's process is shared by all chains.

pub mod account;
mod node;
mod packages;
pub mod proxy;
pub mod rpc;
mod setup;
pub mod wallet;
pub mod write;

use std::net::SocketAddr;

use serde_json::{Value, json};

use self::node::Node;
use self::rpc::Rpc;
pub use self::setup::ChainSetup;
use self::wallet::Wallet;

/// A running chain. Dropping it ends its node.
#[derive(Debug)]
pub struct Chain {
    wallet: Wallet,
    node: Node,
    rpc: Rpc,
    chain_id: u64,
}

/// A state of the chain that [`Chain::revert`] can restore.
#[derive(Debug, Clone)]
pub struct Snapshot(Value);

impl Chain {
    /// The chain id (EIP-155).
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

    /// The chain's wallet.
    #[must_use]
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The ids of the node and of the process that ends it.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.node.process_ids()
    }

    /// Sends any RPC request to the node.
    #[track_caller]
    pub fn rpc(&self, method: &str, params: Value) -> Value {
        self.rpc.call(method, params)
    }

    /// The number of the newest block.
    #[track_caller]
    #[must_use]
    pub fn block_number(&self) -> u64 {
        self.number("eth_blockNumber")
    }

    /// The timestamp of the newest block, in Unix seconds.
    #[track_caller]
    #[must_use]
    pub fn block_time(&self) -> u64 {
        rpc::quantity(&self.rpc("eth_getBlockByNumber", json!(["latest", false]))["timestamp"])
    }

    /// Mines `blocks` blocks; the first takes the pending transactions. Each block is at least a second younger than
    /// the one before, so many at once run ahead of the real time.
    #[track_caller]
    pub fn mine(&self, blocks: u64) {
        let _ = self.rpc("anvil_mine", json!([rpc::hex(blocks)]));
    }

    /// Mines `blocks` blocks, `seconds` apart. The chain's clock continues from there.
    #[track_caller]
    pub fn mine_apart(&self, blocks: u64, seconds: u64) {
        // Without this, each block's time also contains how long the machine took to mine those before it.
        let _ = self.rpc("anvil_setBlockTimestampInterval", json!([seconds]));
        let _ = self.rpc("anvil_mine", json!([rpc::hex(blocks)]));
        let _ = self.rpc("anvil_removeBlockTimestampInterval", json!([]));
        let _ = self.rpc("evm_increaseTime", json!([blocks * seconds]));
    }

    /// From now on mines a block every `seconds` seconds, and none for each transaction.
    #[track_caller]
    pub fn set_block_time(&self, seconds: u64) {
        let _ = self.rpc("evm_setAutomine", json!([false]));
        let _ = self.rpc("evm_setIntervalMining", json!([seconds]));
    }

    /// A transaction in its signed form.
    #[track_caller]
    #[must_use]
    pub fn raw(&self, hash: &str) -> Value {
        let raw = self.rpc("eth_getRawTransactionByHash", json!([hash]));
        assert!(raw.is_string(), "the node does not know {hash}");
        raw
    }

    /// Sends a signed transaction.
    #[track_caller]
    pub fn send_raw(&self, raw: &Value) {
        let _ = self.rpc("eth_sendRawTransaction", json!([raw]));
    }

    /// Turns immediate blocks for each transaction on or off.
    #[track_caller]
    pub fn set_automine(&self, on: bool) {
        let _ = self.rpc("evm_setAutomine", json!([on]));
    }

    /// Advances the chain's clock. The next block has the new time.
    #[track_caller]
    pub fn increase_time(&self, seconds: u64) {
        let _ = self.rpc("evm_increaseTime", json!([rpc::hex(seconds)]));
    }

    /// Saves the current state.
    #[track_caller]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.rpc("evm_snapshot", json!([])))
    }

    /// Restores a saved state. It can be restored only once.
    ///
    /// # Panics
    /// If it was restored before.
    #[track_caller]
    pub fn revert(&self, snapshot: &Snapshot) {
        assert_eq!(self.rpc("evm_revert", json!([snapshot.0])), Value::Bool(true), "the snapshot is unknown");
    }

    /// Replaces the newest `depth` blocks with empty ones that have other hashes, so their transactions are gone.
    ///
    /// # Panics
    /// If the chain is shorter.
    #[track_caller]
    pub fn reorg(&self, depth: u64) {
        let _ = self.rpc("anvil_reorg", json!([depth, []]));
    }

    /// Replaces the newest `depth` blocks with ones that have other hashes; the last one takes these transactions
    /// again.
    ///
    /// # Panics
    /// If the chain is shorter, or does not know one of the transactions.
    #[track_caller]
    pub fn reorg_keeping(&self, depth: u64, hashes: &[&str]) {
        let raw = |hash: &&str| self.rpc("eth_getRawTransactionByHash", json!([hash]));
        let kept: Vec<Value> = hashes.iter().map(|hash| json!([raw(hash), depth - 1])).collect();
        let _ = self.rpc("anvil_reorg", json!([depth, kept]));
    }

    /// A transaction's receipt; `None` until a block includes it.
    #[track_caller]
    #[must_use]
    pub fn receipt(&self, hash: &str) -> Option<Value> {
        self.rpc.receipt(hash)
    }

    /// Waits until a block includes the transaction, and returns its receipt. Mines no block itself.
    #[track_caller]
    pub fn mined(&self, hash: &str) -> Value {
        self.rpc.mined(hash)
    }

    #[track_caller]
    fn start_node(chain_id: u64, args: &[String]) -> Self {
        let node = Node::start(chain_id, args);
        let rpc = Rpc::at(node.address());
        let chain = Self { wallet: Wallet::new(node.url(), rpc.clone()), node, rpc, chain_id };
        assert_eq!(chain.number("eth_chainId"), chain_id, "the node has the requested chain id");
        chain
    }

    #[track_caller]
    fn number(&self, method: &str) -> u64 {
        rpc::quantity(&self.rpc(method, json!([])))
    }
}
