//! The reader: sends each query to all sources, and returns what they agree on.

pub(crate) mod limits;
mod token;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use metering_core::chains::{
    AccountCode, Address, BlockHash, ChainError, ChainReader, Heights, PaymentsFound, SourceStatus, TransactionStatus,
    TxHash,
};
use tokio::time::Instant;

use crate::agreement::{self, Describe};
use crate::block_time::{self, MeasuredConfirmations};
use crate::config::{ChainConfig, ChainConfigError};
use crate::failure::Failure;
use crate::finality::Finality;
use crate::poll::{Poll, PollState, SourceResponse};
use crate::scan::{FoundPayment, Scan, SearchQuery};
use crate::source::Source;
use crate::{contract, heights, lookup, scan};

/// Maximum number of block hashes per batch.
const HASHES_MAX: usize = 20;

/// Reads an EVM chain over the JSON-RPC of its nodes (EIP-1474), from one or several sources.
///
/// Every batch also asks for the chain's id (EIP-155). A source that serves another chain counts as failed, whatever
/// else it returns.
///
/// Its error messages name sources by their host, which is meant for operators, not for clients.
///
/// Not run here, because it needs a node:
///
/// ```no_run
/// use metering_core::chains::ChainReader;
/// use metering_evm::ChainConfig;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config: ChainConfig = toml::from_str(
///     r#"
///     chain_id = 8453
///     rpc_urls = ["http://127.0.0.1:8545"]
///     recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
///     "#,
/// )?;
/// let reader = config.reader()?.ok_or("no RPC source is configured")?;
/// reader.check().await?;
/// println!("block {} of chain {}", reader.heights().await?.newest, reader.chain_id());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EvmReader {
    chain_id: u64,
    /// When a payment is credited, if configured.
    confirmations: Option<Finality>,
    /// When a payment is final, if configured.
    finality: Option<Finality>,
    agree: usize,
    sources: Vec<Source>,
    measured: MeasuredConfirmations,
}

impl ChainConfig {
    /// A reader of the chain; `None` without `rpc_urls`. Does not connect yet: see [`EvmReader::check`].
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::sync::Arc;
    ///
    /// use metering_core::chains::ChainReader;
    /// use metering_core::service::PaymentSettings;
    /// use metering_core::{Catalogue, Service, ServiceConfig};
    /// use metering_evm::ChainConfig;
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let toml = r#"
    /// #     chain_id = 8453
    /// #     rpc_urls = ["https://one.example.com", "https://two.example.com"]
    /// #     recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    /// # "#;
    /// let config: ChainConfig = toml::from_str(toml)?;
    /// let reader: Arc<dyn ChainReader> = Arc::new(config.reader()?.ok_or("no RPC source is configured")?);
    /// let readers = BTreeMap::from([(config.chain_id, reader)]);
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let service_config = ServiceConfig { chains: vec![config.chain("base")], ..ServiceConfig::default() };
    /// let shop = Service::start(store.clone(), Catalogue::default(), service_config);
    /// let shop = shop.with_payments(store, readers, PaymentSettings::default());
    /// assert_eq!(shop.payments().plans().await?.primary_chain_id, Some(8453));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ChainConfig::validate`], or when the HTTP client cannot be set up.
    pub fn reader(&self) -> Result<Option<EvmReader>, ChainConfigError> {
        self.validate()?;
        if self.rpc_urls.is_empty() {
            return Ok(None);
        }
        EvmReader::new(self).map(Some)
    }
}

impl EvmReader {
    pub(crate) fn new(config: &ChainConfig) -> Result<Self, ChainConfigError> {
        let source = |(index, url)| {
            let source = Source::new(url, config.chain_id, config.attempts, config.request_timeout)?;
            Ok(match config.log_blocks_max(index) {
                Some(blocks) => source.with_log_blocks_max(blocks),
                None => source,
            })
        };
        let unusable =
            |cause: String| ChainConfigError::new("rpc_urls", format_args!("cannot set up an HTTP client: {cause}"));
        let sources = config.rpc_urls.iter().enumerate().map(|url| source(url).map_err(unusable));
        Ok(Self {
            chain_id: config.chain_id,
            confirmations: config.confirmations,
            finality: config.finality,
            agree: config.agree(),
            sources: sources.collect::<Result<_, _>>()?,
            measured: MeasuredConfirmations::default(),
        })
    }

    /// The id of the chain that it reads.
    #[must_use]
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Asks every source for its chain's id: a check at start, and for health checks.
    ///
    /// # Errors
    /// [`ChainError::WrongChain`] if any source serves another chain, which must be a configuration error;
    /// [`ChainError::Unavailable`] if too few respond.
    pub async fn check(&self) -> Result<(), ChainError> {
        let query = |source| Source::send_batch(source, &[], |_| Ok(()));
        let poll = Poll::take(&self.sources, query, |_| PollState::Open).await;
        match poll.wrong_chain(self.chain_id).or_else(|| poll.too_few_responses(self.agree, self.chain_id)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The timestamp of the newest block, in seconds since 1970: the latest that any source gives.
    ///
    /// # Errors
    /// When too few sources respond.
    pub async fn newest_block_time(&self) -> Result<u64, ChainError> {
        let poll = Poll::take(&self.sources, block_time::newest_seconds, |_| PollState::Open).await;
        let newest = poll.responses.iter().map(|response| response.value).max();
        newest.ok_or_else(|| self.too_few(&poll))
    }

    /// The response that `agree` sources give, as soon as they have given it.
    async fn common<'s, T, A, F>(&'s self, query: A) -> Result<T, ChainError>
    where
        T: Clone + PartialEq + Describe,
        A: Fn(&'s Source) -> F,
        F: Future<Output = Result<T, Failure>>,
    {
        let state = |responses: &[SourceResponse<T>]| match agreement::common(self.agree, responses) {
            Some(_) => PollState::Final,
            None => PollState::Open,
        };
        let poll = Poll::take(&self.sources, query, state).await;
        if let Some(error) = poll.too_few_responses(self.agree, self.chain_id) {
            return Err(error);
        }
        agreement::common(self.agree, &poll.responses).ok_or_else(|| agreement::disagreement(&poll.responses))
    }

    /// When a payment is credited: as configured, or by the measured block time, but never later than its configured
    /// finality.
    async fn credited_at(&self) -> Result<Finality, ChainError> {
        if let Some(configured) = self.confirmations {
            return Ok(configured);
        }
        let measured = self.measured.get(Instant::now(), || self.measure()).await?;
        Ok(match self.finality {
            Some(Finality::Confirmations(last)) => Finality::Confirmations(measured.min(last)),
            _ => Finality::Confirmations(measured),
        })
    }

    async fn measure(&self) -> Result<block_time::BlockTime, ChainError> {
        let poll = Poll::take(&self.sources, block_time::measure, |responses| {
            self.enough_of(responses, PollState::Sufficient)
        })
        .await;
        agreement::confirmations(self.agree, &poll.responses).ok_or_else(|| self.too_few(&poll))
    }

    fn too_few<T>(&self, poll: &Poll<T>) -> ChainError {
        let too_few = || ChainError::Unavailable("too few sources responded".to_owned());
        poll.too_few_responses(self.agree, self.chain_id).unwrap_or_else(too_few)
    }

    /// All transactions that any source found, without duplicates, and the blocks that fewer than `agree` sources could
    /// search.
    fn merged(&self, responses: Vec<SourceResponse<Scan>>) -> PaymentsFound {
        let sources = responses.len();
        let (mut found, mut unsearched) = (BTreeSet::new(), BTreeMap::new());
        for SourceResponse { value: Scan { found: some, unreadable }, .. } in responses {
            found.extend(some);
            for (block, why) in unreadable {
                unsearched.entry(block).or_insert_with(Vec::new).push(why);
            }
        }
        let unreadable = unsearched.into_iter().filter(|(_, why)| sources - why.len() < self.agree);
        let mut seen = HashSet::new();
        PaymentsFound {
            transactions: found
                .into_iter()
                .filter(|found: &FoundPayment| seen.insert(found.hash))
                .map(|found| (found.block(), found.hash))
                .collect(),
            unreadable_blocks: unreadable.map(|(block, why)| (block, why.join("; "))).collect(),
        }
    }

    fn enough_of<T>(&self, responses: &[SourceResponse<T>], enough: PollState) -> PollState {
        if responses.len() >= self.agree { enough } else { PollState::Open }
    }
}

#[async_trait]
impl ChainReader for EvmReader {
    async fn transaction(&self, hash: &TxHash) -> Result<TransactionStatus, ChainError> {
        let credited_at = self.credited_at().await?;
        let query = |source| lookup::transaction_status(source, credited_at, hash);
        let poll = Poll::take(&self.sources, query, |responses| agreement::state(self.agree, responses)).await;
        agreement::agreed_status(self.agree, &poll.responses)
            .unwrap_or_else(|| Err(poll.unreadable(self.agree).unwrap_or_else(|| self.too_few(&poll))))
    }

    fn confirmations(&self) -> Option<u32> {
        match (self.confirmations, self.finality) {
            (Some(configured), _) => Some(configured.confirmations_hint()),
            (None, Some(Finality::Confirmations(last))) => {
                self.measured.last().map(|measured| measured.min(last).get())
            }
            (None, _) => self.measured.last().map(NonZeroU32::get),
        }
    }

    /// Heights that at least `agree` sources have reached.
    async fn heights(&self) -> Result<Heights, ChainError> {
        let credited_at = self.credited_at().await?;
        let query = |source| heights::heights(source, credited_at, self.finality);
        let poll = Poll::take(&self.sources, query, |responses| self.enough_of(responses, PollState::Sufficient)).await;
        agreement::heights(self.agree, &poll.responses).ok_or_else(|| self.too_few(&poll))
    }

    async fn block_hashes(&self, numbers: &[u64]) -> Result<Vec<Option<BlockHash>>, ChainError> {
        let mut hashes = Vec::with_capacity(numbers.len());
        for some in numbers.chunks(HASHES_MAX) {
            let some: Arc<[u64]> = some.into();
            let query = |source| heights::block_hashes(source, Arc::clone(&some));
            let agreed = |responses: &[SourceResponse<Vec<Option<BlockHash>>>]| {
                agreement::hashes(self.agree, some.len(), responses)
            };
            let state = |responses: &[SourceResponse<_>]| {
                let all_agreed = agreed(responses).iter().all(Option::is_some);
                if all_agreed { PollState::Final } else { self.enough_of(responses, PollState::Sufficient) }
            };
            let poll = Poll::take(&self.sources, query, state).await;
            if let Some(error) = poll.too_few_responses(self.agree, self.chain_id) {
                return Err(error);
            }
            hashes.extend(agreed(&poll.responses));
        }
        Ok(hashes)
    }

    /// All payments that any of `agree` sources knows. A single source may omit a payment or invent one: an omitted one
    /// may be known to another source, and an invented one is not found by [`ChainReader::transaction`].
    async fn payments_to(
        &self,
        recipient: Address,
        tokens: &[Address],
        from_block: u64,
        to_block: u64,
    ) -> Result<PaymentsFound, ChainError> {
        let search = SearchQuery { recipient, tokens, from_block, to_block };
        let query = |source| scan::payments(source, search);
        let state = |responses: &[SourceResponse<Scan>]| {
            let complete = responses.iter().all(|response| response.value.unreadable.is_empty());
            // Another source may be able to search a block that this one could not.
            self.enough_of(responses, if complete { PollState::Final } else { PollState::Sufficient })
        };
        let poll = Poll::take(&self.sources, query, state).await;
        if let Some(error) = poll.too_few_responses(self.agree, self.chain_id) {
            return Err(error);
        }
        Ok(self.merged(poll.responses))
    }

    async fn token_decimals(&self, token: Address) -> Result<Option<u8>, ChainError> {
        self.common(|source| contract::decimals(source, token)).await
    }

    async fn code(&self, address: Address) -> Result<AccountCode, ChainError> {
        self.common(|source| contract::code(source, address)).await
    }

    async fn code_hash(&self, address: Address) -> Result<Option<[u8; 32]>, ChainError> {
        self.common(|source| contract::code_hash(source, address)).await
    }

    async fn accepts_signature(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) -> Result<bool, ChainError> {
        self.common(|source| contract::accepts(source, wallet, digest, signature)).await
    }

    fn sources(&self) -> Vec<SourceStatus> {
        let status = |source: &Source| {
            let (problem, newest_block) = source.health().known();
            SourceStatus { problem, newest_block }
        };
        self.sources.iter().map(status).collect()
    }
}
