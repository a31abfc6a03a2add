//! Limits of sources on the size of batches and ranges, and how they are learned.

use metering_core::chains::{Address, TransactionStatus};
use metering_evm::{ChainConfig, SourceLimits};
use serde_json::{Value, json};

use crate::node::{Chain, Fault, Node, Tx, address};
use crate::scene::{alone, config, found, reader, status, unavailable};

const RECIPIENT: Address = Address::from_bytes([0x70; 20]);
const TOKEN: Address = Address::from_bytes([0x20; 20]);

/// How many blocks each search for logs was for.
fn spans(node: &Node) -> Vec<u64> {
    let number = |value: &Value| u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
    let parameters = &node.state().parameters;
    parameters.iter().map(|params| number(&params[0]["toBlock"]) - number(&params[0]["fromBlock"]) + 1).collect()
}

#[tokio::test]
async fn a_refused_batch_is_split_and_its_payment_is_read() {
    let error =
        |message: &str| json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32_000, "message": message } });
    let too_many = "Batch of more than 3 requests are not allowed";
    // maximum calls per batch, the error for more, the largest accepted request
    let table = [
        (3, Fault::StatusWith(500, error(too_many)), 2),
        (2, Fault::StatusWith(200, error(too_many)), 2),
        (3, Fault::Refuses(-32_600, "no"), 2),
        (1, Fault::Status(500, None), 1),
        (1, Fault::Status(413, None), 1),
        (1, Fault::Status(400, None), 1),
        (0, Fault::StatusWith(200, error("batches are not supported")), 1),
        (0, Fault::Body("batches are not supported"), 1),
        (0, Fault::Unbatched, 1),
    ];
    for (most, fault, taken) in table {
        let chain = Chain { newest: 100, ..Chain::default() }.with(50, Tx::new(1));
        let (node, reader) = alone(chain).await;
        node.state().batch_max = Some((most, fault.clone()));
        for _ in 0..2 {
            assert!(matches!(status(&reader).await, Ok(TransactionStatus::Mined(_))), "{most} {fault:?}");
        }
        // The limit is remembered: the second time, nothing is refused.
        let before = node.requests();
        assert!(matches!(status(&reader).await, Ok(TransactionStatus::Mined(_))));
        let sizes: Vec<_> = node.state().requests[before..].iter().map(Vec::len).collect();
        assert_eq!(sizes.iter().max(), Some(&taken), "{most} {fault:?}: {sizes:?}");
        // Batches of several calls each request the chain's id; single calls do so once per lookup.
        let requests = &node.state().requests[before..];
        let ids = requests.iter().flatten().filter(|method| *method == "eth_chainId").count();
        assert_eq!(ids, if taken == 1 { 2 } else { requests.len() }, "{most} {fault:?}");
    }
}

#[tokio::test]
async fn an_error_of_a_call_is_no_limit_of_the_batch() {
    // The source reports the error of one call as one error for the whole batch.
    let (node, reader) = alone(Chain::default().with(10, Tx::new(2).moving(TOKEN, RECIPIENT, "0x5"))).await;
    let too_wide = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32_000, "message": "no" } });
    node.state().batch_max = Some((2, Fault::StatusWith(200, too_wide)));
    node.refuse(|method, params| {
        let wide = params[0]["fromBlock"] != params[0]["toBlock"];
        (method == "eth_getLogs" && wide).then_some((-32_000, "no"))
    });
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 9, 11).await.map(|found| found.len()), Ok(1));
}

#[tokio::test]
async fn a_source_on_another_chain_is_not_believed_in_parts_either() {
    for most in [2, 0] {
        let (node, reader) = alone(Chain::default()).await;
        node.state().batch_max = Some((most, Fault::Status(413, None)));
        assert_eq!(status(&reader).await, Ok(TransactionStatus::Unknown));
        node.state().chain.id = 5;
        assert!(status(&reader).await.is_err(), "{most}");
    }
}

#[tokio::test]
async fn the_range_of_logs_is_configured_per_source() {
    let node = Node::start(Chain { newest: 9_000, ..Chain::default() }).await;
    let reader = reader(&ChainConfig { log_blocks_max: vec![300], ..config(&[node.url()]) });
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 1, 1_000).await, Ok(vec![]));
    assert_eq!(spans(&node), [300, 300, 300, 100]);
}

#[tokio::test]
async fn a_refused_range_is_remembered_and_a_failed_one_is_halved_for_the_next_search() {
    let limit = Some((5, -32_000, "limited to a 5 range"));
    let (node, reader) = alone(Chain { newest: 9_000, log_blocks_max: limit, ..Chain::default() }).await;
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 1, 100).await, Ok(vec![]));
    node.state().parameters.clear();
    assert_eq!(found(&reader, RECIPIENT, &[TOKEN], 101, 200).await, Ok(vec![]));
    assert_eq!(spans(&node), [5; 20]);
    // The source may take too long for the range: the next round tries half of it.
    let (node, reader) = alone(Chain { newest: 9_000, ..Chain::default() }).await;
    node.refuse(|method, _| (method == "eth_getLogs").then_some((-32_000, "query timeout")));
    for _ in 0..3 {
        assert!(unavailable(found(&reader, RECIPIENT, &[TOKEN], 1, 8).await).contains("query timeout"));
    }
    assert_eq!(spans(&node), [8, 4, 2]);
}

#[tokio::test]
async fn operators_learn_what_a_source_takes() {
    let node = Node::start(Chain { newest: 9_000, ..Chain::default() }).await;
    let limits = async || {
        let reader = reader(&config(&[format!("{}/v2/hidden", node.url())]));
        reader.try_limits(RECIPIENT, &[address(0x20)]).await.unwrap().remove(0)
    };
    let all = SourceLimits { host: node.host(), batch_calls: None, log_blocks: None };
    assert_eq!(limits().await, all);
    node.state().chain.log_blocks_max = Some((1_000, -32_000, "no"));
    node.state().batch_max = Some((3, Fault::Refuses(-32_000, "no")));
    let SourceLimits { host, batch_calls, log_blocks } = limits().await;
    assert_eq!((host, batch_calls), (node.host(), Some(2)));
    assert!(log_blocks.is_some_and(|blocks| (500..2_000).contains(&blocks)), "{log_blocks:?}");
    node.always(Fault::Status(503, None));
    let reader = reader(&config(&[node.url()]));
    assert!(reader.try_limits(RECIPIENT, &[TOKEN]).await.is_err());
}
