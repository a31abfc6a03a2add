//! `MemoryStore` fulfils the storage contract.

use std::sync::Arc;

use metering_conformance::{agrees_on_random_operations, openers_agree};
use metering_core::{FullStore, MemoryStore};

async fn fresh() -> (Arc<dyn FullStore>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

/// One store, returned twice.
async fn fresh_pair() -> ([Arc<dyn FullStore>; 2], ()) {
    let (store, guard) = fresh().await;
    ([Arc::clone(&store), store], guard)
}

metering_conformance::store_conformance!(fresh);

#[test]
fn memory_store_agrees_with_the_model() {
    agrees_on_random_operations(256, fresh);
}

#[test]
fn two_openers_of_memory_store_agree_with_the_model() {
    openers_agree(256, fresh_pair);
}
