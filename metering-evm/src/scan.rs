//! Searches a range of blocks for payments.
//!
//! Token payments are found by their logs, native payments in the blocks themselves. Sources differ in how much they
//! allow per request. A refused range, whatever the message, is halved until it fits, and then grows again slowly. A
//! single block that is too large is reported and skipped, unless the source refuses every single block.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::chains::{Address, TxHash};
use tokio::time::Instant;

use crate::block::{self, FullBlock, NativeTransaction};
use crate::call::Call;
use crate::capacity::Search;
use crate::encoding::{Amount, Height, Word};
use crate::failure::Failure;
use crate::log::Log;
use crate::results::BatchResults;
use crate::source::Source;

/// A transaction and its position in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FoundPayment {
    /// The block's number, and the transaction's index in it.
    position: (u64, u64),
    /// Its hash.
    pub(crate) hash: TxHash,
}

impl FoundPayment {
    /// The number of its block.
    pub(crate) const fn block(&self) -> u64 {
        self.position.0
    }
}

/// What one source found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scan {
    pub(crate) found: BTreeSet<FoundPayment>,
    /// Blocks that are too large to be searched, and why.
    pub(crate) unreadable: BTreeMap<u64, String>,
}

/// What to search for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchQuery<'a> {
    /// The recipient of the payments.
    pub(crate) recipient: Address,
    /// The tokens; the zero address means the native coin.
    pub(crate) tokens: &'a [Address],
    /// The first block.
    pub(crate) from_block: u64,
    /// The last block.
    pub(crate) to_block: u64,
}

/// A search method.
pub(crate) struct SearchMethod<C, R> {
    pub(crate) search: Search,
    /// Builds the calls for a range of blocks, both ends included.
    pub(crate) calls: C,
    /// Reads the transactions from the responses.
    pub(crate) read: R,
}

/// All transactions of `wanted` that `source` knows.
pub(crate) async fn payments(source: &Source, query: SearchQuery<'_>) -> Result<Scan, Failure> {
    let contracts: Vec<_> = query.tokens.iter().copied().filter(|token| *token != Address::ZERO).collect();
    let range = (query.from_block, query.to_block);
    let mut scan = Scan::default();
    if !contracts.is_empty() {
        let method = SearchMethod {
            search: Search::Logs,
            calls: |from, to| vec![Call::transfers_to(query.recipient, &contracts, from, to)],
            read: |results: &mut BatchResults<'_>, from, to| {
                let logs: Vec<Log> = results.next()?;
                let found = logs.iter().map(|log| transfer(log, query.recipient, &contracts, (from, to)));
                found.filter_map(Result::transpose).collect()
            },
        };
        method.search(source, range, &mut scan).await?;
    }
    if contracts.len() < query.tokens.len() {
        let method = SearchMethod {
            search: Search::Blocks,
            calls: |from, to| (from..=to).map(|number| Call::block(number, true)).collect(),
            read: |results: &mut BatchResults<'_>, from, to| {
                let mut found = Vec::new();
                for number in from..=to {
                    let block: Option<FullBlock> = results.next()?;
                    let block = block.ok_or(Failure::Behind(number))?;
                    found.extend(coins(&block, query.recipient, number)?);
                }
                Ok(found)
            },
        };
        method.search(source, range, &mut scan).await?;
    }
    Ok(scan)
}

impl<C, R> SearchMethod<C, R>
where
    C: Fn(u64, u64) -> Vec<Call>,
    R: Fn(&mut BatchResults<'_>, u64, u64) -> Result<Vec<FoundPayment>, Failure>,
{
    /// Adds what the source finds in a range of blocks, both ends included.
    pub(crate) async fn search(
        &self,
        source: &Source,
        (first, last): (u64, u64),
        scan: &mut Scan,
    ) -> Result<(), Failure> {
        let (capacity, search) = (source.capacity(), self.search);
        let mut next = Some(first);
        while let Some(from) = next.filter(|from| *from <= last) {
            let to = from.saturating_add(capacity.size(search) - 1).min(last);
            let blocks = (to - from).saturating_add(1);
            match self.search_range(source, from, to).await {
                Ok(some) => {
                    capacity.took(search, blocks, Instant::now());
                    scan.found.extend(some);
                    next = to.checked_add(1);
                }
                Err(failure) if blocks > 1 && failure.may_be_of_the_range() => {
                    capacity.refused(search, blocks, Instant::now());
                }
                Err(failure) if blocks == 1 && self.is_about_its_block(source, &failure).await => {
                    capacity.refused_one(search);
                    scan.unreadable.insert(from, source.problem(&failure));
                    next = from.checked_add(1);
                }
                Err(failure) => {
                    // Perhaps it took too long. The next search begins with fewer blocks.
                    if failure.is_transient() && !failure.is_unreached() {
                        capacity.failed(search, blocks);
                    }
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    async fn search_range(&self, source: &Source, from: u64, to: u64) -> Result<Vec<FoundPayment>, Failure> {
        let mut calls = vec![Call::block_number()];
        calls.extend((self.calls)(from, to));
        let result = source.send_batch(&calls, |results| {
            // A source that lags behind would silently omit what it does not know yet.
            let Height(newest) = results.next()?;
            if newest < to {
                return Err(Failure::Behind(to));
            }
            (self.read)(results, from, to)
        });
        result.await
    }

    /// Whether a source refuses a single block because of its contents. Tested with the first block of the chain,
    /// which is nearly empty: if even that is refused, the problem is the source and not the block.
    async fn is_about_its_block(&self, source: &Source, failure: &Failure) -> bool {
        if failure.is_transient() || !failure.may_be_of_the_range() {
            return false;
        }
        match self.search_range(source, 0, 0).await {
            Ok(_) => true,
            // A node may have deleted old blocks.
            Err(other) => failure.is_too_large() && !other.is_too_large(),
        }
    }
}

/// The transaction of a requested log, if it reports a transfer to `recipient`.
fn transfer(
    log: &Log,
    recipient: Address,
    contracts: &[Address],
    (from, to): (u64, u64),
) -> Result<Option<FoundPayment>, Failure> {
    let Some(transfer) = log.transfer().filter(|transfer| transfer.to == recipient) else { return Ok(None) };
    if !contracts.contains(&transfer.token) {
        return Err(Failure::malformed("eth_getLogs", "a log of a contract that was not requested"));
    }
    found(log, (from, to)).map(Some)
}

/// The transaction of a log in a range of blocks.
pub(crate) fn found(log: &Log, (from, to): (u64, u64)) -> Result<FoundPayment, Failure> {
    let malformed = |problem| Failure::malformed("eth_getLogs", problem);
    let (Some(Word(hash)), Some(Height(number))) = (log.transaction_hash, log.block_number) else {
        return Err(malformed("a log without its position"));
    };
    // If the source sends no index, the transactions of a block are ordered by hash.
    let Height(index) = log.transaction_index.unwrap_or(Height(0));
    if !(from..=to).contains(&number) {
        return Err(malformed("a log of a block that was not requested"));
    }
    Ok(FoundPayment { position: (number, index), hash: TxHash::from_bytes(hash) })
}

/// The transactions in a block that sent the native coin to `recipient`.
fn coins(block: &FullBlock, recipient: Address, number: u64) -> Result<Vec<FoundPayment>, Failure> {
    if block.number.0 != number {
        return Err(Failure::malformed(block::METHOD, "a block other than the requested one"));
    }
    let found = block.transactions.iter().enumerate().filter_map(|(index, transaction)| {
        let NativeTransaction { hash: Word(hash), to, value: Amount(value) } = transaction.as_ref()?;
        let position = (number, u64::try_from(index).unwrap_or(u64::MAX));
        let pays = to.0 == recipient && value.iter().any(|byte| *byte != 0);
        pays.then(|| FoundPayment { position, hash: TxHash::from_bytes(*hash) })
    });
    Ok(found.collect())
}
