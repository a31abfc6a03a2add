//! Finds out the request limits of the sources, for operators' checks.

use metering_core::chains::{Address, ChainError, ChainReader};
use tokio::time::Instant;

use super::EvmReader;

/// How many blocks to request in one batch: as many as the reader usually requests.
const BATCH: u64 = 20;

/// The request limits of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLimits {
    /// The source's host.
    pub host: String,
    /// The maximum number of calls per batch, if it refused a batch of the reader's usual size.
    pub batch_calls: Option<usize>,
    /// The maximum number of blocks per search for logs, if it refused the configured number.
    pub log_blocks: Option<u64>,
}

impl EvmReader {
    /// Sends a batch and a search for logs as large as any that the reader sends, and returns what each source
    /// accepted. The search is for transfers of these tokens to `recipient` in the newest blocks.
    ///
    /// # Errors
    /// When too few sources can be read, even with single calls and single blocks.
    pub async fn try_limits(&self, recipient: Address, tokens: &[Address]) -> Result<Vec<SourceLimits>, ChainError> {
        let newest = self.heights().await?.newest;
        let back = |blocks: u64| newest.saturating_sub(blocks - 1);
        let numbers: Vec<u64> = (back(BATCH)..=newest).collect();
        self.block_hashes(&numbers).await?;
        let blocks = self.sources.iter().map(|source| source.capacity().log_blocks().1).max().unwrap_or(1);
        self.payments_to(recipient, tokens, back(blocks), newest).await?;
        let now = Instant::now();
        let limits = self.sources.iter().map(|source| {
            let (log_blocks, wanted) = source.capacity().log_blocks();
            SourceLimits {
                host: source.host(),
                batch_calls: source.capacity().calls(now),
                log_blocks: (log_blocks < wanted).then_some(log_blocks),
            }
        });
        Ok(limits.collect())
    }
}
