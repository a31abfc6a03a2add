//! The conformance suite and the model-based tests, each on its own schema.

use std::sync::Arc;

use metering_conformance::{agrees_on_random_operations, openers_agree};
use metering_core::{FullStore, PaymentStore, Store};
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, is_skipped, schema_of};

use crate::reused::{Lent, Reused};

async fn fresh() -> (Arc<dyn FullStore>, Option<Lent>) {
    if is_skipped() {
        // A developer's machine without PostgreSQL. Where PostgreSQL is required, ./test.sh fails before this.
        return (Arc::new(SqliteStore::in_memory().unwrap()), None);
    }
    let schema = lend().await;
    (Arc::new(schema.open().await), Some(schema))
}

/// Two nodes on one schema, each with its own connections and cache.
async fn fresh_pair() -> ([Arc<dyn FullStore>; 2], Option<Lent>) {
    if is_skipped() {
        let store: Arc<dyn FullStore> = Arc::new(SqliteStore::in_memory().unwrap());
        return ([Arc::clone(&store), store], None);
    }
    let schema = lend().await;
    ([Arc::new(schema.open().await), Arc::new(schema.open().await)], Some(schema))
}

async fn lend() -> Lent {
    static SCHEMAS: Reused = Reused::new();
    let make = || {
        let direct = Cluster::shared().fresh_schema();
        (format!("{direct}&pool_size=8&application_name={}", schema_of(&direct)), direct)
    };
    SCHEMAS.lend(make).await
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
    metering_conformance::openers_number_receipts(stores.map(|store| store as Arc<dyn PaymentStore>)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_opened_by_another_node_is_noticed_by_the_next_commit() {
    let (stores, _guard) = fresh_pair().await;
    metering_conformance::openers_notice_a_log(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_on_one_schema_share_a_token_limit() {
    let (stores, _guard) = fresh_pair().await;
    let stores = stores.into_iter().map(|store| store as Arc<dyn Store>).collect();
    metering_conformance::openers_share_a_token_limit(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_operations_on_keys_agree_with_the_memory_store() {
    for seed in 1..=4 {
        let (stores, _guard) = fresh_pair().await;
        metering_conformance::openers_agree_on_keys(&stores.map(|store| store as Arc<dyn Store>), seed).await;
    }
}
