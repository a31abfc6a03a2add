//! Sources that fail, temporarily or permanently.

use std::time::Duration;

use metering_core::chains::{ChainReader, TransactionStatus};
use metering_evm::ChainConfig;
use serde_json::json;
use tokio::net::TcpListener;

use crate::node::{Chain, Fault, Node, Tx};
use crate::scene::{SHORT, alone, among, config, reader, status, timed, unavailable, unreadable};

/// Short in tests that wait for it.
fn timeout_for(fault: &Fault) -> Duration {
    if matches!(fault, Fault::Hangs | Fault::Stalls) { SHORT } else { config(&[]).request_timeout }
}

#[tokio::test]
async fn transient_errors_are_retried() {
    let troubles = [
        Fault::Status(500, None),
        Fault::Status(503, None),
        Fault::Status(429, None),
        Fault::Status(429, Some("0")),
        Fault::StatusWith(429, json!({ "error": { "code": -32_000, "message": "slow down" } })),
        Fault::Refuses(-32_005, "limit exceeded"),
        Fault::Errs(-32_603, "Internal error"),
        Fault::Errs(-32_000, "header not found"),
        Fault::Body("<html>gateway</html>"),
        Fault::Body(""),
        Fault::Body("[{\"id\":0"),
        Fault::Hangs,
        Fault::Stalls,
        Fault::Short,
        Fault::Twice,
        Fault::OtherIds,
        Fault::Unbatched,
    ];
    let scenes = troubles.map(|trouble| async move {
        let node = Node::start(Chain::default().with_pending(Tx::new(1))).await;
        node.fail([trouble.clone(), trouble.clone()]);
        let reader =
            reader(&ChainConfig { attempts: 3, request_timeout: timeout_for(&trouble), ..config(&[node.url()]) });
        assert_eq!(
            status(&reader).await,
            Ok(TransactionStatus::Pending { required: 12, transaction: None }),
            "{trouble:?}"
        );
        assert_eq!(node.requests(), 3, "{trouble:?}");
    });
    futures_util::future::join_all(scenes).await;
}

#[tokio::test]
async fn persistent_errors_end_after_the_last_attempt() {
    // fault, how many requests are made, fragment of the error: three attempts, and one without a batch
    let table = [
        (Fault::Status(500, None), 4, "HTTP status 500"),
        (Fault::Hangs, 3, "timed out"),
        (Fault::Stalls, 3, "timed out"),
        (Fault::Body("nonsense"), 4, "malformed response to the batch"),
        (Fault::Body("[]"), 4, "a response is missing"),
        (Fault::Short, 4, "a response is missing"),
        (Fault::Twice, 4, "two responses with the same id"),
        (Fault::OtherIds, 4, "an id that was not requested"),
        (Fault::Refuses(-32_005, "limit exceeded"), 4, "error -32005: limit exceeded"),
        // Permanent failures are not retried.
        (Fault::Status(401, None), 1, "HTTP status 401"),
        (Fault::Status(301, None), 1, "HTTP status 301"),
        (Fault::Status(429, Some("3600")), 1, "HTTP status 429"),
        (Fault::StatusWith(400, json!({ "error": { "code": 7, "message": "no" } })), 2, "error 7: no"),
        (Fault::Errs(-32_601, "no such method"), 1, "error -32601: no such method"),
    ];
    let scenes = table.map(|(fault, attempts, problem)| async move {
        let node = Node::start(Chain::default().with_pending(Tx::new(1))).await;
        node.always(fault.clone());
        let reader =
            reader(&ChainConfig { attempts: 3, request_timeout: timeout_for(&fault), ..config(&[node.url()]) });
        let why = unavailable(status(&reader).await);
        assert!(why.contains(problem) && why.contains(&node.host()), "{fault:?}: {why}");
        assert_eq!(node.requests(), attempts, "{fault:?}");
    });
    futures_util::future::join_all(scenes).await;
}

#[tokio::test]
async fn too_large_transaction_is_distinguished_from_failing_source() {
    for announced in [true, false] {
        let node = Node::start(Chain::default().with_pending(Tx::new(1))).await;
        node.always(Fault::Huge { announced });
        let reader = reader(&ChainConfig { attempts: 3, ..config(&[node.url()]) });
        let why = unreadable(status(&reader).await);
        assert!(why.contains("larger than 16777216 bytes") && why.contains(&node.host()), "{why}");
        assert_eq!(node.requests(), 1);
    }
    // If a second source might be able to read it, the error is "unavailable".
    let (nodes, reader) = among(1, [Chain::default(), Chain::default()]).await;
    nodes[0].always(Fault::Huge { announced: true });
    nodes[1].always(Fault::Status(503, None));
    assert!(unavailable(status(&reader).await).starts_with("0 of the 1"));
    let (nodes, reader) = among(2, [Chain::default(), Chain::default()]).await;
    nodes[0].always(Fault::Huge { announced: true });
    nodes[1].always(Fault::Status(503, None));
    assert!(unreadable(status(&reader).await).contains("larger than"), "one source alone would not be enough");
}

#[tokio::test]
async fn retry_after_of_a_source_is_respected() {
    let node = Node::start(Chain::default()).await;
    node.fail([Fault::Status(429, Some("1"))]);
    let reader = reader(&ChainConfig { attempts: 2, ..config(&[node.url()]) });
    let (took, result) = timed(status(&reader)).await;
    assert_eq!(result, Ok(TransactionStatus::Unknown));
    assert!(took >= Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn unreachable_source_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let reader = reader(&config(&[url]));
    let why = unavailable(status(&reader).await);
    assert!(why.contains("0 of the 1 required sources responded") && why.contains("refused"), "{why}");
    assert_eq!(unavailable(reader.check().await), why);
}

#[tokio::test]
async fn a_check_asks_for_the_chain_and_nothing_else() {
    let (node, reader) = alone(Chain::default()).await;
    assert_eq!(reader.check().await, Ok(()));
    assert_eq!(node.state().requests, [["eth_chainId"]]);
    assert_eq!(reader.chain_id(), 1);
    node.always(Fault::Status(500, None));
    assert!(unavailable(reader.heights().await).contains("HTTP status 500"));
}
