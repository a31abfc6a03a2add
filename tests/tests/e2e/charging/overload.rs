//! A database that another program locks: requests wait while the queue has room, and are refused immediately when it
//! is full.

use std::time::Duration;

use metering_tests::site::Site;
use rusqlite::Connection;

use crate::support::wait::until;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

/// Holds the database's only write lock until dropped.
struct Lock(Connection);

impl Lock {
    fn on(site: &Site) -> Self {
        let connection = Connection::open(site.database()).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.execute_batch("ROLLBACK");
    }
}

#[test]
fn requests_wait_for_another_writer() {
    let (site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    let _ = client.get(BASE).expect(200);
    let lock = Lock::on(&site);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || client.get(BASE))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(1_200));
    // Reads do not wait.
    assert_eq!(balance(&client), amount(CREDIT - BASE_CALL));
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "responded before the charge was durable");
    drop(lock);
    for waiting in waiting {
        let _ = waiting.join().unwrap().expect(200);
    }
    assert_eq!(balance(&client), amount(CREDIT - 9 * BASE_CALL));
}

#[test]
fn requests_beyond_the_queue_are_refused_uncharged() {
    let (site, account, server) =
        Site::serving_with("1", |server| server.set("METERING_METER__QUEUE", "2").set("METERING_METER__BATCH", "1"));
    let client = server.client_with(&account.api_key);
    let lock = Lock::on(&site);
    let pending: Vec<_> = (0..24)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || client.get(BASE))
        })
        .collect();
    let finished = || pending.iter().filter(|pending| pending.is_finished()).count();
    until("all beyond the bound of the queue have a response", || finished() >= 18);
    drop(lock);
    let mut accepted = 0;
    for pending in pending {
        let response = pending.join().unwrap();
        if response.status == 200 {
            accepted += 1;
            continue;
        }
        assert_eq!((response.status, response.error().as_str()), (503, "overloaded"));
        assert_eq!((response.header("retry-after"), response.header("x-bds-credit-charged")), (Some("1"), None));
        assert_eq!(response.member("retry_after_sec"), "1");
    }
    assert!(accepted >= 1, "{accepted}");
    assert_eq!(balance(&client), amount(CREDIT - accepted * BASE_CALL));
}
