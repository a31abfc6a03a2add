//! Deletes expired rows in slices, so that charges can commit in between.

use metering_core::Store;
use metering_sqlite::SqliteStore;

use crate::scene::{NOON, account, charge, count, database_path, execute};

const EXPIRED: i64 = 50_000;

#[tokio::test]
async fn charges_are_committed_during_a_large_expiry() {
    let (_folder, file) = database_path();
    let store = SqliteStore::create(&file).unwrap();
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
