//! Readers of scripted nodes.

use std::time::{Duration, Instant};

use metering_core::chains::{Address, ChainError, ChainReader, Evidence, TransactionStatus, TxHash};
use metering_evm::{ChainConfig, EvmReader};

use crate::node::{Chain, Node, Tx};

/// The request timeout in tests where a request must time out, but the next one must not.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

/// The section of chain 1, with these URLs and one attempt per request. The timeout is long, so that nothing times out
/// by accident.
pub(crate) fn config(urls: &[String]) -> ChainConfig {
    ChainConfig {
        chain_id: 1,
        name: None,
        rpc_urls: urls.iter().map(|url| url.parse().unwrap()).collect(),
        public_rpc_url: String::new(),
        explorer_url: None,
        recipient: crate::node::address(0x70),
        confirmations: Some("12".parse().unwrap()),
        finality: None,
        agree: 1,
        request_timeout: Duration::from_secs(20),
        attempts: 1,
        log_blocks_max: Vec::new(),
        watch: None,
        watch_from_block: None,
        not_before: None,
    }
}

pub(crate) fn reader(config: &ChainConfig) -> EvmReader {
    config.reader().unwrap().unwrap()
}

/// A node that serves `chain`, and a reader of this node alone.
pub(crate) async fn alone(chain: Chain) -> (Node, EvmReader) {
    let node = Node::start(chain).await;
    let reader = reader(&config(&[node.url()]));
    (node, reader)
}

/// Nodes that serve these chains, and a reader that requires `agree` of them to agree.
pub(crate) async fn among(agree: u32, chains: impl IntoIterator<Item = Chain>) -> (Vec<Node>, EvmReader) {
    let mut nodes = Vec::new();
    for chain in chains {
        nodes.push(Node::start(chain).await);
    }
    let urls: Vec<_> = nodes.iter().map(Node::url).collect();
    let reader = reader(&ChainConfig { agree, ..config(&urls) });
    (nodes, reader)
}

/// What the reader reports about the transaction `Tx::new(1)`; without the contents of a pending one.
pub(crate) async fn status(reader: &EvmReader) -> Result<TransactionStatus, ChainError> {
    Ok(match reader.transaction(&Tx::new(1).hash).await? {
        TransactionStatus::Pending { required, .. } => TransactionStatus::Pending { required, transaction: None },
        sighting => sighting,
    })
}

/// The evidence for the transaction `Tx::new(1)`.
pub(crate) async fn evidence(reader: &EvmReader) -> Evidence {
    match status(reader).await.unwrap() {
        TransactionStatus::Mined(evidence) => evidence,
        other => panic!("{other:?}"),
    }
}

/// The transactions that a search finds; every block must be searchable.
pub(crate) async fn found(
    reader: &EvmReader,
    recipient: Address,
    tokens: &[Address],
    from_block: u64,
    to_block: u64,
) -> Result<Vec<TxHash>, ChainError> {
    let found = reader.payments_to(recipient, tokens, from_block, to_block).await?;
    assert_eq!(found.unreadable_blocks, []);
    Ok(found.transactions.into_iter().map(|(_, hash)| hash).collect())
}

/// The reason of [`ChainError::Unreadable`]: the source works, but the subject cannot be read.
pub(crate) fn unreadable<T: std::fmt::Debug>(result: Result<T, ChainError>) -> String {
    match result.unwrap_err() {
        ChainError::Unreadable(why) => why,
        other => panic!("{other:?}"),
    }
}

/// The reason of [`ChainError::Unavailable`].
pub(crate) fn unavailable<T: std::fmt::Debug>(result: Result<T, ChainError>) -> String {
    match result.unwrap_err() {
        ChainError::Unavailable(why) => why,
        other => panic!("{other:?}"),
    }
}

/// How long some work took, and its result.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let started_at = Instant::now();
    let result = work.await;
    (started_at.elapsed(), result)
}
