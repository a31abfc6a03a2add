//! The conformance suite and the model-based tests, with a separate schema for each test.

use std::sync::Arc;

use metering_conformance::{agrees_on_random_operations, openers_agree};
use metering_core::{FullStore, PaymentStore, Store};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, is_skipped};

async fn fresh() -> (Arc<dyn FullStore>, ()) {
    if is_skipped() {
        // A developer's machine without PostgreSQL. Where PostgreSQL is required, ./test.sh fails before this.
        return (Arc::new(SqliteStore::in_memory().unwrap()), ());
    }
    (connect(&Cluster::shared().fresh_schema()).await, ())
}

/// Two nodes on one schema, each with its own connections and cache.
async fn fresh_pair() -> ([Arc<dyn FullStore>; 2], ()) {
    if is_skipped() {
        let store: Arc<dyn FullStore> = Arc::new(SqliteStore::in_memory().unwrap());
        return ([Arc::clone(&store), store], ());
    }
    let url = Cluster::shared().fresh_schema();
    ([connect(&url).await, connect(&url).await], ())
}

async fn connect(url: &str) -> Arc<dyn FullStore> {
    Arc::new(PostgresStore::connect(&format!("{url}&pool_size=8").parse().unwrap()).await.unwrap())
}

metering_conformance::store_conformance!(fresh);

#[test]
fn random_operations_agree_with_the_model() {
    agrees_on_random_operations(24, fresh);
}

#[test]
fn two_nodes_on_one_schema_agree_with_the_model() {
    openers_agree(28, fresh_pair);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_on_one_schema_number_receipts_without_gaps() {
    let (stores, _guard) = fresh_pair().await;
    metering_conformance::receipts::openers_number_receipts(stores.map(|store| store as Arc<dyn PaymentStore>)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_on_one_schema_share_a_token_limit() {
    let (stores, _guard) = fresh_pair().await;
    let stores = stores.into_iter().map(|store| store as Arc<dyn Store>).collect();
    metering_conformance::openers_share_a_token_limit(stores).await;
}
