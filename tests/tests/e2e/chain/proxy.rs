//! Checks the chain proxy itself: each fault does what it claims.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};
use metering_tests::chain::rpc::{Rpc, RpcError};
use metering_tests::client::{Client, connect};
use serde_json::{Value, json};

use crate::chain::harness::Fixture;

#[test]
fn proxy_forwards_and_counts_calls_and_batches() {
    let Some(fixture) = Fixture::new() else { return };
    let (proxy, hash) = (Proxy::start(&fixture.chain), fixture.pay(5));
    let client = Client::new(proxy.address());
    let receipt = json!({ "jsonrpc": "2.0", "id": "r", "method": "eth_getTransactionReceipt", "params": [hash] });
    let chain_id = json!({ "jsonrpc": "2.0", "id": 7, "method": "eth_chainId", "params": [] });
    let expected = |id: Value, result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let found = expected(json!("r"), fixture.chain.mined(&hash));
    let id = expected(json!(7), json!("0x7a69"));
    assert_eq!(client.post("/v3/some-key", &receipt).expect(200).json(), found);
    assert_eq!(client.post("/", &json!([receipt, chain_id, chain_id])).expect(200).json(), json!([found, id, id]));
    let counts: Vec<_> = proxy.counts().into_iter().collect();
    assert_eq!(counts, [("eth_chainId".to_owned(), 2), ("eth_getTransactionReceipt".to_owned(), 2)]);
    assert_eq!((proxy.requests(), proxy.count("eth_chainId"), proxy.count("eth_call")), (2, 2, 0));
    proxy.wait_for("eth_chainId", 2);
    proxy.reset_counts();
    assert_eq!((proxy.requests(), proxy.count("eth_chainId")), (0, 0));
    let _ = client.send("POST", "/", Some(b"not JSON")).expect(400);
    // The node's own errors are forwarded too.
    let refused = Rpc::at(proxy.address()).try_call("eth_nothing", json!([])).unwrap_err();
    assert_eq!(refused.code, -32601, "{refused}");
}

#[test]
fn proxy_injects_the_requested_fault() {
    let Some(fixture) = Fixture::new() else { return };
    let (proxy, hash) = (Proxy::start(&fixture.chain), fixture.pay(5));
    let (node, faulty) = (Rpc::at(fixture.chain.address()), Rpc::at(proxy.address()));
    let (number, receipt, transaction, block) =
        ("eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getBlockByNumber");
    let requests = [
        (number, json!([])),
        (receipt, json!([hash])),
        (transaction, json!([hash])),
        (block, json!(["latest", false])),
    ];
    let differing = |fault: Fault| -> Vec<(String, Value, Value)> {
        proxy.set(fault);
        let results = requests
            .iter()
            .map(|(method, params)| (*method, node.call(method, params.clone()), faulty.call(method, params.clone())));
        let differing = results.filter(|(_, real, faulty)| real != faulty);
        differing.map(|(method, real, faulty)| (method.to_owned(), real, faulty)).collect()
    };
    // fault; for each response that differs: where, and the new value
    let value = |digit: u8| json!(format!("0x{digit:064x}"));
    let table = [
        (Fault::PassThrough, vec![]),
        (Fault::NullReceipts, vec![(receipt, "", Value::Null), (transaction, "", Value::Null)]),
        (Fault::WrongChainId(1), vec![(number, "", json!("0x1"))]),
        (Fault::TamperedReceipt, vec![(receipt, "/logs/0/data", value(4))]),
        (Fault::TamperedTransaction, vec![(transaction, "/value", json!("0x1"))]),
    ];
    for (fault, expected) in table {
        let differing = differing(fault.clone());
        let found: Vec<_> = differing.iter().map(|(method, _, _)| method.as_str()).collect();
        let methods: Vec<_> = expected.iter().map(|(method, _, _)| *method).collect();
        assert_eq!(found, methods, "{fault:?}");
        for ((_, real, faulty), (_, json_pointer, after)) in differing.iter().zip(&expected) {
            assert_eq!(faulty.pointer(json_pointer), Some(after), "{fault:?}");
            assert_ne!(real.pointer(json_pointer), Some(after), "{fault:?}");
        }
    }
    let other = differing(Fault::OtherBlockHash);
    let [(method, real, faulty)] = other.as_slice() else { panic!("{other:?}") };
    assert_eq!(method, block);
    assert_ne!(real["hash"], faulty["hash"]);
    assert_eq!((&real["number"], &real["parentHash"]), (&faulty["number"], &faulty["parentHash"]));
}

#[test]
fn proxy_of_a_lagging_node_hides_newer_blocks() {
    let Some(fixture) = Fixture::new() else { return };
    let (old, new) = (fixture.pay(5), fixture.pay(6));
    let (proxy, height) = (Proxy::start(&fixture.chain), fixture.chain.block_number());
    let rpc = Rpc::at(proxy.address());
    let hex = |number: u64| json!(format!("{number:#x}"));
    let logs = json!([{ "fromBlock": "0x0", "toBlock": "latest", "address": fixture.token }]);
    let all = rpc.call("eth_getLogs", logs.clone()).as_array().unwrap().len();
    proxy.set(Fault::Lag(1));
    assert_eq!(rpc.call("eth_blockNumber", json!([])), hex(height - 1));
    assert_eq!(rpc.call("eth_getBlockByNumber", json!(["latest", false]))["number"], hex(height - 1));
    assert_eq!(rpc.call("eth_getBlockByNumber", json!([hex(height), false])), Value::Null);
    assert_eq!((rpc.receipt(&old).is_some(), rpc.receipt(&new)), (true, None));
    assert_eq!(rpc.call("eth_getTransactionByHash", json!([new])), Value::Null);
    assert_eq!(rpc.call("eth_getLogs", logs).as_array().unwrap().len(), all - 1);
    // Balances are historical too: 5, not 11.
    let balance = fixture.chain.wallet().encode("Token", "balanceOf", json!([fixture.recipient]));
    let balance = rpc.call("eth_call", json!([{ "to": fixture.token, "data": balance }]));
    assert_eq!(balance, json!(format!("0x{:064x}", 5)));
    fixture.chain.mine(1);
    assert!(rpc.receipt(&new).is_some());
    // A lag longer than the chain stops at the first block.
    proxy.set(Fault::Lag(1_000));
    assert_eq!(rpc.call("eth_blockNumber", json!([])), hex(0));
}

#[test]
fn proxy_responds_with_garbage_and_errors() {
    let Some(fixture) = Fixture::new() else { return };
    let (proxy, request) =
        (Proxy::start(&fixture.chain), json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_chainId" }));
    let client = Client::new(proxy.address());
    let full_response = client.post("/", &request).expect(200).text();
    // fault, status, body
    let table = [
        (Fault::Garbage(Garbage::Empty), 200, String::new()),
        (Fault::Garbage(Garbage::Text), 200, "upstream connect error".to_owned()),
        (Fault::Garbage(Garbage::Truncated), 200, full_response[..full_response.len() / 2].to_owned()),
        (Fault::Garbage(Garbage::WrongId), 200, full_response.replace("\"id\":1", "\"id\":1001")),
        (Fault::HttpError(503), 503, "503 Service Unavailable".to_owned()),
        (Fault::HttpError(429), 429, "429 Too Many Requests".to_owned()),
    ];
    for (fault, status, body) in table {
        proxy.set(fault.clone());
        let response = client.post("/", &request).expect(status);
        assert_eq!(parsed(&response.text()), parsed(&body), "{fault:?}");
    }
    proxy.set(Fault::Garbage(Garbage::Html));
    let response = client.post("/", &request).expect(200);
    assert_eq!(response.header("content-type"), Some("text/html"));
    proxy.set(Fault::RpcError(-32005, "limit exceeded"));
    let refusal = RpcError { code: -32005, message: "limit exceeded".to_owned() };
    assert_eq!(Rpc::at(proxy.address()).try_call("eth_chainId", json!([])), Err(refusal));
    let batch = client.post("/", &json!([request, request])).expect(200).json();
    assert_eq!((&batch[0]["error"]["code"], &batch[1]["id"]), (&json!(-32005), &json!(1)));
    drop(fixture);
    proxy.set(Fault::PassThrough);
    assert_eq!(client.post("/", &request).status, 502, "the proxy responds with 502 after the node has ended");
}

/// Parsed JSON, so that the order of members does not matter; any other text as it is.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

#[test]
fn proxy_recovers_after_the_requested_failures() {
    let Some(chain) = Chain::start() else { return };
    let (proxy, request) = (Proxy::start(&chain), json!([{ "jsonrpc": "2.0", "id": 1, "method": "eth_chainId" }]));
    let client = Client::new(proxy.address());
    proxy.set(Fault::first(2, Fault::HttpError(500)));
    let statuses = [(); 4].map(|()| client.post("/", &request).status);
    assert_eq!(statuses, [500, 500, 200, 200]);
}

#[test]
fn timed_out_proxy_stays_silent_and_slow_one_responds() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    let delay = Duration::from_millis(100);
    proxy.set(Fault::Slow(delay));
    let started = std::time::Instant::now();
    assert_eq!(Rpc::at(proxy.address()).call("eth_chainId", json!([])), "0x7a69");
    assert!(started.elapsed() >= delay);
    proxy.set(Fault::Timeout);
    assert!(is_silent(proxy.address(), Duration::from_millis(300)));
    // Dropping the proxy does not wait for the pending response.
    let started = std::time::Instant::now();
    drop(proxy);
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// Whether a server accepts a request and then neither responds nor closes within `wait`.
fn is_silent(address: SocketAddr, wait: Duration) -> bool {
    let mut stream = connect(address).unwrap();
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\"}";
    write!(stream, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.set_read_timeout(Some(wait)).unwrap();
    let kind = stream.read(&mut [0]).unwrap_err().kind();
    matches!(kind, std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
