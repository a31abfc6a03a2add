//! Several sources: which of them are believed, and which are waited for.

use std::time::Duration;

use metering_core::chains::{ChainError, ChainReader, TransactionStatus};
use metering_evm::ChainConfig;

use crate::node::{Chain, Fault, Node, Tx, address};
use crate::scene::{SHORT, among, config, evidence, reader, status, timed, unavailable};

/// A chain with the transaction in its block 85: deep enough.
fn settled() -> Chain {
    Chain::default().with(85, Tx::new(1))
}

#[tokio::test]
async fn equal_evidence_has_the_depth_of_enough_sources() {
    let (_nodes, reader) = among(2, [settled(), Chain { newest: 97, ..settled() }]).await;
    let evidence = evidence(&reader).await;
    assert_eq!((evidence.block.number, evidence.depth.confirmations), (85, 13));
}

#[tokio::test]
async fn contradicting_sources_are_named() {
    let other = Chain { forks: [(85, 1)].into(), ..settled() };
    let richer = Chain::default().with(85, Tx::new(1).moving(address(1), address(2), "0x1"));
    for chain in [other, richer] {
        let (nodes, reader) = among(2, [settled(), chain]).await;
        let Err(ChainError::Disagreement(why)) = status(&reader).await else { panic!("they contradict each other") };
        assert!(nodes.iter().all(|node| why.contains(&node.host())), "{why}");
        assert!(why.contains("succeeded in block 85"), "{why}");
    }
}

#[tokio::test]
async fn a_majority_outvotes_a_liar() {
    let lie = Chain::default().with(85, Tx::new(1).moving(address(1), address(2), "0x1"));
    let (nodes, reader) = among(2, [lie, settled(), settled()]).await;
    // The liar responds first.
    nodes[1].always(Fault::Late(Duration::from_millis(50)));
    nodes[2].always(Fault::Late(Duration::from_millis(50)));
    assert_eq!(evidence(&reader).await.transfers, []);
}

#[tokio::test]
async fn lagging_source_is_distinguished_from_contradicting_one() {
    // For one source it is mined, for another it is pending: pending.
    let (_nodes, reader) = among(2, [settled(), Chain::default().with_pending(Tx::new(1))]).await;
    assert_eq!(status(&reader).await, Ok(TransactionStatus::Pending { required: 12, transaction: None }));
    // One source has it, another does not know it: disagreement.
    let (_nodes, reader) = among(2, [settled(), Chain::default()]).await;
    assert!(matches!(status(&reader).await, Err(ChainError::Disagreement(_))));
    // One source has it, two do not know it: unknown.
    let (_nodes, reader) = among(2, [settled(), Chain::default(), Chain::default()]).await;
    assert_eq!(status(&reader).await, Ok(TransactionStatus::Unknown));
}

#[tokio::test]
async fn stopped_source_does_not_decide_for_the_chain() {
    let stopped = Chain { newest: 50, safe: None, finalized: None, ..Chain::default() };
    let (nodes, reader) = among(1, [stopped, settled()]).await;
    nodes[1].always(Fault::Late(Duration::from_millis(100)));
    assert_eq!(evidence(&reader).await.block.number, 85);
    assert_eq!(reader.heights().await.unwrap().confirmed, 89);
}

#[tokio::test]
async fn slow_sources_are_not_awaited_once_enough_agree() {
    let (nodes, reader) = among(2, [settled(), settled(), settled()]).await;
    nodes[0].always(Fault::Hangs);
    let (took, found) = timed(evidence(&reader)).await;
    assert!(took < Duration::from_secs(10) && found.depth.is_enough(), "{took:?}");
    let (took, decimals) = timed(reader.token_decimals(address(1))).await;
    assert!(took < Duration::from_secs(10) && decimals == Ok(None), "{took:?}");
}

#[tokio::test]
async fn too_few_responses_are_unavailable_with_every_reason() {
    let (nodes, reader) = among(2, [settled(), settled(), Chain { id: 5, ..settled() }]).await;
    nodes[0].always(Fault::Status(503, None));
    let why = unavailable(status(&reader).await);
    assert!(why.starts_with("1 of the 2 required sources responded"), "{why}");
    assert!(why.contains(&format!("{}: HTTP status 503", nodes[0].host())), "{why}");
    assert!(why.contains(&format!("{}: it serves chain 5", nodes[2].host())), "{why}");
    assert!(unavailable(reader.heights().await).contains("HTTP status 503"));
    assert!(unavailable(reader.has_code(address(1)).await).contains("HTTP status 503"));
}

#[tokio::test]
async fn one_wrong_chain_source_is_outvoted_but_fails_the_check() {
    let (_nodes, reader) = among(1, [Chain { id: 5, ..settled() }, settled()]).await;
    assert_eq!(evidence(&reader).await.block.number, 85);
    assert_eq!(reader.check().await, Err(ChainError::WrongChain { expected: 1, found: 5 }));
    // If two are required, one is missing.
    let (_nodes, reader) = among(2, [Chain { id: 5, ..settled() }, settled()]).await;
    assert!(unavailable(status(&reader).await).contains("it serves chain 5"));
    // If all of them serve another chain, the error is not "unavailable" but "wrong chain".
    let (_nodes, reader) = among(1, [Chain { id: 5, ..settled() }, Chain { id: 5, ..settled() }]).await;
    assert_eq!(status(&reader).await, Err(ChainError::WrongChain { expected: 1, found: 5 }));
}

#[tokio::test]
async fn check_tolerates_as_many_failures_as_agreement() {
    let (nodes, _) = among(2, [settled(), settled(), settled()]).await;
    let urls: Vec<_> = nodes.iter().map(Node::url).collect();
    let reader = reader(&ChainConfig { agree: 2, request_timeout: SHORT, ..config(&urls) });
    nodes[0].always(Fault::Hangs);
    assert_eq!(reader.check().await, Ok(()));
    nodes[1].always(Fault::Status(500, None));
    assert!(unavailable(reader.check().await).contains("timed out"));
}

#[tokio::test]
async fn the_confirmed_block_is_one_that_enough_sources_have() {
    let chains = [100, 97, 60].map(|newest| Chain { newest, ..Chain::default() });
    for (agree, confirmed) in [(1, 89), (2, 86), (3, 49)] {
        let (_nodes, reader) = among(agree, chains.clone()).await;
        assert_eq!(reader.heights().await.unwrap().confirmed, confirmed, "{agree}");
    }
}

#[tokio::test]
async fn contract_results_must_agree() {
    let token = address(0x20);
    let with = |word: &str| Chain::default().with_contract(token, "0x313ce567", Ok(crate::node::word(word).into()));
    let (_nodes, reader) = among(2, [with("0x6"), with("0x12"), with("0x6")]).await;
    assert_eq!(reader.token_decimals(token).await, Ok(Some(6)));
    let (_nodes, reader) = among(2, [with("0x6"), with("0x12")]).await;
    assert!(matches!(reader.token_decimals(token).await, Err(ChainError::Disagreement(_))));
}
