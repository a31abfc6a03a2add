//! `MemoryStore` keeps the contract.

use std::sync::Arc;

use metering_core::{MemoryStore, Store, conformance};

async fn fresh() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

metering_core::store_conformance!(fresh);

#[test]
fn it_agrees_with_the_model() {
    conformance::agrees_on_random_operations(256, fresh);
}
