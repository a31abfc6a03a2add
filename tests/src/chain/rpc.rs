//! JSON-RPC 2.0 client for nodes.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

/// How long to wait for a transaction to be mined; far more than it should ever need.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A node, or a proxy in front of one.
#[derive(Debug, Clone)]
pub struct Rpc {
    client: Client,
}

/// A JSON-RPC error from a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: String,
}

impl fmt::Display for RpcError {
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

    /// Calls a method, and returns its result.
    #[track_caller]
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method} failed: {error}"))
    }

    /// Calls a method, and returns its result or the node's error.
    ///
    /// # Errors
    /// If the node returns a JSON-RPC error.
    #[track_caller]
    pub fn try_call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.client.post("/", &request).expect(200).json();
        assert_eq!(response["id"], 1, "the response has the id of the request: {response}");
        match response.get("error") {
            None => Ok(response["result"].clone()),
            Some(error) => Err(RpcError {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// A transaction's receipt; `None` until a block includes it.
    #[track_caller]
    #[must_use]
    pub fn receipt(&self, hash: &str) -> Option<Value> {
        Some(self.call("eth_getTransactionReceipt", json!([hash]))).filter(|receipt| !receipt.is_null())
    }

    /// Waits until a block includes the transaction, and returns its receipt. Mines no block itself.
    #[track_caller]
    pub fn mined(&self, hash: &str) -> Value {
        let started = Instant::now();
        loop {
            if let Some(receipt) = self.receipt(hash) {
                return receipt;
            }
            assert!(started.elapsed() < TIMEOUT, "no block includes {hash}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Formats a number as nodes do.
pub(crate) fn hex(number: u64) -> String {
    format!("{number:#x}")
}

/// Parses a node's number; `None` if it is not one.
pub(crate) fn try_quantity(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// Parses a node's number.
#[track_caller]
pub(crate) fn quantity(value: &Value) -> u64 {
    try_quantity(value).unwrap_or_else(|| panic!("not a number: {value}"))
}
