//! `MemoryStore` fulfils the contract of a store for charging alone.

use std::sync::Arc;

use metering_core::MemoryStore;

async fn fresh() -> (Arc<MemoryStore>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

metering_conformance::charging_conformance!(fresh);
