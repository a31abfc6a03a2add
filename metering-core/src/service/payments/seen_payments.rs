//! Payments in a chain's newest blocks, confirmed or not: shown to buyers who wait, followed from the first sight.
//!
//! Many buyers may wait at once, each polling every few seconds. They share one search per target. Once seen, a payment
//! is read by its hash, until some time after it is confirmed or the chain reports that it is in no block.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::chains::chain::{ChainError, ChainReader, Depth, TransactionStatus};
use crate::chains::transaction::TxRef;
use crate::payments::payment::{Payment, PaymentTarget};

/// How long the result of a search is used.
const MAX_AGE: Duration = Duration::from_secs(2);
/// How many blocks below the newest confirmed one are searched: a payment there has not been credited for a moment.
const CONFIRMED_BLOCKS: u64 = 8;
/// How many blocks of the last search are searched again: a reorganisation may have replaced them.
const REPEATED_BLOCKS: u64 = 8;
/// The most blocks that a search reads. Native payments are found in whole blocks, so it must be few.
const MAX_BLOCKS: u64 = 40;
/// The most transactions that a search reads, the newest first.
const MAX_TRANSACTIONS: usize = 50;

/// A payment in one of the newest blocks.
#[derive(Debug, Clone)]
pub(super) struct SeenPayment {
    pub(super) payment: Payment,
    pub(super) depth: Depth,
}

/// The payments that the searches of a target have found.
#[derive(Debug, Default)]
struct Searched {
    /// When the last search ended, in success or failure.
    at: Option<Instant>,
    /// The newest block up to which everything was searched.
    up_to: u64,
    found: Arc<[SeenPayment]>,
}

/// The searches of each target.
#[derive(Debug, Default)]
pub(super) struct SeenPayments(Mutex<HashMap<PaymentTarget, Arc<tokio::sync::Mutex<Searched>>>>);

impl SeenPayments {
    /// The payments that arrived at a target in the chain's newest blocks. If the chain cannot be read, the payments
    /// found before: a failure is no evidence that a payment left its block.
    pub(super) async fn at(&self, reader: &dyn ChainReader, target: PaymentTarget) -> Arc<[SeenPayment]> {
        let searched = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(target).or_default());
        // Held during the search: other callers wait for its result.
        let mut searched = searched.lock().await;
        if searched.at.is_none_or(|at| at.elapsed() >= MAX_AGE) {
            if let Err(error) = search(reader, target, &mut searched).await {
                tracing::debug!(%error, chain = target.chain_id, "the newest blocks could not be searched");
            }
            // A failure counts as a search, so waiting callers do not repeat it one by one.
            searched.at = Some(Instant::now());
        }
        Arc::clone(&searched.found)
    }
}

async fn search(reader: &dyn ChainReader, target: PaymentTarget, searched: &mut Searched) -> Result<(), ChainError> {
    let heights = reader.heights().await?;
    let first = heights.confirmed.saturating_sub(CONFIRMED_BLOCKS).max(heights.newest.saturating_sub(MAX_BLOCKS - 1));
    let first = first.max(searched.up_to.saturating_sub(REPEATED_BLOCKS)).min(heights.newest);
    let found = reader.payments_to(target.recipient, &[target.token], first, heights.newest).await?;
    let mut blocks: BTreeMap<_, u64> =
        searched.found.iter().map(|seen| (seen.payment.tx.hash, seen.payment.block_number)).collect();
    blocks.extend(found.transactions.into_iter().map(|(block, hash)| (hash, block)));
    let mut newest: Vec<_> = blocks.into_iter().collect();
    newest.sort_by_key(|(_, block)| std::cmp::Reverse(*block));
    let mut sightings = Vec::new();
    for (hash, _) in newest.into_iter().take(MAX_TRANSACTIONS) {
        let tx = TxRef { chain_id: target.chain_id, hash };
        match reader.transaction(&hash).await {
            Ok(TransactionStatus::Mined(evidence)) => {
                let is_recent = evidence.depth.confirmations <= evidence.depth.required + CONFIRMED_BLOCKS;
                if let (Ok(payment), true) = (target.payment(tx, &evidence), is_recent) {
                    sightings.push(SeenPayment { payment, depth: evidence.depth });
                }
            }
            Ok(TransactionStatus::Pending { .. } | TransactionStatus::Unknown) => {}
            // An unreadable transaction does not hide others, and keeps its last known state.
            Err(_) => sightings.extend(searched.found.iter().find(|seen| seen.payment.tx == tx).cloned()),
        }
    }
    searched.found = sightings.into();
    if found.unreadable_blocks.is_empty() {
        searched.up_to = heights.newest;
    }
    Ok(())
}
