//! Forgetting much at once.

use std::time::Duration;

use metering_core::{Store, Timestamp};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{Cluster, is_skipped, schema_of};

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

#[tokio::test(flavor = "multi_thread")]
async fn other_facts_have_their_turn_while_much_is_forgotten() {
    if is_skipped() {
        return;
    }
    let url = Cluster::shared().fresh_schema();
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let schema = schema_of(&url);
    Cluster::shared().run(&format!(
        "SET search_path = {schema}; \
         INSERT INTO request_id SELECT n % 1000, n::TEXT, 1, 1, n FROM generate_series(1, 200000) n; \
         INSERT INTO outcome SELECT sha256(n::TEXT::BYTEA), 0 FROM generate_series(1, 20000) n"
    ));
    let sweeping = store.clone();
    let sweep = tokio::spawn(async move { sweeping.forget_expired(NOON).await.unwrap() });
    let mut turns = 0;
    while !sweep.is_finished() {
        store.put_plans(Vec::new()).await.unwrap();
        turns += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(sweep.await.unwrap(), 200_000);
    assert!(turns > 5, "{turns} facts in the meantime");
    let left =
        format!("SELECT (SELECT count(*) FROM {schema}.request_id), count(*) FROM {schema}.outcome WHERE at = 0");
    assert_eq!(Cluster::shared().run(&left), "0|0");
}
