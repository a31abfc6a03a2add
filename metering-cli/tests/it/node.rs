//! Nodes of small chains over JSON-RPC (EIP-1474), as far as payments need them.

use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

use crate::stand_in::{Reply, StandIn};

/// keccak-256 of `Transfer(address,address,uint256)` (EIP-20).
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// The time of block 0, in Unix seconds. Each further block is two seconds later.
pub(crate) const GENESIS_SECONDS: u64 = 1_760_000_000;
/// A secret in a node's URL that must not be shown.
pub(crate) const SECRET: &str = "hunter2hunter2";
/// The chain of a [`Wallet`]'s node.
pub(crate) const CHAIN_ID: u64 = 31_337;
/// Enough confirmations for a transaction to be settled.
const DEEP: u64 = 20;

/// A chain that does not change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    pub(crate) id: u64,
    pub(crate) newest: u64,
    pub(crate) transactions: Vec<Tx>,
    /// The most calls in a batch and blocks in a search for logs, if there are limits.
    pub(crate) takes: Option<(usize, u64)>,
}

/// A transaction in a block.
#[derive(Debug, Clone)]
pub(crate) struct Tx {
    pub(crate) hash: String,
    pub(crate) block: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) value: u128,
    pub(crate) input: &'static str,
    pub(crate) succeeded: bool,
    /// The token, sender, recipient and value of each.
    pub(crate) transfers: Vec<(String, String, String, u128)>,
}

/// The address that consists of one repeated byte, in lower case.
pub(crate) fn address(byte: u8) -> String {
    format!("0x{}", format!("{byte:02x}").repeat(20))
}

/// The hash that consists of one repeated byte.
pub(crate) fn hash(byte: u8) -> String {
    format!("0x{}", format!("{byte:02x}").repeat(32))
}

fn word(digits: &str) -> String {
    format!("0x{:0>64}", digits.trim_start_matches("0x"))
}

fn quantity(number: impl std::fmt::LowerHex) -> String {
    format!("{number:#x}")
}

fn number(quantity: &Value) -> u64 {
    u64::from_str_radix(quantity.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The response to a call or to a batch of them.
fn answer(request: &Value, mut result: impl FnMut(&str, &Value) -> Result<Value, &'static str>) -> Value {
    let mut reply = |call: &Value| match result(call["method"].as_str().unwrap(), &call["params"]) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }),
        Err(message) => refusal(&call["id"], message),
    };
    match request {
        Value::Array(calls) => calls.iter().map(reply).collect(),
        call => reply(call),
    }
}

fn refusal(id: &Value, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32_000, "message": message } })
}

impl Tx {
    /// A transaction that does nothing, with a hash and a sender made of one byte each.
    pub(crate) fn new(byte: u8, block: u64, from: u8) -> Self {
        let (from, to) = (address(from), address(0xcc));
        Self { hash: hash(byte), block, from, to, value: 0, input: "0x", succeeded: true, transfers: Vec::new() }
    }

    /// Transfers a token from the sender.
    pub(crate) fn moving(mut self, token: &str, to: &str, units: u128) -> Self {
        self.transfers.push((token.to_lowercase(), self.from.clone(), to.to_lowercase(), units));
        self
    }

    /// Sends the native coin.
    pub(crate) fn sending(self, to: &str, units: u128) -> Self {
        Self { to: to.to_lowercase(), value: units, ..self }
    }

    fn json(&self) -> Value {
        json!({
            "hash": self.hash, "from": self.from, "to": self.to, "value": quantity(self.value), "input": self.input,
            "blockNumber": quantity(self.block), "blockHash": word(&quantity(self.block)), "transactionIndex": "0x0",
        })
    }

    fn logs(&self) -> Vec<Value> {
        let log = |(token, from, to, units): &(String, String, String, u128)| {
            json!({
                "address": token, "topics": [TRANSFER, word(from), word(to)], "data": word(&quantity(*units)),
                "transactionHash": self.hash, "transactionIndex": "0x0", "blockHash": word(&quantity(self.block)),
                "blockNumber": quantity(self.block), "logIndex": "0x0", "removed": false,
            })
        };
        // A failed transaction has no logs.
        self.transfers.iter().filter(|_| self.succeeded).map(log).collect()
    }

    fn receipt(&self) -> Value {
        json!({
            "transactionHash": self.hash, "transactionIndex": "0x0", "blockNumber": quantity(self.block),
            "blockHash": word(&quantity(self.block)), "status": if self.succeeded { "0x1" } else { "0x0" },
            "logs": self.logs(),
        })
    }
}

/// A block with these transactions.
fn block(number: u64, transactions: &[Value]) -> Value {
    json!({
        "number": quantity(number), "hash": word(&quantity(number)), "timestamp": quantity(GENESIS_SECONDS + 2 * number),
        "baseFeePerGas": quantity(1_000_000_000), "transactions": transactions,
    })
}

impl Chain {
    /// Starts a node.
    pub(crate) fn serve(self) -> StandIn {
        StandIn::serving(move |request| Reply::json(&self.answer(&request.json())))
    }

    fn answer(&self, request: &Value) -> Value {
        match request {
            Value::Array(calls) if self.takes.is_some_and(|(most, _)| calls.len() > most) => {
                refusal(&Value::Null, "not so many at once")
            }
            request => answer(request, |method, params| self.result(method, params)),
        }
    }

    fn result(&self, method: &str, params: &Value) -> Result<Value, &'static str> {
        let requested = || self.transactions.iter().find(|tx| params[0] == tx.hash.as_str());
        Ok(match method {
            "eth_chainId" => quantity(self.id).into(),
            "eth_blockNumber" => quantity(self.newest).into(),
            "eth_getTransactionByHash" => requested().map_or(Value::Null, Tx::json),
            "eth_getTransactionReceipt" => requested().map_or(Value::Null, Tx::receipt),
            "eth_getBlockByNumber" => match params[0].as_str() {
                Some("latest") => self.block(self.newest, false),
                // A chain without this tag: payments become final by their depth.
                Some("finalized") => Value::Null,
                _ => self.block(number(&params[0]), params[1] == true),
            },
            "eth_getLogs" => return self.logs(&params[0]),
            other => panic!("unexpected method {other}"),
        })
    }

    fn block(&self, number: u64, full: bool) -> Value {
        let held = self.transactions.iter().filter(|tx| tx.block == number);
        let transactions: Vec<Value> = held.map(|tx| if full { tx.json() } else { tx.hash.clone().into() }).collect();
        block(number, &transactions)
    }

    fn logs(&self, filter: &Value) -> Result<Value, &'static str> {
        let (first, last) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
        if self.takes.is_some_and(|(_, most)| last - first >= most) {
            return Err("not so much at once");
        }
        let tokens = filter["address"].as_array().unwrap();
        let logs = self.transactions.iter().filter(|tx| (first..=last).contains(&tx.block)).flat_map(Tx::logs);
        let wanted = |log: &Value| tokens.contains(&log["address"]) && log["topics"][2] == filter["topics"][2];
        Ok(logs.filter(wanted).collect())
    }
}

/// What happens to transactions that a wallet sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxOutcome {
    /// They are mined and succeed.
    Pay,
    /// They are mined and fail.
    Fail,
    /// The node forgets them.
    Vanish,
    /// Another transaction of the wallet replaces them.
    GiveWay,
}

/// A wallet on its chain. Each transaction gets its own block immediately, unless the test says otherwise.
#[derive(Debug)]
pub(crate) struct Wallet {
    /// The hashes of the transactions that were sent, each once.
    pub(crate) sent: Vec<String>,
    pub(crate) outcome: TxOutcome,
    /// Of the coin and of every token.
    pub(crate) balance: u128,
}

impl Wallet {
    pub(crate) fn new() -> Self {
        Self { sent: Vec::new(), outcome: TxOutcome::Pay, balance: 10_u128.pow(20) }
    }

    /// Whether a transaction has paid.
    pub(crate) fn has_paid(&self, hash: &str) -> bool {
        self.outcome == TxOutcome::Pay && self.sent.iter().any(|sent| sent == hash)
    }

    pub(crate) fn answer(&mut self, request: &Value) -> Value {
        answer(request, |method, params| Ok(self.result(method, params)))
    }

    fn result(&mut self, method: &str, params: &Value) -> Value {
        match method {
            "eth_chainId" => quantity(CHAIN_ID).into(),
            "eth_blockNumber" => quantity(self.newest()).into(),
            "eth_getBalance" => quantity(self.balance).into(),
            // A transfer call returns true, and every token has the same balance.
            "eth_call" if params[0]["data"].as_str().unwrap().starts_with("0x70a08231") => {
                word(&quantity(self.balance)).into()
            }
            "eth_call" => word("1").into(),
            "eth_estimateGas" => quantity(21_000).into(),
            "eth_gasPrice" | "eth_maxPriorityFeePerGas" => quantity(1_000_000_000).into(),
            "eth_getTransactionCount" if self.outcome == TxOutcome::Vanish => quantity(0).into(),
            "eth_getTransactionCount" => quantity(self.sent.len()).into(),
            "eth_sendRawTransaction" => self.send(params[0].as_str().unwrap()).into(),
            "eth_getTransactionByHash" => self.transaction(&params[0]).map_or(Value::Null, |tx| tx.json()),
            "eth_getTransactionReceipt" => self.transaction(&params[0]).map_or(Value::Null, |tx| tx.receipt()),
            "eth_getBlockByNumber" if params[0] == "latest" => block(self.newest(), &[]),
            "eth_getBlockByNumber" => block(number(&params[0]), &[]),
            other => panic!("unexpected method {other}"),
        }
    }

    fn newest(&self) -> u64 {
        100 + u64::try_from(self.sent.len()).unwrap() + DEEP
    }

    fn send(&mut self, raw: &str) -> String {
        let bytes = hex::decode(raw.strip_prefix("0x").unwrap()).unwrap();
        let hash = format!("0x{}", hex::encode(Keccak256::digest(bytes)));
        if !self.sent.contains(&hash) {
            self.sent.push(hash.clone());
        }
        hash
    }

    fn transaction(&self, hash: &Value) -> Option<Tx> {
        if matches!(self.outcome, TxOutcome::Vanish | TxOutcome::GiveWay) {
            return None;
        }
        let position = self.sent.iter().position(|sent| *hash == sent.as_str())?;
        let nothing = Tx::new(0, 101 + u64::try_from(position).unwrap(), 0);
        Some(Tx { hash: self.sent[position].clone(), succeeded: self.outcome == TxOutcome::Pay, ..nothing })
    }
}
