//! Compares the payments on a chain with the store's records.

use std::num::NonZeroU64;

use metering_core::payments::{Arrival, PaymentRecord, Plan};
use metering_core::service::{Arrivals, arrivals, payment_targets};
use metering_core::store::{PaymentStore, StoreError};

use crate::payments::chain::ReadableChain;
use crate::payments::error::ScanError;
use crate::payments::status::PaymentStatus;
use crate::payments::unread::{self, Unread};

/// How many blocks are read in one request.
const CHUNK_BLOCKS: u64 = 2_000;
/// How many records are read at once.
const PAGE: u32 = 1_000;

/// Which blocks to scan, and what to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanRequest {
    /// The first block. By default [`ScanRequest::LOOK_BACK_BLOCKS`] before the last block that the server's watcher
    /// scanned, or before the newest confirmed block if no watcher has run.
    pub from_block: Option<u64>,
    /// The last block; by default the newest confirmed one.
    pub to_block: Option<u64>,
    /// The maximum number of blocks that this scan may read. [`Scan::next_block`] says where to continue.
    pub blocks_max: Option<NonZeroU64>,
    /// Whether to list payments that an account has too.
    pub with_used: bool,
}

impl ScanRequest {
    /// How far back a scan goes by default. Payments that the watcher passed over are before its mark.
    pub const LOOK_BACK_BLOCKS: u64 = 10_000;
}

/// The result of scanning a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The first block that was scanned.
    pub from_block: u64,
    /// The last block that was scanned.
    pub to_block: u64,
    /// The first block of the range that was not scanned, because [`ScanRequest::blocks_max`] ended the scan before.
    pub next_block: Option<u64>,
    /// The payments in chain order, followed by those that a reorganisation removed after they were credited.
    pub found: Vec<FoundPayment>,
    /// The transactions that could not be read.
    pub unread: Vec<Unread>,
}

/// A payment that a scan lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPayment {
    /// The payment, as the chain shows it.
    pub arrival: Arrival,
    /// Its status in the store.
    pub status: PaymentStatus,
}

/// Lists the payments that arrived on a chain, in blocks with as many confirmations as a payment needs.
///
/// The scan that reaches the end of its range also lists payments from any block whose credits are reversed. `progress`
/// is called before each chunk of blocks, with its first block and the last block of the scan.
///
/// With the chain of the example `sell_a_plan`:
///
/// ```
/// use metering_admin::payments::{ReadableChain, ScanRequest, scan};
/// use metering_core::PaymentStore;
/// use metering_sqlite::SqliteStore;
/// # mod in_memory {
/// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../metering-core/examples/sell_a_plan/in_memory.rs"));
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = SqliteStore::in_memory()?;
/// # let (reader, payer) = (in_memory::MemoryChain::default(), in_memory::Wallet::of(7));
/// # let listed = reader.listed();
/// # store.put_plans(vec![serde_json::from_str(
/// #     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
/// #         "token_amount": "5", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
/// #         "token_decimals": 6, "label": "Starter"}"#,
/// # )?]).await?;
/// reader.pay(payer.address(), listed.recipient, "4750000".parse()?);
/// let chain = ReadableChain { name: "base", chain: &listed, reader: &reader };
/// let plans = store.plans().await?;
/// let scan = scan(&store, &plans, chain, ScanRequest::default(), &mut |_, _| {}).await?;
/// assert_eq!(scan.found[0].status.as_str(), "unknown_payer");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the range is not valid, or the store or the chain cannot be read.
pub async fn scan(
    store: &dyn PaymentStore,
    plans: &[Plan],
    chain: ReadableChain<'_>,
    request: ScanRequest,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Scan, ScanError> {
    let unreadable = |error| ScanError::Chain { chain: chain.name.to_owned(), error };
    let (from_block, to_block, next_block) = range(store, chain, request).await?;
    let targets = payment_targets(store, chain.chain, plans).await?;
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let mut next = from_block;
    while next <= to_block {
        progress(next, to_block);
        let last = to_block.min(next.saturating_add(CHUNK_BLOCKS - 1));
        let arrived = arrivals(chain.reader, &targets, next, last).await;
        let Arrivals { read, unread: missed } = arrived.map_err(unreadable)?;
        unread.extend(missed.into_iter().map(|(location, error)| Unread::now(location, &error)));
        for arrival in read {
            let status = PaymentStatus::of(store, &arrival).await?;
            if request.with_used || !status.is_used() {
                found.push(FoundPayment { arrival, status });
            }
        }
        let Some(after) = last.checked_add(1) else { break };
        next = after;
    }
    if next_block.is_none() {
        let listed: Vec<_> = found.iter().map(|payment| payment.arrival.tx).collect();
        let gone = reversed(store, chain.id()).await?.into_iter();
        found.extend(gone.filter(|record| !listed.contains(&record.payment.tx)).filter_map(FoundPayment::recorded));
    }
    let unread = unread::known(store, chain.id(), from_block..=to_block, unread).await?;
    Ok(Scan { from_block, to_block, next_block, found, unread })
}

/// The first and the last block to scan, and the block to continue with.
async fn range(
    store: &dyn PaymentStore,
    chain: ReadableChain<'_>,
    request: ScanRequest,
) -> Result<(u64, u64, Option<u64>), ScanError> {
    let heights = chain.reader.heights().await;
    let confirmed = heights.map_err(|error| ScanError::Chain { chain: chain.name.to_owned(), error })?.confirmed;
    let to_block = request.to_block.unwrap_or(confirmed);
    if to_block > confirmed {
        return Err(ScanError::NotConfirmed { to_block, confirmed });
    }
    let from_block = match request.from_block {
        Some(from_block) => from_block,
        None => {
            let mark = store.scan_mark(chain.id()).await?.unwrap_or(confirmed);
            mark.min(to_block).saturating_sub(ScanRequest::LOOK_BACK_BLOCKS)
        }
    };
    if from_block > to_block {
        return Err(ScanError::Backwards { from_block, to_block });
    }
    let limit = request.blocks_max.map_or(u64::MAX, |blocks| from_block.saturating_add(blocks.get() - 1));
    if limit < to_block { Ok((from_block, limit, Some(limit + 1))) } else { Ok((from_block, to_block, None)) }
}

/// Payments whose credits were reversed: the chain no longer has them, or does not have them again yet.
async fn reversed(store: &dyn PaymentStore, chain_id: u64) -> Result<Vec<PaymentRecord>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.unsettled_payments(chain_id, after.as_ref(), PAGE).await?;
        found.extend(page.items.into_iter().filter(|record| record.settlement.reversed_at().is_some()));
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

impl FoundPayment {
    /// A payment that the chain no longer has, rebuilt from its record.
    fn recorded(record: PaymentRecord) -> Option<Self> {
        let payment = record.payment.clone();
        let block = payment.block()?;
        let arrival = Arrival { tx: payment.tx, target: payment.target(), block, payment: Ok(payment) };
        Some(Self { arrival, status: PaymentStatus::Used(record) })
    }
}
