//! The log of several openers of one database: an opener that did not start it sees it with its next commit.

use std::sync::Arc;

use metering_core::FullStore;

use super::log::{begin, sequence, sums};
use super::scene::{NOON, accepted, assert_verified, charge, customer, totals};

/// A log that one opener begins has the next charge of the other, which charged the account before and knew of no log.
pub async fn openers_notice_a_log([first, second]: [Arc<dyn FullStore>; 2]) {
    let owner = customer(&*first, 1_000_000).await;
    for _ in 0..5 {
        accepted(&*first, charge(owner.key, 1), NOON).await;
    }
    begin(&*second).await;
    accepted(&*first, charge(owner.key, 10), NOON).await;
    let logged = sequence(&*second, 100).await;
    assert_eq!(logged.len(), 2, "the opening funds and the charge: {logged:?}");
    for store in [&first, &second, &first] {
        accepted(&**store, charge(owner.key, 100), NOON).await;
    }
    let logged = [logged, sequence(&*first, 100).await].concat();
    let funds = totals(&*second, &owner.id).await.unspent().atoms();
    assert_eq!(funds, 1_000_000 - 5 - 10 - 3 * 100);
    assert_eq!(sums(&logged).into_values().collect::<Vec<_>>(), [funds]);
    assert_verified(&*second).await;
}
