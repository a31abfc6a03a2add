//! Consecutive numbers that several openers of one database share.

use std::sync::Arc;

use metering_core::store::PaymentStore;

use super::receipts::numbered;

/// Concurrent payments through several openers of one database have consecutive numbers, even if some are refused.
pub async fn openers_number_receipts(stores: [Arc<dyn PaymentStore>; 2]) {
    numbered(stores).await;
}
