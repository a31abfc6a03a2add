//! Tests that an account keeps its newest events.

use metering_core::Timestamp;
use metering_sql::{events, now};
use rusqlite::Connection;

use crate::journal::{Snapshot, Unfolded};
use crate::migrations::migrate;
use crate::script::Statements;

#[test]
fn an_account_keeps_its_newest_events() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection).unwrap();
    // Ten events each of accounts 1 and 2, in turns; a delivery of each; those of account 2 are old.
    let rows = "PRAGMA foreign_keys = off; \
        INSERT INTO webhook (id, public_id, account, url, kinds, state, secret, created_at) \
          VALUES (7, zeroblob(16), 1, '', '', 'active', 'x', 0); \
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20) \
        INSERT INTO event SELECT n, 1 + n % 2, 'key.created', '{}', CASE n % 2 WHEN 0 THEN 1000 ELSE 0 END FROM n; \
        INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
          SELECT 7, number, account, 'pending', 0, 0, 0, number <= 2 FROM event";
    connection.execute_batch(rows).unwrap();
    let since = Timestamp::from_unix_millis(500);
    let deleted = [4, 4, 4].map(|limit| {
        let (mut unfolded, snapshot) = (Unfolded::default(), &connection);
        let snapshot = Snapshot::new(snapshot, &mut unfolded);
        now(events::forget_excess(&mut Statements::new(&snapshot), since, 3, limit)).unwrap()
    });
    assert_eq!(deleted, [4, 3, 0]);
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM event WHERE account = 2"), 10, "no new event: checked another time");
    assert_eq!(count("SELECT min(number) FROM event WHERE account = 1"), 16);
    assert_eq!(count("SELECT event FROM delivery WHERE account = 1 AND is_head"), 16, "the next one can be sent");
    assert_eq!(count("SELECT count(*) FROM delivery"), 13);
}
