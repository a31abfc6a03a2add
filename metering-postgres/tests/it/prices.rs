//! Price versions in the database: recorded catalogues never change.

use metering_core::prices::NewPriceVersion;
use metering_core::store::PriceStore;
use metering_core::{Store, StoreError};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{fresh_schema, run_in};

use crate::lost_commits::NOON;

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_catalogue_is_found() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    for catalogue in ["{\"first\": \"ä\"}", "{\"second\": \"€\"}"] {
        let new = NewPriceVersion { catalogue: catalogue.into(), since: NOON, recorded_at: NOON, applied_by: None };
        store.record_prices(new).await.unwrap();
    }
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
    run_in(&url, "UPDATE price_version SET catalogue = replace(catalogue, 'second', 'sEcond')");
    match store.verify().await {
        Err(StoreError::Corrupt(problem)) => assert!(problem.contains("price version 2"), "{problem}"),
        other => panic!("{other:?}"),
    }
}
