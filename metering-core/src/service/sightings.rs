//! Payments in a chain's newest blocks, confirmed or not: shown to buyers who wait, and never credited from here.
//!
//! Many buyers may wait at once, each asking every few seconds. They share one search per target.

use std::collections::{BTreeSet, HashMap};
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
/// The most blocks that a search reads. Native payments are found in whole blocks, so it must be few.
const MAX_BLOCKS: u64 = 40;
/// The most transactions that a search looks up, the newest first.
const MAX_TRANSACTIONS: usize = 50;

/// A payment in one of the newest blocks.
#[derive(Debug, Clone)]
pub(super) struct Sighting {
    pub(super) payment: Payment,
    pub(super) depth: Depth,
}

/// The last search of a target.
type LastSearch = tokio::sync::Mutex<Option<(Instant, Arc<[Sighting]>)>>;

/// The last search of each target.
#[derive(Debug, Default)]
pub(super) struct Sightings(Mutex<HashMap<PaymentTarget, Arc<LastSearch>>>);

impl Sightings {
    /// The payments that arrived at a target in the chain's newest blocks.
    ///
    /// # Errors
    /// When the chain cannot be read.
    pub(super) async fn at(
        &self,
        reader: &dyn ChainReader,
        target: PaymentTarget,
    ) -> Result<Arc<[Sighting]>, ChainError> {
        let last = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(target).or_default());
        // Held during the search: whoever asks meanwhile waits for its result.
        let mut last = last.lock().await;
        if let Some((searched_at, found)) = &*last
            && searched_at.elapsed() < MAX_AGE
        {
            return Ok(Arc::clone(found));
        }
        let searched = search(reader, target).await;
        // A failure counts as a search, so that those who wait do not repeat it one after the other.
        let found: Arc<[Sighting]> = searched.as_deref().unwrap_or_default().into();
        *last = Some((Instant::now(), Arc::clone(&found)));
        searched.map(|_| found)
    }
}

async fn search(reader: &dyn ChainReader, target: PaymentTarget) -> Result<Vec<Sighting>, ChainError> {
    let heights = reader.heights().await?;
    let first = heights.confirmed.saturating_sub(CONFIRMED_BLOCKS).max(heights.newest.saturating_sub(MAX_BLOCKS - 1));
    let found = reader.payments_to(target.recipient, &[target.token], first, heights.newest).await?;
    let newest: BTreeSet<_> = found.transactions.into_iter().rev().take(MAX_TRANSACTIONS).collect();
    let mut sightings = Vec::new();
    for (_, hash) in newest {
        let tx = TxRef { chain_id: target.chain_id, hash };
        // A transaction that cannot be read hides no other.
        let Ok(TransactionStatus::Mined(evidence)) = reader.transaction(&hash).await else { continue };
        if let Ok(payment) = target.payment(tx, &evidence) {
            sightings.push(Sighting { payment, depth: evidence.depth });
        }
    }
    Ok(sightings)
}
