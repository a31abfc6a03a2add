//! The conformance suite and the model, on a schema of its own for each test.

use std::sync::Arc;

use metering_core::conformance::agrees_on_random_operations;
use metering_core::{MemoryStore, Store};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{Cluster, is_skipped};

async fn fresh() -> (Arc<dyn Store>, ()) {
    if is_skipped() {
        // A person's machine without PostgreSQL; where it must be there, ./test.sh fails before this.
        return (Arc::new(MemoryStore::new()), ());
    }
    let url = Cluster::shared().fresh_schema();
    let store = PostgresStore::connect(&format!("{url}&pool_size=8").parse().unwrap()).await.unwrap();
    (Arc::new(store), ())
}

metering_core::store_conformance!(fresh);

#[test]
fn random_operations_agree_with_the_model() {
    agrees_on_random_operations(24, fresh);
}
