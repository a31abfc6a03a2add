//! When payments are credited and final by default, and the hashes of blocks.

use metering_core::chains::{ChainError, ChainReader, Heights, TransactionStatus};
use metering_evm::{ChainConfig, EvmReader};
use serde_json::{Value, json};

use crate::node::{Chain, Fault, Node, Tx, block_hash};
use crate::scene::{among, config, evidence, reader, status, unavailable};

async fn scene(chain: Chain, change: impl FnOnce(ChainConfig) -> ChainConfig) -> (Node, EvmReader) {
    let node = Node::start(chain).await;
    let reader = reader(&change(ChainConfig { confirmations: None, ..config(&[node.url()]) }));
    (node, reader)
}

/// A node with this time between blocks. Timestamps are whole seconds.
async fn paced(millis: u64, chain: Chain) -> (Node, EvmReader) {
    let (node, reader) = scene(chain, |config| config).await;
    node.change("eth_getBlockByNumber", move |result| {
        if !result.is_null() {
            let number = u64::from_str_radix(&result["number"].as_str().unwrap()[2..], 16).unwrap();
            result["timestamp"] = json!(format!("{:#x}", 1_700_000_000 + number * millis / 1_000));
        }
    });
    (node, reader)
}

#[tokio::test]
async fn confirmations_follow_the_measured_block_time() {
    // milliseconds between blocks, confirmations
    for (millis, confirmations) in [(12_000, 2), (2_000, 15), (1_000, 30), (250, 120)] {
        let chain = Chain { newest: 1_000, finalized: Some(900), ..Chain::default() }.with(999, Tx::new(1));
        let (_node, reader) = paced(millis, chain).await;
        assert_eq!(reader.confirmations(), None, "no request was sent yet");
        let depth = evidence(&reader).await.depth;
        assert_eq!((depth.confirmations, depth.required), (2, confirmations), "{millis}");
        assert_eq!(reader.confirmations().map(u64::from), Some(confirmations));
        let heights = reader.heights().await.unwrap();
        assert_eq!(heights.confirmed, 1_001 - confirmations, "{millis}");
    }
}

#[tokio::test]
async fn block_time_is_measured_once_for_many_reads() {
    let (node, reader) = scene(Chain { newest: 1_000, ..Chain::default() }.with(95, Tx::new(1)), |config| config).await;
    let _ = evidence(&reader).await;
    let first = node.requests();
    let _ = evidence(&reader).await;
    assert_eq!(node.requests() - first, 2, "a lookup takes two batches; only measuring takes more");
    assert!(first > 2);
}

#[tokio::test]
async fn a_chain_that_cannot_be_measured_credits_nothing() {
    let (node, reader) = scene(Chain::default().with(95, Tx::new(1)), |config| config).await;
    node.always(Fault::Status(503, None));
    assert!(unavailable(status(&reader).await).contains("503"));
    assert_eq!(reader.confirmations(), None);
}

#[tokio::test]
async fn young_chains_need_few_confirmations_and_have_a_first_block() {
    for newest in [0, 1, 2] {
        let chain = Chain { newest, safe: Some(0), finalized: Some(0), ..Chain::default() }.with_pending(Tx::new(1));
        let (_node, reader) = scene(chain, |config| config).await;
        assert_eq!(
            status(&reader).await,
            Ok(TransactionStatus::Pending { required: 2, transaction: None }),
            "{newest}"
        );
        let heights = reader.heights().await.unwrap();
        assert_eq!(heights, Heights { newest, confirmed: newest.saturating_sub(1), finalized: 0 });
    }
}

#[tokio::test]
async fn finality_limits_the_confirmations() {
    let fast = Chain { newest: 1_000, ..Chain::default() };
    let (node, reader) = scene(fast, |config| ChainConfig { finality: Some("5".parse().unwrap()), ..config }).await;
    node.change("eth_getBlockByNumber", |result| result["timestamp"] = json!("0x1"));
    assert_eq!(reader.heights().await, Ok(Heights { newest: 1_000, confirmed: 996, finalized: 996 }));
    assert_eq!(reader.confirmations(), Some(5));
}

#[tokio::test]
async fn a_block_is_final_by_the_chains_tag_or_by_depth() {
    // finality, what the chain calls finalized, the newest final block
    let table = [
        (None, Some(80), 80),
        (None, None, 37),
        (Some("20"), Some(80), 81),
        (Some("safe"), Some(80), 90),
        (Some("finalized"), Some(80), 80),
        // Never newer than the newest credited block.
        (None, Some(100), 99),
    ];
    for (finality, finalized, expected) in table {
        let finality = finality.map(|finality| finality.parse().unwrap());
        let chain = Chain { finalized, ..Chain::default() };
        let (_node, reader) = scene(chain, |config| ChainConfig { finality, ..config }).await;
        let heights = reader.heights().await.unwrap();
        assert_eq!(heights, Heights { newest: 100, confirmed: 99, finalized: expected }, "{finality:?}");
    }
}

#[tokio::test]
async fn finalized_falls_back_to_depth_only_without_tag_support() {
    // Some sources respond to an unknown tag with an error.
    let (node, reader) = scene(Chain::default(), |config| config).await;
    assert_eq!(reader.heights().await.unwrap().finalized, 80);
    node.state().chain.finalized = None;
    assert!(
        unavailable(reader.heights().await).contains("no finalized block yet"),
        "the source supports the tag, but lost the block"
    );

    let (node, reader) = scene(Chain { finalized: None, ..Chain::default() }, |config| config).await;
    node.state().chain.tag_error = Some((-32_602, "invalid block tag"));
    assert_eq!(reader.heights().await.unwrap().finalized, 37);
}

#[tokio::test]
async fn one_liar_cannot_lower_the_confirmations() {
    let nodes = [
        Node::start(Chain { newest: 1_000, ..Chain::default() }).await,
        Node::start(Chain { newest: 1_000, ..Chain::default() }).await,
        Node::start(Chain { newest: 1_000, ..Chain::default() }).await,
    ];
    for (node, seconds) in nodes.iter().zip([60_u64, 1, 1]) {
        node.change("eth_getBlockByNumber", move |result| {
            let number = u64::from_str_radix(&result["number"].as_str().unwrap()[2..], 16).unwrap();
            result["timestamp"] = Value::from(format!("{:#x}", number * seconds));
        });
    }
    let urls: Vec<_> = nodes.iter().map(Node::url).collect();
    let reader = reader(&ChainConfig { confirmations: None, agree: 2, ..config(&urls) });
    assert_eq!(reader.heights().await.unwrap().confirmed, 971);
}

#[tokio::test]
async fn block_hashes_are_those_that_enough_sources_give() {
    let forked = Chain { forks: [(50, 1)].into(), ..Chain::default() };
    let (_nodes, reader) = among(2, [Chain::default(), forked, Chain { newest: 60, ..Chain::default() }]).await;
    let honest = |number| Some(block_hash(number, 0));
    let numbers: Vec<u64> = (40..70).chain([7]).collect();
    let hashes = reader.block_hashes(&numbers).await.unwrap();
    let expected: Vec<_> = numbers.iter().map(|number| honest(*number)).collect();
    assert_eq!(hashes, expected, "two of three agree at each height");

    let forked = Chain { forks: [(50, 1)].into(), ..Chain::default() };
    let (_nodes, reader) = among(2, [Chain::default(), forked]).await;
    let hashes = reader.block_hashes(&[49, 50, 101]).await.unwrap();
    assert_eq!(hashes, [honest(49), None, None], "they disagree, or there is no such block");

    let (nodes, reader) = among(2, [Chain::default(), Chain::default()]).await;
    nodes[0].always(Fault::Status(503, None));
    assert!(matches!(reader.block_hashes(&[1]).await, Err(ChainError::Unavailable(_))));
    assert_eq!(reader.block_hashes(&[]).await, Ok(Vec::new()));
}
