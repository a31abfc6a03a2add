//! Questions to a node (JSON-RPC 2.0).

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

/// How long a transaction may take into a block that is due, far more than it should ever need.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node, or what stands in front of one, to be asked.
#[derive(Debug, Clone)]
pub struct Rpc {
    client: Client,
}

/// A node's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcRefusal {
    /// Its code.
    pub code: i64,
    /// What it says.
    pub message: String,
}

impl fmt::Display for RpcRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

impl Rpc {
    /// The node at an address.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { client: Client::new(address) }
    }

    /// Asks, and returns the result.
    ///
    /// # Panics
    /// When the node refuses.
    #[track_caller]
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|refusal| panic!("{method} is refused: {refusal}"))
    }

    /// Asks, where a refusal is an answer as well.
    ///
    /// # Errors
    /// With the node's refusal.
    ///
    /// # Panics
    /// When no answer comes, or one that is no JSON-RPC.
    #[track_caller]
    pub fn try_call(&self, method: &str, params: Value) -> Result<Value, RpcRefusal> {
        let question = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.client.post("/", &question).expect(200).json();
        assert_eq!(answer["id"], 1, "the answer is to the question: {answer}");
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => Err(RpcRefusal {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// A transaction's receipt; `None` while no block has it.
    ///
    /// # Panics
    /// When no answer comes.
    #[track_caller]
    #[must_use]
    pub fn receipt(&self, hash: &str) -> Option<Value> {
        Some(self.call("eth_getTransactionReceipt", json!([hash]))).filter(|receipt| !receipt.is_null())
    }

    /// Waits until a block has the transaction, and returns its receipt. Makes no block for it.
    ///
    /// # Panics
    /// When that takes too long.
    #[track_caller]
    pub fn mined(&self, hash: &str) -> Value {
        let begun = Instant::now();
        loop {
            if let Some(receipt) = self.receipt(hash) {
                return receipt;
            }
            assert!(begun.elapsed() < PATIENCE, "no block has {hash}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A number as nodes write it.
pub(crate) fn hex(number: u64) -> String {
    format!("{number:#x}")
}

/// A number that a node wrote; `None` when it is none.
pub(crate) fn try_quantity(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// A number that a node wrote.
#[track_caller]
pub(crate) fn quantity(value: &Value) -> u64 {
    try_quantity(value).unwrap_or_else(|| panic!("not a number: {value}"))
}
