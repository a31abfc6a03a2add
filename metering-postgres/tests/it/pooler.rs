//! Behind PgBouncer in transaction mode: charging by random operations, the contracts of everything else, what is refused at
//! start, and a pooler that loses its server. Without a pooler, charging has its contracts too.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metering_core::charging::Outcome;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::{AccountId, ApiKey, Credits, Decision, FullStore, NewAccount, RateLimits, Store, SystemRandomness};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::pgbouncer::{Pooler, is_skipped};
use metering_tests::postgres::Cluster;

use crate::lost_commits::{NOON, charge};
use crate::reused::{Lent, Reused};

fn shared() -> &'static Pooler<'static> {
    static SHARED: OnceLock<Pooler<'static>> = OnceLock::new();
    SHARED.get_or_init(|| Pooler::start(Cluster::shared(), "transaction"))
}

async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(&with_options(url).parse().unwrap()).await.unwrap()
}

fn with_options(url: &str) -> String {
    format!("{url}?pool_size=8&statement_cache=off")
}

async fn refusal(url: &str) -> String {
    PostgresStore::connect(&url.parse().unwrap()).await.unwrap_err().to_string()
}

mod contract {
    use super::*;

    async fn fresh() -> (Arc<dyn FullStore>, Option<Lent>) {
        static SCHEMAS: Reused = Reused::new();
        if is_skipped() {
            // A developer's machine without PgBouncer. Where PgBouncer is required, ./test.sh fails before this.
            return (Arc::new(SqliteStore::in_memory().unwrap()), None);
        }
        let make = || {
            let (pooled, direct) = shared().fresh_schema();
            (with_options(&pooled), direct)
        };
        let schema = SCHEMAS.lend(make).await;
        (Arc::new(schema.open().await), Some(schema))
    }

    #[test]
    fn random_operations_agree_with_the_model() {
        metering_conformance::agrees_on_random_operations(12, fresh);
    }

    metering_conformance::accounting_conformance!(fresh);
}

/// An account with credits, and its key.
async fn account(store: &PostgresStore) -> (AccountId, ApiKey) {
    let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
    let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
    account.limits = RateLimits::NONE;
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_whole(2).unwrap(), "Free")];
    store.create_account(account).await.unwrap();
    (id, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_mode_without_option_is_refused_with_advice() {
    if is_skipped() {
        return;
    }
    let (url, direct) = shared().fresh_schema();
    for _ in 0..5 {
        let message = refusal(&url).await;
        assert!(message.contains("statement_cache=off") && message.contains("pool_mode = session"), "{message}");
    }
    PostgresStore::connect(&direct.parse().unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn session_mode_works_and_statement_mode_is_refused() {
    if is_skipped() {
        return;
    }
    let pooler = Pooler::start(Cluster::shared(), "session");
    let (url, _) = pooler.fresh_schema();
    let store = PostgresStore::connect(&format!("{url}?pool_size=4").parse().unwrap()).await.unwrap();
    store.check().await.unwrap();
    let pooler = Pooler::start(Cluster::shared(), "statement");
    let (url, _) = pooler.fresh_schema();
    for url in [url.clone(), format!("{url}?statement_cache=off")] {
        let message = refusal(&url).await;
        assert!(message.contains("statement mode") && message.contains("pool_mode = transaction"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_set_their_own_settings_and_leave_none() {
    if is_skipped() {
        return;
    }
    let (url, direct) = shared().fresh_schema();
    let role = url.split('@').next().unwrap().trim_start_matches("postgres://").to_owned();
    let cluster = Cluster::shared();
    cluster.run(&format!("ALTER ROLE {role} SET synchronous_commit = off"));
    let store = connect(&url).await;
    let recorded = "current_setting('synchronous_commit') || ' ' || current_setting('lock_timeout') || ' ' || \
                    current_setting('statement_timeout')";
    cluster.run_all(&[
        &format!("CREATE TABLE {role}.seen (settings TEXT)"),
        &format!(
            "CREATE FUNCTION {role}.see() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO {role}.seen VALUES ({recorded}); RETURN NEW; END $$"
        ),
        &format!("CREATE TRIGGER see BEFORE UPDATE ON {role}.turn FOR EACH ROW EXECUTE FUNCTION {role}.see()"),
        &format!("CREATE TRIGGER see BEFORE UPDATE ON {role}.meter FOR EACH ROW EXECUTE FUNCTION {role}.see()"),
    ]);
    let (_, key) = account(&store).await;
    for _ in 0..20 {
        store.commit(vec![charge(&key)], NOON).await.unwrap();
    }
    assert_eq!(cluster.run(&format!("SELECT DISTINCT settings FROM {role}.seen")), "on 10s 1min");
    // Another program that uses the same pooler finds the connections with their default settings.
    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let other_task = tokio::spawn(connection);
    for _ in 0..20 {
        let found = other.simple_query(&format!("SELECT {recorded}")).await.unwrap();
        let found = found.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        assert_eq!(found, Some("off 0 0"));
    }
    other_task.abort();
    drop(PostgresStore::connect(&direct.parse().unwrap()).await.unwrap());
}

/// The server commits, and its connection is lost before it can report that. The pooler then reports its own error,
/// which does not mean that nothing was committed.
#[tokio::test(flavor = "multi_thread")]
async fn commit_lost_behind_the_pooler_counts_once() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::start(&["fsync=off"]);
    let pooler = Pooler::start(&cluster, "transaction");
    let (url, direct) = pooler.fresh_schema();
    let store = Arc::new(connect(&url).await);
    let (id, key) = account(&store).await;
    // Fill the cache, so that the next statement that waits is the commit.
    store.commit(vec![charge(&key)], NOON).await.unwrap();
    // A standby that does not exist: commits are on the primary's disk, and wait forever for the standby.
    cluster.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    cluster.run("SELECT pg_reload_conf()");
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    // The database takes the setting a moment after the command returns, so the first commits may not wait yet.
    let mut charges = 1;
    let charging = loop {
        charges += 1;
        let charging = tokio::spawn({
            let (store, key) = (Arc::clone(&store), key.clone());
            async move { store.commit(vec![charge(&key)], NOON).await }
        });
        while !charging.is_finished() && cluster.run(waiting) == "0" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if !charging.is_finished() {
            break charging;
        }
        charging.await.unwrap().unwrap();
    };
    cluster.run_all(&[
        "ALTER SYSTEM RESET synchronous_standby_names",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
        "SELECT pg_reload_conf()",
    ]);
    let outcomes = charging.await.unwrap().unwrap();
    assert!(matches!(outcomes[..], [Outcome::Decided(Decision::Accepted(_))]), "{outcomes:?}");
    let direct = PostgresStore::connect(&direct.parse().unwrap()).await.unwrap();
    let used = direct.account(&id).await.unwrap().unwrap().totals.used;
    assert_eq!(used.atoms(), charges * Credits::BASE_CALL.atoms());
    assert_eq!(direct.verify().await.unwrap().discrepancies, []);
}
