//! When a block counts as confirmed.

use metering_core::chains::{ChainReader, Depth, TransactionStatus};
use metering_evm::{ChainConfig, EvmReader};
use serde_json::Value;

use crate::node::{Chain, Node, Tx};
use crate::scene::{config, evidence, reader, status, unavailable};

async fn scene(confirmations: &str, chain: Chain) -> (Node, EvmReader) {
    let node = Node::start(chain).await;
    let reader = reader(&ChainConfig { confirmations: Some(confirmations.parse().unwrap()), ..config(&[node.url()]) });
    (node, reader)
}

#[tokio::test]
async fn block_is_confirmed_by_depth_or_tag() {
    // finality, block, confirmations, required, enough
    let table = [
        ("1", 100, 1, 1, true),
        ("12", 90, 11, 12, false),
        ("12", 89, 12, 12, true),
        ("safe", 91, 10, 11, false),
        ("safe", 90, 11, 11, true),
        ("finalized", 81, 20, 21, false),
        ("finalized", 80, 21, 21, true),
        ("finalized", 3, 98, 21, true),
    ];
    for (finality, block, confirmations, required, enough) in table {
        let (node, reader) = scene(finality, Chain::default().with(block, Tx::new(1))).await;
        let depth = evidence(&reader).await.depth;
        assert_eq!(depth, Depth { confirmations, required }, "{finality} {block}");
        assert_eq!(depth.is_enough(), enough);
        let tags = usize::from(finality.parse::<u32>().is_err());
        assert_eq!(node.state().requests[0].len(), 4 + tags, "one batch is enough");
    }
}

#[tokio::test]
async fn the_confirmed_block_is_the_newest_that_counts() {
    // finality, newest, settled
    let table =
        [("1", 100, 100), ("12", 100, 89), ("12", 11, 0), ("12", 5, 0), ("safe", 100, 90), ("finalized", 100, 80)];
    for (finality, newest, settled) in table {
        let (_node, reader) = scene(finality, Chain { newest, ..Chain::default() }).await;
        assert_eq!(reader.heights().await.unwrap().confirmed, settled, "{finality} at {newest}");
    }
}

#[tokio::test]
async fn pending_payment_reports_required_confirmations() {
    for (finality, expected) in [("7", 7), ("safe", 11), ("finalized", 21)] {
        let (_node, reader) = scene(finality, Chain::default().with_pending(Tx::new(1))).await;
        assert_eq!(
            status(&reader).await,
            Ok(TransactionStatus::Pending { required: expected, transaction: None }),
            "{finality}"
        );
    }
}

#[tokio::test]
async fn newest_block_is_at_least_the_transactions_block() {
    for (finality, required) in [("12", 12), ("safe", 6)] {
        let (node, reader) = scene(finality, Chain::default().with(95, Tx::new(1))).await;
        node.set("eth_blockNumber", Value::from("0x50"));
        assert_eq!(evidence(&reader).await.depth, Depth { confirmations: 1, required }, "{finality}");
    }
}

#[tokio::test]
async fn chain_without_finalized_block_is_unavailable() {
    let chain = Chain { finalized: None, ..Chain::default() }.with(95, Tx::new(1));
    let (_node, reader) = scene("finalized", chain).await;
    assert!(unavailable(status(&reader).await).contains("no finalized block yet"));
    assert!(unavailable(reader.heights().await).contains("no finalized block yet"));
}
