//! Readers of scripted nodes.

use std::time::{Duration, Instant};

use metering_core::{Address, ChainError, ChainReader, Evidence, Sighting, TxHash};
use metering_evm::{ChainConfig, EvmReader};

use crate::node::{Chain, Node, Tx};

/// How long a request may take where one is to time out.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// The section of chain 1, read at these URLs, every request once. Patient, so that nothing times out by itself.
pub(crate) fn config(urls: &[String]) -> ChainConfig {
    ChainConfig {
        chain_id: 1,
        name: None,
        rpc_urls: urls.iter().map(|url| url.parse().unwrap()).collect(),
        public_rpc_url: String::new(),
        recipient: crate::node::address(0x70),
        confirmations: Some("12".parse().unwrap()),
        finality: None,
        agree: 1,
        request_timeout: Duration::from_secs(20),
        attempts: 1,
        watch: None,
        watch_from_block: None,
        not_before: None,
    }
}

pub(crate) fn reader(config: &ChainConfig) -> EvmReader {
    config.reader().unwrap().unwrap()
}

/// A node of `chain`, and a reader of it alone.
pub(crate) async fn alone(chain: Chain) -> (Node, EvmReader) {
    let node = Node::start(chain).await;
    let reader = reader(&config(&[node.url()]));
    (node, reader)
}

/// Nodes of these chains, and a reader that wants `agree` of them to agree.
pub(crate) async fn among(agree: u32, chains: impl IntoIterator<Item = Chain>) -> (Vec<Node>, EvmReader) {
    let mut nodes = Vec::new();
    for chain in chains {
        nodes.push(Node::start(chain).await);
    }
    let urls: Vec<_> = nodes.iter().map(Node::url).collect();
    let reader = reader(&ChainConfig { agree, ..config(&urls) });
    (nodes, reader)
}

/// What the reader says of the transaction made of byte 1; of one that waits for a block, without what it will do.
pub(crate) async fn sight(reader: &EvmReader) -> Result<Sighting, ChainError> {
    Ok(match reader.transaction(&Tx::new(1).hash).await? {
        Sighting::Pending { required, .. } => Sighting::Pending { required, transaction: None },
        sighting => sighting,
    })
}

/// The evidence for the transaction made of byte 1.
pub(crate) async fn evidence(reader: &EvmReader) -> Evidence {
    match sight(reader).await.unwrap() {
        Sighting::Mined(evidence) => evidence,
        other => panic!("{other:?}"),
    }
}

/// The transactions that a search finds, where every block could be searched.
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

/// Why what was asked for cannot be read, by a source that works.
pub(crate) fn unreadable<T: std::fmt::Debug>(result: Result<T, ChainError>) -> String {
    match result.unwrap_err() {
        ChainError::Unreadable(why) => why,
        other => panic!("{other:?}"),
    }
}

/// Why the source was of no use.
pub(crate) fn unavailable<T: std::fmt::Debug>(result: Result<T, ChainError>) -> String {
    match result.unwrap_err() {
        ChainError::Unavailable(why) => why,
        other => panic!("{other:?}"),
    }
}

/// How long something took, and what came of it.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let begun = Instant::now();
    let result = work.await;
    (begun.elapsed(), result)
}
