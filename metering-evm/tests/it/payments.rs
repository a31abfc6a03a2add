//! Searching for payments.

use std::time::Duration;

use metering_core::chains::{Address, ChainReader, TxHash};
use serde_json::{Value, json};

use crate::node::{Chain, Fault, Tx, address, word};
use crate::scene::{alone, among, found, unavailable};

const RECIPIENT: Address = Address::from_bytes([0x70; 20]);
const TOKEN: Address = Address::from_bytes([0x20; 20]);

fn tx(byte: u8) -> TxHash {
    Tx::new(byte).hash
}

/// A chain with payments of both kinds, and with transactions that are not payments.
fn chain() -> Chain {
    let paying = |byte| Tx::new(byte).moving(TOKEN, RECIPIENT, "0x5");
    Chain { newest: 9000, ..Chain::default() }
        .with(8000, paying(6))
        .with(10, Tx::new(1).sending(RECIPIENT, "0x1"))
        .with(10, paying(2).moving(TOKEN, RECIPIENT, "0x6"))
        .with(10, Tx::new(0x91).moving(TOKEN, address(0x71), "0x5"))
        .with(11, Tx::new(0x92).moving(address(0x21), RECIPIENT, "0x5"))
        .with(11, Tx::new(0x93).sending(RECIPIENT, "0x0"))
        .with(11, Tx::new(0x94).sending(address(0x71), "0x5"))
        .with(11, Tx { to: None, ..Tx::new(0x95).sending(RECIPIENT, "0x5") })
        .with(50, Tx::new(3).sending(RECIPIENT, "0x7"))
        .with(3000, paying(4))
        .with(3000, paying(5))
}

/// How many blocks each call of `eth_getLogs` was for.
fn log_spans(parameters: &[Value]) -> Vec<u64> {
    let number = |value: &Value| u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
    parameters.iter().map(|params| number(&params[0]["toBlock"]) - number(&params[0]["fromBlock"]) + 1).collect()
}

#[tokio::test]
async fn tokens_are_found_by_their_logs_in_chunks() {
    let (node, reader) = alone(chain()).await;
    let hashes = found(&reader, RECIPIENT, &[TOKEN], 1, 9000).await;
    assert_eq!(hashes, Ok(vec![tx(2), tx(4), tx(5), tx(6)]));
    let state = node.state();
    assert_eq!(log_spans(&state.parameters), [2000, 2000, 2000, 2000, 1000]);
    assert_eq!(state.parameters[0][0]["address"], json!([TOKEN]));
    assert_eq!(state.parameters[0][0]["topics"][2], word(&RECIPIENT.to_string()));
    assert_eq!(state.requests[0], ["eth_chainId", "eth_blockNumber", "eth_getLogs"]);
}

#[tokio::test]
async fn the_native_coin_is_found_in_the_blocks() {
    let (node, reader) = alone(chain()).await;
    assert_eq!(found(&reader, RECIPIENT, &[Address::ZERO], 1, 50).await, Ok(vec![tx(1), tx(3)]));
    let sizes: Vec<_> = node.state().requests.iter().map(Vec::len).collect();
    assert_eq!(sizes, [22, 22, 12]);
}

#[tokio::test]
async fn blocks_with_incomplete_transactions_are_read() {
    let lists = Tx::new(0xa1).sending(RECIPIENT, "0x9");
    let hashes = Tx::new(0xa2).sending(RECIPIENT, "0x9");
    let odd = Tx::new(0xa3).sending(RECIPIENT, "0x9");
    let chain = Chain::default().with(10, lists).with(10, hashes).with(10, odd).with(10, Tx::new(1));
    let (node, reader) = alone(chain.with(10, Tx::new(2).sending(RECIPIENT, "0x7"))).await;
    node.change("eth_getBlockByNumber", |result| {
        let transactions = result["transactions"].as_array_mut().map(Vec::as_mut_slice);
        let Some([first, second, third, rest @ ..]) = transactions else { return };
        *first = json!({ "hash": first["hash"], "type": "0x76", "calls": [{ "to": RECIPIENT, "value": "0x9" }] });
        *second = second["hash"].take();
        third["value"] = json!(9);
        for transaction in rest {
            transaction.as_object_mut().unwrap().remove("transactionIndex");
        }
    });
    assert_eq!(found(&reader, RECIPIENT, &[Address::ZERO], 1, 50).await, Ok(vec![tx(2)]));
}

#[tokio::test]
async fn tokens_and_coins_are_returned_in_chain_order() {
    let (_node, reader) = alone(chain()).await;
    let tokens = [Address::ZERO, TOKEN, address(0x21)];
    assert_eq!(found(&reader, RECIPIENT, &tokens, 10, 60).await, Ok(vec![tx(1), tx(2), tx(0x92), tx(3)]));
}

#[tokio::test]
async fn both_ends_count_and_empty_ranges_send_no_requests() {
    let (node, reader) = alone(chain()).await;
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN, Address::ZERO], 11, 9).await, Ok(vec![]));
    assert_eq!(found(&reader, RECIPIENT, &[], 1, 100).await, Ok(vec![]));
    assert_eq!(node.requests(), 0);
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 10, 10).await, Ok(vec![tx(2)]));
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 11, 2999).await, Ok(vec![]));
}

#[tokio::test]
async fn too_large_ranges_are_halved() {
    // code, message
    let table = [
        (-32_005, "query returned more than 10000 results"),
        (-32_602, "block range is too wide"),
        (-32_600, "eth_getLogs is limited to a 700 blocks range"),
        (-32_000, "Log response size exceeded"),
        // With an arbitrary message.
        (-32_600, "limited to a 5 range"),
        (-32_603, "limit the query to at most 700 blocks"),
        (-32_602, "no"),
    ];
    for (code, message) in table {
        let (node, reader) = alone(Chain { log_blocks_max: Some((700, code, message)), ..chain() }).await;
        let hashes = found(&reader, RECIPIENT, &[TOKEN], 2001, 4000).await;
        assert_eq!(hashes, Ok(vec![tx(4), tx(5)]), "{message}");
        assert_eq!(log_spans(&node.state().parameters), [2000, 1000, 500, 562, 632, 306], "{message}");
    }
}

#[tokio::test]
async fn too_large_responses_halve_the_range() {
    let (node, reader) = alone(chain()).await;
    node.fail([Fault::Huge { announced: true }, Fault::Huge { announced: false }]);
    assert_eq!(found(&reader, RECIPIENT, &[Address::ZERO], 1, 50).await, Ok(vec![tx(1), tx(3)]));
    let sizes: Vec<_> = node.state().requests.iter().map(|methods| methods.len() - 2).collect();
    assert_eq!(sizes[..4], [20, 10, 5, 6]);
}

#[tokio::test]
async fn single_block_that_is_too_large_is_a_failure() {
    let (node, reader) = alone(chain()).await;
    node.always(Fault::Errs(-32_005, "query returned more than 10000 results"));
    assert!(unavailable(found(&reader, RECIPIENT, &[TOKEN], 1, 8).await).contains("more than 10000"));
    let spans = log_spans(&node.state().parameters);
    assert_eq!(
        spans,
        [8, 4, 2, 1, 1],
        "the last request is for the chain's first block: this source allows no block at all"
    );
}

#[tokio::test]
async fn too_large_block_does_not_hide_others() {
    // Block 10 is too large for the source; the first block of the chain is not.
    for token in [TOKEN, Address::ZERO] {
        let (node, reader) = alone(chain()).await;
        node.refuse(|method, params| {
            let number =
                |value: &Value| u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
            let (from, to) = match method {
                "eth_getLogs" => (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"])),
                "eth_getBlockByNumber" => (number(&params[0]), number(&params[0])),
                _ => return None,
            };
            (from..=to).contains(&10).then_some((-32_008, "Response is too big"))
        });
        let found = reader.payments_to(RECIPIENT, &[token], 1, 3000).await.unwrap();
        let [(10, why)] = found.unreadable_blocks.as_slice() else { panic!("{found:?}") };
        assert!(why.contains("Response is too big") && why.contains(&node.host()), "{why}");
        let expected = if token == TOKEN { vec![(3000, tx(4)), (3000, tx(5))] } else { vec![(50, tx(3))] };
        assert_eq!(found.transactions, expected);
    }
}

#[tokio::test]
async fn source_behind_the_range_is_not_believed() {
    let (_node, reader) = alone(Chain { newest: 40, ..chain() }).await;
    for tokens in [[TOKEN], [Address::ZERO]] {
        let why = unavailable(found(&reader, RECIPIENT, &tokens, 1, 50).await);
        assert!(why.contains("has not reached block"), "{why}");
    }
    let (node, reader) = alone(chain()).await;
    node.set("eth_getBlockByNumber", Value::Null);
    assert!(unavailable(found(&reader, RECIPIENT, &[Address::ZERO], 7, 9).await).contains("block 7"));
}

#[tokio::test]
async fn unrequested_logs_are_refused() {
    // JSON pointer, value, fragment of the error
    let table = [
        ("/0/blockNumber", json!("0x2328"), "a block that was not requested"),
        ("/0/address", json!(address(0x21)), "a contract that was not requested"),
        ("/0/blockNumber", Value::Null, "without its position"),
        ("/0/transactionHash", json!("0x12"), "not 32 bytes"),
    ];
    for (place, value, problem) in table {
        let (node, reader) = alone(chain()).await;
        node.change("eth_getLogs", move |result| *result.pointer_mut(place).unwrap() = value.clone());
        let why = unavailable(found(&reader, RECIPIENT, &[TOKEN], 1, 100).await);
        assert!(why.contains(problem), "{place}: {why}");
    }
    // Logs that report no transfer to the recipient are ignored.
    let (node, reader) = alone(chain()).await;
    node.change("eth_getLogs", |result| {
        result[0]["removed"] = json!(true);
        result[1]["topics"][2] = json!(word("0x71"));
    });
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 1, 100).await, Ok(vec![]));
}

#[tokio::test]
async fn transaction_seen_in_different_blocks_is_returned_once() {
    let paying = || Tx::new(1).moving(TOKEN, RECIPIENT, "0x5");
    let (_nodes, reader) = among(2, [Chain::default().with(10, paying()), Chain::default().with(12, paying())]).await;
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 1, 50).await, Ok(vec![tx(1)]));
}

#[tokio::test]
async fn payments_known_to_any_source_are_returned_once() {
    let missing = Chain { newest: 9000, ..Chain::default() }.with(10, Tx::new(2).moving(TOKEN, RECIPIENT, "0x5"));
    let (nodes, reader) = among(2, [missing, chain(), chain()]).await;
    // The third source responds late, but is not needed.
    nodes[2].always(Fault::Late(Duration::from_millis(300)));
    let hashes = found(&reader, RECIPIENT, &[TOKEN], 1, 9000).await;
    assert_eq!(hashes, Ok(vec![tx(2), tx(4), tx(5), tx(6)]));
    nodes[1].always(Fault::Status(500, None));
    nodes[2].always(Fault::Status(500, None));
    assert!(unavailable(found(&reader, RECIPIENT, &[TOKEN], 1, 9000).await).starts_with("1 of the 2"));
}
