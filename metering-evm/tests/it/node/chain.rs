//! A small chain, and its responses.

use std::collections::{BTreeMap, HashMap};

use metering_core::chains::{Address, TxHash};
use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

use super::wallet_state::WalletState;

/// A result, or the code and message of an error.
pub(crate) type RpcResult = Result<Value, (i64, &'static str)>;

/// A chain. Its blocks are generated on request, and contain the transactions that the test added.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) id: u64,
    pub(crate) newest: u64,
    pub(crate) safe: Option<u64>,
    pub(crate) finalized: Option<u64>,
    /// The error for the tag `finalized`, as from an older node that does not know this tag.
    pub(crate) tag_error: Option<(i64, &'static str)>,
    /// Its transactions, by block; `None` for pending ones.
    pub(crate) transactions: Vec<(Option<u64>, Tx)>,
    /// Blocks that were replaced by a reorganisation, with the number of the fork.
    pub(crate) forks: BTreeMap<u64, u8>,
    /// Return data of contracts, by address and prefix of the input.
    pub(crate) contracts: HashMap<(Address, String), RpcResult>,
    pub(crate) code: HashMap<Address, String>,
    /// Maximum number of blocks in one call of `eth_getLogs`, and the error for more.
    pub(crate) log_blocks_max: Option<(u64, i64, &'static str)>,
    /// What payers see.
    pub(crate) wallet_state: WalletState,
}

/// A transaction.
#[derive(Debug, Clone)]
pub(crate) struct Tx {
    pub(crate) hash: TxHash,
    pub(crate) from: Address,
    pub(crate) to: Option<Address>,
    pub(crate) value: String,
    pub(crate) input: String,
    pub(crate) succeeded: bool,
    pub(crate) logs: Vec<Value>,
}

/// An address of twenty copies of `byte`.
pub(crate) fn address(byte: u8) -> Address {
    Address::from_bytes([byte; 20])
}

/// An address or a number as a word, in hexadecimal.
pub(crate) fn word(digits: &str) -> String {
    format!("0x{:0>64}", digits.trim_start_matches("0x"))
}

/// The hash of a block of the chain, or of one of its forks.
pub(crate) fn block_hash(number: u64, fork: u8) -> [u8; 32] {
    Keccak256::digest([number.to_be_bytes().as_slice(), &[fork]].concat()).into()
}

impl Tx {
    /// A transaction that does nothing, with a hash of 32 copies of `byte`.
    pub(crate) fn new(byte: u8) -> Self {
        Self {
            hash: TxHash::from_bytes([byte; 32]),
            from: address(0xf0),
            to: Some(address(0x70)),
            value: "0x0".to_owned(),
            input: "0x".to_owned(),
            succeeded: true,
            logs: Vec::new(),
        }
    }

    /// Sends the native coin.
    pub(crate) fn sending(self, to: Address, value: &str) -> Self {
        Self { to: Some(to), value: value.to_owned(), ..self }
    }

    /// Moves a token.
    pub(crate) fn moving(self, token: Address, to: Address, value: &str) -> Self {
        let topics = [transfer_topic(), word(&self.from.to_string()), word(&to.to_string())];
        self.logging(json!({ "address": token, "topics": topics, "data": word(value) }))
    }

    /// Logs something.
    pub(crate) fn logging(mut self, log: Value) -> Self {
        self.logs.push(log);
        self
    }

    fn json(&self, block: Option<(u64, String)>, index: usize) -> Value {
        let placed = block.is_some();
        json!({
            "hash": self.hash, "from": self.from, "to": self.to, "value": self.value, "input": self.input,
            "nonce": "0x1", "type": "0x2",
            "blockNumber": block.as_ref().map(|(number, _)| format!("{number:#x}")),
            "blockHash": block.map(|(_, hash)| hash),
            "transactionIndex": placed.then(|| format!("{index:#x}")),
        })
    }

    fn full_logs(&self, number: u64, hash: &str, index: usize) -> Vec<Value> {
        let place = json!({
            "transactionHash": self.hash, "transactionIndex": format!("{index:#x}"), "blockHash": hash,
            "blockNumber": format!("{number:#x}"), "logIndex": "0x0", "removed": false,
        });
        let full = |log: &Value| {
            let mut full = place.as_object().unwrap().clone();
            full.extend(log.as_object().unwrap().clone());
            Value::from(full)
        };
        self.logs.iter().map(full).collect()
    }
}

/// The topic of EIP-20's transfers.
pub(crate) fn transfer_topic() -> String {
    format!("0x{}", hex::encode(Keccak256::digest(b"Transfer(address,address,uint256)")))
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            id: 1,
            newest: 100,
            safe: Some(90),
            finalized: Some(80),
            tag_error: None,
            transactions: Vec::new(),
            forks: BTreeMap::new(),
            contracts: HashMap::new(),
            code: HashMap::new(),
            log_blocks_max: None,
            wallet_state: WalletState::default(),
        }
    }
}

impl Chain {
    /// The chain with a transaction in a block.
    pub(crate) fn with(mut self, block: u64, tx: Tx) -> Self {
        self.transactions.push((Some(block), tx));
        self
    }

    /// The chain with a pending transaction.
    pub(crate) fn with_pending(mut self, tx: Tx) -> Self {
        self.transactions.push((None, tx));
        self
    }

    /// The chain with a contract that returns `result`.
    pub(crate) fn with_contract(mut self, at: Address, input: &str, result: RpcResult) -> Self {
        self.contracts.insert((at, input.to_owned()), result);
        self
    }

    pub(crate) fn hash_of(&self, number: u64) -> String {
        format!("0x{}", hex::encode(block_hash(number, self.forks.get(&number).copied().unwrap_or_default())))
    }

    pub(crate) fn respond(&mut self, method: &str, params: &Value) -> RpcResult {
        match method {
            "eth_chainId" => Ok(json!(format!("{:#x}", self.id))),
            "eth_blockNumber" => Ok(json!(format!("{:#x}", self.newest))),
            "eth_getTransactionByHash" => Ok(self.placed(params).map_or(Value::Null, |(block, index, tx)| {
                tx.json(block.map(|number| (number, self.hash_of(number))), index)
            })),
            "eth_getTransactionReceipt" => Ok(match self.placed(params) {
                Some((Some(number), index, tx)) => self.receipt(number, index, tx),
                _ => Value::Null,
            }),
            "eth_getBlockByNumber" => match self.tag_error.filter(|_| params[0] == "finalized") {
                Some(error) => Err(error),
                None => Ok(self.block(params)),
            },
            "eth_getLogs" => self.logs(&params[0]),
            "eth_getCode" => {
                let at: Address = serde_json::from_value(params[0].clone()).unwrap();
                Ok(json!(self.code.get(&at).map_or("0x", String::as_str)))
            }
            "eth_call" => {
                assert_eq!(params[1], "latest");
                let at: Address = serde_json::from_value(params[0]["to"].clone()).unwrap();
                let input = params[0]["data"].as_str().unwrap();
                let known = self.contracts.iter().find(|((to, begin), _)| *to == at && input.starts_with(begin));
                known.map_or(Ok(json!("0x")), |(_, result)| result.clone())
            }
            "eth_sendRawTransaction" => {
                let hash = self.wallet_state.take(params)?;
                if self.transactions.iter().any(|(_, tx)| tx.hash == hash) {
                    return Err((-32_000, "already known"));
                }
                self.transactions.push((None, Tx { hash, ..Tx::new(0) }));
                Ok(json!(hash))
            }
            _ => self.wallet_state.respond(method, params, self.newest),
        }
    }

    /// The requested transaction, its block, and its index in the block.
    fn placed(&self, params: &Value) -> Option<(Option<u64>, usize, &Tx)> {
        let (block, tx) = self.transactions.iter().find(|(_, tx)| params[0] == tx.hash.to_string())?;
        let index = self.in_block(*block).position(|other| other.hash == tx.hash)?;
        Some((*block, index, tx))
    }

    fn in_block(&self, number: Option<u64>) -> impl Iterator<Item = &Tx> {
        self.transactions.iter().filter(move |(block, _)| *block == number).map(|(_, tx)| tx)
    }

    fn receipt(&self, number: u64, index: usize, tx: &Tx) -> Value {
        let hash = self.hash_of(number);
        json!({
            "transactionHash": tx.hash, "transactionIndex": format!("{index:#x}"),
            "blockNumber": format!("{number:#x}"), "blockHash": hash,
            "from": tx.from, "to": tx.to, "contractAddress": null, "gasUsed": "0x5208",
            "status": if tx.succeeded { "0x1" } else { "0x0" },
            "logs": tx.full_logs(number, &hash, index),
        })
    }

    fn block(&self, params: &Value) -> Value {
        let number = match params[0].as_str().unwrap() {
            "safe" => self.safe,
            "finalized" => self.finalized,
            "latest" => Some(self.newest),
            number => Some(u64::from_str_radix(&number[2..], 16).unwrap()).filter(|number| *number <= self.newest),
        };
        let Some(number) = number else { return Value::Null };
        let hash = self.hash_of(number);
        let full = params[1].as_bool().unwrap();
        let transactions: Vec<_> = self
            .in_block(Some(number))
            .enumerate()
            .map(|(index, tx)| if full { tx.json(Some((number, hash.clone())), index) } else { json!(tx.hash) })
            .collect();
        let time = 1_700_000_000 + 12 * number;
        json!({
            "number": format!("{number:#x}"), "hash": hash, "timestamp": format!("{time:#x}"),
            "transactions": transactions, "baseFeePerGas": self.wallet_state.base_fee,
        })
    }

    fn logs(&self, filter: &Value) -> RpcResult {
        let number = |key: &str| u64::from_str_radix(&filter[key].as_str().unwrap()[2..], 16).unwrap();
        let (from, to) = (number("fromBlock"), number("toBlock"));
        if let Some((most, code, message)) = self.log_blocks_max
            && to - from + 1 > most
        {
            return Err((code, message));
        }
        let (tokens, topics) = (filter["address"].as_array().unwrap(), filter["topics"].as_array().unwrap());
        let mut logs = Vec::new();
        for block in from..=to.min(self.newest) {
            let hash = self.hash_of(block);
            let all = self.in_block(Some(block)).enumerate().flat_map(|(index, tx)| tx.full_logs(block, &hash, index));
            logs.extend(all.filter(|log| {
                let fits = |(place, topic): (usize, &Value)| topic.is_null() || log["topics"][place] == *topic;
                tokens.contains(&log["address"]) && topics.iter().enumerate().all(fits)
            }));
        }
        Ok(Value::from(logs))
    }
}
