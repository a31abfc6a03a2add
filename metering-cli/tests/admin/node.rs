//! A node that serves a small chain over JSON-RPC (EIP-1474), as far as a reader of payments needs it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// keccak-256 of `Transfer(address,address,uint256)` (EIP-20).
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// The time of block 0, in Unix seconds. Each further block is two seconds later.
pub(crate) const GENESIS_SECONDS: i64 = 1_760_000_000;

/// What a node serves.
#[derive(Debug, Clone)]
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
    hash: String,
    block: u64,
    from: String,
    to: String,
    value: u128,
    input: &'static str,
    succeeded: bool,
    /// The token, sender, recipient and value of each.
    transfers: Vec<(String, String, String, u128)>,
}

/// A node on a free port; dropping it stops it.
pub(crate) struct Node {
    port: u16,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
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

impl Tx {
    /// A transaction that does nothing, with a hash and a sender made of one byte each.
    pub(crate) fn new(byte: u8, block: u64, from: u8) -> Self {
        Self {
            hash: hash(byte),
            block,
            from: address(from),
            to: address(0xcc),
            value: 0,
            input: "0x",
            succeeded: true,
            transfers: Vec::new(),
        }
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

    pub(crate) fn with_input(self) -> Self {
        Self { input: "0x01020304", ..self }
    }

    pub(crate) fn reverted(self) -> Self {
        Self { succeeded: false, ..self }
    }

    fn block_hash(&self) -> String {
        word(&quantity(self.block))
    }

    fn json(&self) -> Value {
        json!({
            "hash": self.hash, "from": self.from, "to": self.to, "value": quantity(self.value), "input": self.input,
            "blockNumber": quantity(self.block), "blockHash": self.block_hash(), "transactionIndex": "0x0",
        })
    }

    fn logs(&self) -> Vec<Value> {
        let log = |(token, from, to, units): &(String, String, String, u128)| {
            json!({
                "address": token, "topics": [TRANSFER, word(from), word(to)], "data": word(&quantity(*units)),
                "transactionHash": self.hash, "transactionIndex": "0x0", "blockHash": self.block_hash(),
                "blockNumber": quantity(self.block), "logIndex": "0x0", "removed": false,
            })
        };
        // A failed transaction has no logs.
        self.transfers.iter().filter(|_| self.succeeded).map(log).collect()
    }

    fn receipt(&self) -> Value {
        json!({
            "transactionHash": self.hash, "transactionIndex": "0x0", "blockNumber": quantity(self.block),
            "blockHash": self.block_hash(), "status": if self.succeeded { "0x1" } else { "0x0" }, "logs": self.logs(),
        })
    }
}

impl Chain {
    fn respond(&self, method: &str, params: &Value) -> Value {
        let requested = || self.transactions.iter().find(|tx| params[0] == tx.hash.as_str());
        match method {
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
            "eth_getLogs" => self.logs(&params[0]),
            other => panic!("unexpected method {other}"),
        }
    }

    fn block(&self, number: u64, full: bool) -> Value {
        let held = self.transactions.iter().filter(|tx| tx.block == number);
        let transactions: Vec<Value> = held.map(|tx| if full { tx.json() } else { tx.hash.clone().into() }).collect();
        let time = GENESIS_SECONDS.unsigned_abs() + 2 * number;
        json!({
            "number": quantity(number), "hash": word(&quantity(number)), "timestamp": quantity(time),
            "transactions": transactions,
        })
    }

    fn logs(&self, filter: &Value) -> Value {
        let blocks = number(&filter["fromBlock"])..=number(&filter["toBlock"]);
        let tokens = filter["address"].as_array().unwrap();
        let logs = self.transactions.iter().filter(|tx| blocks.contains(&tx.block)).flat_map(Tx::logs);
        let wanted = |log: &Value| tokens.contains(&log["address"]) && log["topics"][2] == filter["topics"][2];
        logs.filter(wanted).collect()
    }
}

fn number(quantity: &Value) -> u64 {
    u64::from_str_radix(quantity.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

impl Node {
    pub(crate) fn start(chain: Chain) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // Ignore clients that hang up.
                let _ = serve(connection.unwrap(), &chain);
            }
        });
        Self { port, ended, thread: Some(thread) }
    }

    /// Its URL, with a path like those that providers give to their customers.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v2/{SECRET}", self.port)
    }
}

/// A secret in the URL that must not be shown.
pub(crate) const SECRET: &str = "hunter2hunter2";

impl Drop for Node {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread, which waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the node got an unexpected request");
    }
}

/// Serves one request per connection (RFC 9112).
fn serve(connection: TcpStream, chain: &Chain) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(&connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    if length == 0 {
        return Ok(());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let error = |words: &str| json!({ "code": -32_000, "message": words });
    let reply = |call: &Value| {
        let filter = &call["params"][0];
        let is_wide = |most: u64| number(&filter["toBlock"]) - number(&filter["fromBlock"]) >= most;
        if call["method"] == "eth_getLogs" && chain.takes.is_some_and(|(_, most)| is_wide(most)) {
            return json!({ "jsonrpc": "2.0", "id": call["id"], "error": error("not so much at once") });
        }
        let result = chain.respond(call["method"].as_str().unwrap(), &call["params"]);
        json!({ "jsonrpc": "2.0", "id": call["id"], "result": result })
    };
    let body = match serde_json::from_slice(&body).unwrap() {
        Value::Array(calls) if chain.takes.is_some_and(|(most, _)| calls.len() > most) => {
            json!({ "jsonrpc": "2.0", "id": null, "error": error("not so many at once") })
        }
        Value::Array(calls) => calls.iter().map(reply).collect(),
        call => reply(&call),
    };
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    write!(&connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
