//! A lagging node: it responds as of an older block, and has no newer ones.

use std::io;

use serde_json::{Value, json};

use crate::chain::rpc::{hex, try_quantity};
use crate::client::Client;

/// The block numbers of a lagging node.
#[derive(Debug)]
pub(crate) struct Lag {
    newest: u64,
    safe: u64,
    finalized: u64,
}

impl Lag {
    /// Requests the node's real block numbers.
    pub(crate) fn measure(node: &Client, blocks: u64) -> io::Result<Self> {
        let requests: Vec<Value> = ["latest", "safe", "finalized"]
            .iter()
            .enumerate()
            .map(|(id, tag)| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_getBlockByNumber", "params": [tag, false] }))
            .collect();
        let body = node.try_send("POST", "/", Some(Value::Array(requests).to_string().as_bytes()))?.body;
        let responses: Vec<Value> = serde_json::from_slice(&body)?;
        let number = |id: u64| {
            let response = responses.iter().find(|response| response["id"] == id)?;
            // The first block exists from the start and cannot lag.
            Some(try_quantity(&response["result"]["number"])?.saturating_sub(blocks))
        };
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "the node did not report its block numbers");
        Ok(Self {
            newest: number(0).ok_or_else(missing)?,
            safe: number(1).ok_or_else(missing)?,
            finalized: number(2).ok_or_else(missing)?,
        })
    }

    /// The same request, with the tags replaced by older blocks.
    pub(crate) fn rewrite_request(&self, call: &Value) -> Value {
        let mut call = call.clone();
        let tag_index = match call["method"].as_str().unwrap_or_default() {
            "eth_getBlockByNumber" | "eth_getBlockReceipts" | "eth_getBlockTransactionCountByNumber" => 0,
            "eth_call" | "eth_getBalance" | "eth_getCode" | "eth_getTransactionCount" => 1,
            "eth_getStorageAt" => 2,
            "eth_getLogs" => {
                for end in ["fromBlock", "toBlock"] {
                    if call["params"][0]["blockHash"].is_null() {
                        let tag = &mut call["params"][0][end];
                        *tag = self.older(tag);
                    }
                }
                return call;
            }
            _ => return call,
        };
        if let Some(params) = call["params"].as_array_mut() {
            if params.len() == tag_index {
                params.push(Value::Null);
            }
            if let Some(tag) = params.get_mut(tag_index) {
                *tag = self.older(tag);
            }
        }
        call
    }

    /// The same response without the contents of newer blocks.
    pub(crate) fn rewrite_response(&self, call: &Value, reply: &mut Value) {
        let result = &mut reply["result"];
        let number = match call["method"].as_str().unwrap_or_default() {
            "eth_blockNumber" => {
                *result = json!(hex(self.newest));
                return;
            }
            "eth_getLogs" => {
                if let Some(logs) = result.as_array_mut() {
                    logs.retain(|log| !self.is_newer(&log["blockNumber"]));
                }
                return;
            }
            "eth_getBlockByNumber" | "eth_getBlockByHash" => "number",
            "eth_getTransactionReceipt" | "eth_getTransactionByHash" => "blockNumber",
            _ => return,
        };
        if result.get(number).is_some_and(|number| self.is_newer(number)) {
            *result = Value::Null;
        }
    }

    fn older(&self, tag: &Value) -> Value {
        match tag.as_str() {
            None | Some("latest" | "pending") => json!(hex(self.newest)),
            Some("safe") => json!(hex(self.safe)),
            Some("finalized") => json!(hex(self.finalized)),
            Some(_) => tag.clone(),
        }
    }

    fn is_newer(&self, number: &Value) -> bool {
        try_quantity(number).is_some_and(|number| number > self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_mean_older_blocks_and_numbers_are_kept() {
        let lag = Lag { newest: 10, safe: 7, finalized: 4 };
        // method, params, params sent to the node
        let table = [
            ("eth_getBlockByNumber", json!(["latest", false]), json!(["0xa", false])),
            ("eth_getBlockByNumber", json!(["safe", false]), json!(["0x7", false])),
            ("eth_getBlockByNumber", json!(["finalized", true]), json!(["0x4", true])),
            ("eth_getBlockByNumber", json!(["0x20", false]), json!(["0x20", false])),
            ("eth_call", json!([{"to": "0x1"}]), json!([{"to": "0x1"}, "0xa"])),
            ("eth_getCode", json!(["0x1", "pending"]), json!(["0x1", "0xa"])),
            ("eth_getLogs", json!([{"fromBlock": "0x1"}]), json!([{"fromBlock": "0x1", "toBlock": "0xa"}])),
            ("eth_getLogs", json!([{"blockHash": "0x1"}]), json!([{"blockHash": "0x1"}])),
            ("eth_chainId", json!([]), json!([])),
        ];
        for (method, params, expected) in table {
            let result = lag.rewrite_request(&json!({ "id": 1, "method": method, "params": params }));
            assert_eq!(result["params"], expected, "{method}");
        }
    }

    #[test]
    fn contents_of_newer_blocks_are_missing() {
        let lag = Lag { newest: 10, safe: 7, finalized: 4 };
        let old_log = json!({ "blockNumber": "0xa" });
        // method, the node's result, the proxy's result
        let table = [
            ("eth_blockNumber", json!("0xc"), json!("0xa")),
            ("eth_getTransactionReceipt", json!({ "blockNumber": "0xb" }), json!(null)),
            ("eth_getTransactionReceipt", json!({ "blockNumber": "0xa" }), json!({ "blockNumber": "0xa" })),
            ("eth_getTransactionByHash", json!({ "blockNumber": null }), json!({ "blockNumber": null })),
            ("eth_getBlockByNumber", json!({ "number": "0xb" }), json!(null)),
            ("eth_getLogs", json!([old_log, { "blockNumber": "0xb" }]), json!([old_log])),
            ("eth_chainId", json!("0x1"), json!("0x1")),
        ];
        for (method, result, expected) in table {
            let mut reply = json!({ "id": 1, "result": result });
            lag.rewrite_response(&json!({ "id": 1, "method": method }), &mut reply);
            assert_eq!(reply["result"], expected, "{method}");
        }
    }
}
