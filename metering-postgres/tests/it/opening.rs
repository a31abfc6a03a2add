//! Opening a store: which databases are refused and left unchanged, what a start waits for, and which errors it
//! reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use metering_core::Store;
use metering_postgres::PostgresStore;
use metering_tests::postgres::{Cluster, is_skipped, schema_of};

use crate::versions::version_two;

/// Longer than a write is retried, and longer than the database waits for a lock.
const LONG: Duration = Duration::from_secs(23);

/// A database of version 2, and a session that holds the lock that `sql` takes for a while.
fn held(sql: impl FnOnce(&str) -> String) -> (String, JoinHandle<String>) {
    let url = Cluster::shared().fresh_schema();
    version_two(&url);
    let sql = format!("BEGIN; {}; SELECT pg_sleep({})", sql(schema_of(&url)), LONG.as_secs());
    let holder = thread::spawn(move || Cluster::shared().run(&sql));
    while !is_held(&url) {
        assert!(!holder.is_finished(), "it never held the lock");
        thread::sleep(Duration::from_millis(20));
    }
    (url, holder)
}

/// Whether the session still holds its lock.
fn is_held(url: &str) -> bool {
    let schema = schema_of(url);
    let sql =
        format!("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '% {schema}.%'");
    Cluster::shared().run(&sql) == "1"
}

#[tokio::test(flavor = "multi_thread")]
async fn database_without_utf8_encoding_is_refused() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    cluster.run("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    let config = cluster.url().replace("/postgres", "/latin").parse().unwrap();
    for refused in [
        PostgresStore::connect(&config).await.map(drop),
        PostgresStore::connect_to_import(&config).await.map(drop),
        PostgresStore::connect_to_inspect(&config).await.map(drop),
    ] {
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("LATIN1") && message.contains("--encoding UTF8"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_another_program_is_left_unchanged() {
    if is_skipped() {
        return;
    }
    let (cluster, url) = (Cluster::shared(), Cluster::shared().fresh_schema());
    let schema = schema_of(&url);
    cluster.run(&format!("CREATE TABLE {schema}.account (name TEXT)"));
    let message = PostgresStore::connect(&url.parse().unwrap()).await.unwrap_err().to_string();
    assert!(message.contains("tables of another program"), "{message}");
    let tables = format!("SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = '{schema}'");
    assert_eq!(cluster.run(&tables), "account");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_waits_for_another_nodes_slow_migration() {
    if is_skipped() {
        return;
    }
    let (url, other) = held(|schema| format!("SELECT version FROM {schema}.metering_schema FOR UPDATE"));
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    assert!(!is_held(&url));
    store.check().await.unwrap();
    other.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_waits_for_a_backup_without_blocking_others() {
    if is_skipped() {
        return;
    }
    // The lock that pg_dump takes.
    let (url, backup) = held(|schema| format!("LOCK TABLE {schema}.meter IN ACCESS SHARE MODE"));
    let schema = schema_of(&url);
    let config = url.parse().unwrap();
    let node = tokio::spawn(async move { PostgresStore::connect(&config).await });
    let mut read = 0;
    while is_held(&url) {
        Cluster::shared().run(&format!("SELECT count(*) FROM {schema}.meter"));
        read += 1;
        thread::sleep(Duration::from_millis(500));
    }
    // A statement that waited for the upgrade, and so for the backup, would be the last one.
    assert!(read > 4, "only {read} statements during the backup");
    let store = node.await.unwrap().unwrap();
    assert!(!is_held(&url));
    store.check().await.unwrap();
    backup.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn most_relevant_error_of_several_hosts_is_reported() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::start(&["fsync=off"]);
    cluster.run("ALTER ROLE metering PASSWORD 'right'");
    cluster.admit("host all all all scram-sha-256");
    let (address, closed_address) = (cluster.address(), "127.0.0.1:1");
    for hosts in [format!("{address},{closed_address}"), format!("{closed_address},{address}")] {
        let config = format!("postgres://metering:wrong@{hosts}/postgres").parse().unwrap();
        let message = PostgresStore::connect(&config).await.unwrap_err().to_string();
        assert!(message.contains("password authentication failed"), "{hosts}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_end_while_a_store_is_opened_do_not_fail_it() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::start(&["fsync=off"]);
    let config = cluster.url().parse().unwrap();
    drop(PostgresStore::connect(&config).await.unwrap());
    let opened = Arc::new(AtomicU32::new(0));
    let opening = tokio::spawn({
        let opened = Arc::clone(&opened);
        async move {
            for _ in 0..60 {
                drop(PostgresStore::connect(&config).await.unwrap());
                opened.fetch_add(1, Ordering::SeqCst);
                assert!(PostgresStore::connect_to_inspect(&config).await.unwrap().is_some());
                opened.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    while !opening.is_finished() {
        // As an operator would do it. This does not end the command's own connection.
        let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'metering'";
        let before = opened.load(Ordering::SeqCst);
        cluster.run(all);
        // Once or twice for each opening: the number of retries is limited, and a loaded machine opens slowly.
        while opened.load(Ordering::SeqCst) == before && !opening.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    opening.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_opened_by_its_socket() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    let (folder, port) = (cluster.socket_folder().display().to_string(), cluster.address().port());
    let url = cluster.fresh_schema();
    let options = url.split_once('?').unwrap().1;
    for url in [
        format!("postgres://metering@/postgres?host={folder}&port={port}&{options}"),
        format!("postgres://metering@{}:{port}/postgres?{options}", folder.replace('/', "%2F")),
    ] {
        PostgresStore::connect(&url.parse().unwrap()).await.unwrap().check().await.unwrap();
    }
}

/// As after a restore by a superuser into a database that does not belong to the service's user.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_names_rights_that_a_migration_needs_and_the_user_lacks() {
    if is_skipped() {
        return;
    }
    let (cluster, url) = (Cluster::shared(), Cluster::shared().fresh_schema());
    let schema = schema_of(&url);
    drop(PostgresStore::connect(&url.parse().unwrap()).await.unwrap());
    assert_eq!(PostgresStore::inspect(&url.parse().unwrap()).await.unwrap().missing_rights, [""; 0]);
    cluster.run(&format!(
        "CREATE ROLE guest_{schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO guest_{schema};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO guest_{schema}"
    ));
    let guest = url.replacen("://metering@", &format!("://guest_{schema}@"), 1);
    assert_ne!(guest, url);
    let missing = PostgresStore::inspect(&guest.parse().unwrap()).await.unwrap().missing_rights;
    let [create, alter] = missing.as_slice() else { panic!("{missing:?}") };
    assert_eq!(*create, format!("may not create tables in schema {schema}"));
    assert!(
        alter.starts_with(&format!("may not alter table {schema}.account, which belongs to metering (")),
        "{alter}"
    );
}
