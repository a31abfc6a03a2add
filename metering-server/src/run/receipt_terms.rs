//! The terms of receipts. The store has them, for the payments from now on, whoever credits those.

use metering_core::{Clock, FullStore};

use super::ending::RunError;
use crate::config::Config;

/// Records the terms of the configuration, at the start of a server and with each reload.
pub(super) async fn record(store: &dyn FullStore, clock: &dyn Clock, config: &Config) -> Result<(), RunError> {
    let terms = config.receipts.terms(config.operator.seller(&config.brand))?;
    store.set_receipt_terms(terms, clock.now()).await.map_err(|error| RunError::Setup(Box::new(error)))
}
