//! Deletes many expired rows.

use std::time::Duration;

use metering_core::clock::ClockSkew;
use metering_core::events::Event;
use metering_core::{Clock, PaymentStore, Store, SystemClock, Timestamp};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{fresh_schema, run_in};

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

#[tokio::test(flavor = "multi_thread")]
async fn other_writes_continue_during_a_large_expiry() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    run_in(
        &url,
        "INSERT INTO request_id SELECT n % 1000, n::TEXT, 1, 1, n FROM generate_series(1, 200000) n; \
         INSERT INTO outcome (id, noted_at, written_at) SELECT sha256(n::TEXT::BYTEA), 0, 0 FROM generate_series(1, 20000) n",
    );
    let sweeping = store.clone();
    let sweep = tokio::spawn(async move { sweeping.forget_expired(NOON).await.unwrap() });
    let mut turns = 0;
    while !sweep.is_finished() {
        store.put_plans(Vec::new()).await.unwrap();
        turns += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(sweep.await.unwrap(), 200_000);
    assert!(turns > 5, "only {turns} writes in the meantime");
    let left = "SELECT (SELECT count(*) FROM request_id), count(*) FROM outcome WHERE noted_at = 0";
    assert_eq!(run_in(&url, left), "0|0");
}

/// The expiry of outcomes depends only on the database's clock, no matter what a node's clock says when it writes or
/// sweeps.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_clock_does_not_delete_outcomes() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let run = |sql: &str| run_in(&url, sql);
    // A node whose clock is a year behind.
    run("INSERT INTO outcome (id, noted_at) SELECT sha256(n::TEXT::BYTEA), 0 FROM generate_series(1, 50) n");
    run("INSERT INTO outcome (id, noted_at, written_at) VALUES ('old', 9223372036854775807, 0)");
    // A node whose clock is centuries ahead sweeps.
    store.forget_expired(Timestamp::from_unix_millis(i64::MAX)).await.unwrap();
    assert_eq!(run("SELECT count(*) FROM outcome WHERE noted_at = 0"), "50");
    assert_eq!(run("SELECT count(*) FROM outcome WHERE id = 'old'"), "0", "it has expired");
}

/// An account that floods its events loses the oldest, and another account none.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_keeps_its_newest_events() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let run = |sql: &str| run_in(&url, sql);
    let (keep, now) = (Event::MAX_PER_ACCOUNT, NOON.unix_millis());
    run(&format!(
        "INSERT INTO account (id, org_id, agent_name, created_at) SELECT n, 'org_' || n, 'agent', 0 FROM generate_series(7, 8) n; \
         INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
           VALUES (5, decode(lpad('5', 32, '0'), 'hex'), 7, 'https://hooks.example.com/', '', 'active', 0); \
         INSERT INTO event SELECT n, CASE WHEN n > 2 THEN 7 ELSE 8 END, 'key.created', '{{}}', {now} \
           FROM generate_series(1, {keep} + 5) n; \
         INSERT INTO delivery (id, webhook, event, account, state, attempts, since, next_at, is_head) \
           SELECT n, 5, n, 7, 'pending', 0, 0, 0, n = 3 FROM generate_series(3, 9) n"
    ));
    assert_eq!(store.forget_expired(NOON).await.unwrap(), 3);
    assert_eq!(run("SELECT count(*) FROM event WHERE account = 8"), "2");
    assert_eq!(run("SELECT min(number) FROM event WHERE account = 7"), "6");
    assert_eq!(run("SELECT event FROM delivery WHERE is_head"), "6", "the next one can be sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn store_uses_the_database_clock() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let (before, stores) = (SystemClock.now(), store.clock().await.unwrap().unwrap());
    assert_eq!(ClockSkew::found(before, stores, SystemClock.now()), None, "both are on the same machine");
    assert!(stores.unix_millis() > NOON.unix_millis() - 86_400_000 * 365);
}
