//! Contracts for scan marks: how far each chain was scanned for payments.

use std::sync::Arc;

use metering_core::store::PaymentStore;

/// A chain that was never scanned has no mark.
pub async fn a_chain_starts_without_a_mark(store: Arc<dyn PaymentStore>) {
    store.set_scan_mark(1, 7).await.unwrap();
    for chain_id in [0, 2, 8453, u64::MAX] {
        assert_eq!(store.scan_mark(chain_id).await.unwrap(), None, "{chain_id}");
    }
}

/// Each chain has its own mark, for the whole range of chain ids and blocks.
pub async fn marks_are_kept_for_each_chain(store: Arc<dyn PaymentStore>) {
    let table = [(0, u64::MAX), (1, 0), (8453, 1), (1 << 63, (1 << 63) - 1), ((1 << 63) - 1, 1 << 63), (u64::MAX, 42)];
    for (chain_id, block) in table {
        store.set_scan_mark(chain_id, block).await.unwrap();
    }
    for (chain_id, block) in table {
        assert_eq!(store.scan_mark(chain_id).await.unwrap(), Some(block), "{chain_id}");
    }
}

/// A mark only moves forward, anywhere in the range.
pub async fn scan_mark_never_decreases(store: Arc<dyn PaymentStore>) {
    let high = 1_u64 << 63;
    // block scanned, mark after it
    let table = [(5, 5), (5, 5), (4, 5), (0, 5), (6, 6), (high - 1, high - 1), (7, high - 1), (high, high)];
    let table = table.into_iter().chain([(high - 1, high), (8, high), (u64::MAX, u64::MAX), (high, u64::MAX)]);
    for (block, mark) in table {
        store.set_scan_mark(8453, block).await.unwrap();
        assert_eq!(store.scan_mark(8453).await.unwrap(), Some(mark), "after {block}");
    }
}
