//! Deletes expired rows in slices, so that charges can commit in between.

use metering_core::Store;
use metering_sql::ended_keys::{DELETE, KEYS_OF_HOLDS, NEXT_ACCOUNT};
use metering_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::scene::{NOON, account, charge, count, created, database_path, execute};

const EXPIRED: i64 = 50_000;

#[tokio::test]
async fn charges_are_committed_during_a_large_expiry() {
    let (_folder, file, store) = created();
    let (_, key) = account(&store, 5).await;
    execute(
        &file,
        &format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {EXPIRED})
             INSERT INTO request_id (account, request_id, charged, balance, expires_at)
             SELECT 1, hex(randomblob(16)), 1, 1, i FROM n"
        ),
    );
    let (forgotten, left) = tokio::join!(store.forget_expired(NOON), async {
        charge(&store, key).await.unwrap();
        count(&file, "request_id")
    });
    assert_eq!(forgotten.unwrap(), EXPIRED.unsigned_abs());
    assert!(left > EXPIRED / 2, "the charge waited until only {left} rows were left");
    assert_eq!((store.forget_expired(NOON).await.unwrap(), count(&file, "request_id")), (0, 0));
}

/// No matter how many keys, secrets and holds there are.
#[test]
fn deleting_a_key_reads_only_indexes() {
    let (_folder, file) = database_path();
    drop(SqliteStore::create(&file).unwrap());
    let connection = Connection::open(&file).unwrap();
    let old_secrets = metering_sql::keys::old_secrets();
    let table = [
        (&*old_secrets, "key_secret_ended"),
        (&*old_secrets, "key_secret_live"),
        (NEXT_ACCOUNT, "api_key_many"),
        (KEYS_OF_HOLDS, "hold_key"),
        ("SELECT 1 FROM api_key WHERE account = ?1 AND parent = ?2", "api_key_parent"),
        (DELETE[0], "key_secret_live"),
        (DELETE[1], "key_secret_ended"),
    ];
    for (sql, index) in table {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![1_i64; statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<_> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().any(|step| step.starts_with("SEARCH") && step.contains(index)), "{sql}: {steps:?}");
    }
}
