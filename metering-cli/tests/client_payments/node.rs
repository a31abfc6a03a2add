//! A node of a small chain (EIP-1474), as far as payments need it. Each transaction gets its own block immediately,
//! unless the test says otherwise.

use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

pub(crate) const CHAIN_ID: u64 = 31_337;

/// Enough confirmations for a transaction to be settled.
const DEEP: u64 = 20;

/// What happens to transactions.
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

#[derive(Debug)]
pub(crate) struct Node {
    /// The hashes of the transactions that were sent, each once.
    pub(crate) sent: Vec<String>,
    pub(crate) outcome: TxOutcome,
    /// The wallet's balance, of the coin and of every token.
    pub(crate) balance: u128,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self { sent: Vec::new(), outcome: TxOutcome::Pay, balance: 10_u128.pow(20) }
    }

    /// Whether a transaction has paid.
    pub(crate) fn has_paid(&self, hash: &str) -> bool {
        self.outcome == TxOutcome::Pay && self.sent.iter().any(|sent| sent == hash)
    }

    pub(crate) fn respond_batch(&mut self, batch: &Value) -> Value {
        let mut reply = |call: &Value| {
            let result = self.respond(call["method"].as_str().unwrap(), &call["params"]);
            json!({ "jsonrpc": "2.0", "id": call["id"], "result": result })
        };
        match batch {
            Value::Array(calls) => calls.iter().map(reply).collect(),
            call => reply(call),
        }
    }

    fn respond(&mut self, method: &str, params: &Value) -> Value {
        match method {
            "eth_chainId" => quantity(CHAIN_ID.into()),
            "eth_blockNumber" => quantity(self.newest().into()),
            "eth_getBalance" => quantity(self.balance),
            // A transfer call returns true, and every token has the same balance.
            "eth_call" if params[0]["data"].as_str().unwrap().starts_with("0x70a08231") => word(self.balance).into(),
            "eth_call" => word(1).into(),
            "eth_estimateGas" => quantity(21_000),
            "eth_gasPrice" | "eth_maxPriorityFeePerGas" => quantity(1_000_000_000),
            "eth_getTransactionCount" => quantity(self.transactions()),
            "eth_sendRawTransaction" => self.send(params[0].as_str().unwrap()).into(),
            "eth_getTransactionByHash" => {
                self.found(&params[0]).map_or(Value::Null, |block| self.transaction(&params[0], block))
            }
            "eth_getTransactionReceipt" => {
                self.found(&params[0]).map_or(Value::Null, |block| self.receipt(&params[0], block))
            }
            "eth_getBlockByNumber" => block(&params[0], self.newest()),
            other => panic!("unexpected method {other}"),
        }
    }

    fn newest(&self) -> u64 {
        100 + u64::try_from(self.sent.len()).unwrap() + DEEP
    }

    fn transactions(&self) -> u128 {
        let there = if self.outcome == TxOutcome::Vanish { 0 } else { self.sent.len() };
        u128::try_from(there).unwrap()
    }

    fn send(&mut self, raw: &str) -> String {
        let bytes = hex(raw.strip_prefix("0x").unwrap());
        let digits: String = Keccak256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let hash = format!("0x{digits}");
        if !self.sent.contains(&hash) {
            self.sent.push(hash.clone());
        }
        hash
    }

    /// The block of a transaction.
    fn found(&self, hash: &Value) -> Option<u64> {
        if matches!(self.outcome, TxOutcome::Vanish | TxOutcome::GiveWay) {
            return None;
        }
        let position = self.sent.iter().position(|sent| *hash == sent.as_str())?;
        Some(101 + u64::try_from(position).unwrap())
    }

    fn transaction(&self, hash: &Value, block: u64) -> Value {
        let nobody = format!("0x{}", "00".repeat(20));
        json!({
            "hash": hash, "from": nobody, "to": nobody, "value": "0x0", "input": "0x", "transactionIndex": "0x0",
            "blockNumber": quantity(block.into()), "blockHash": word(block.into()),
        })
    }

    fn receipt(&self, hash: &Value, block: u64) -> Value {
        json!({
            "transactionHash": hash, "transactionIndex": "0x0", "blockNumber": quantity(block.into()),
            "blockHash": word(block.into()), "status": quantity((self.outcome == TxOutcome::Pay).into()), "logs": [],
        })
    }
}

fn block(number: &Value, newest: u64) -> Value {
    let number = match number.as_str().unwrap() {
        "latest" => newest.into(),
        text => u128::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap(),
    };
    json!({
        "number": quantity(number), "hash": word(number), "timestamp": quantity(1_760_000_000 + number),
        "baseFeePerGas": quantity(1_000_000_000), "transactions": [],
    })
}

fn quantity(number: u128) -> Value {
    format!("{number:#x}").into()
}

fn word(number: u128) -> String {
    format!("0x{number:064x}")
}

fn hex(digits: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(pair).collect()
}
