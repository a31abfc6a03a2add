//! The terms of receipts. They are in the store, and apply to all payments from now on, no matter which process credits
//! them.

use metering_core::{Clock, FullStore};

use super::ending::RunError;
use crate::config::Config;

/// Records the terms of the configuration, at the start of a server and with each reload.
pub(super) async fn record(store: &dyn FullStore, clock: &dyn Clock, config: &Config) -> Result<(), RunError> {
    let terms = config.receipts.terms(config.operator.seller(&config.brand))?;
    store.set_receipt_terms(terms, clock.now()).await.map_err(|error| RunError::Setup(Box::new(error)))
}
