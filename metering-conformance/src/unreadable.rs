//! Contracts for unreadable arrivals: stored, listed, retried and deleted.

use std::sync::Arc;
use std::time::Duration;

use metering_core::chains::TxHash;
use metering_core::clock::Timestamp;
use metering_core::payments::{ArrivalLocation, UnreadableArrival};
use metering_core::store::PaymentStore;

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

fn location(chain_id: u64, block_number: u64, byte: Option<u8>) -> ArrivalLocation {
    ArrivalLocation { chain_id, block_number, hash: byte.map(|byte| TxHash::from_bytes([byte; 32])) }
}

fn arrival(location: ArrivalLocation) -> UnreadableArrival {
    UnreadableArrival::new(location, "the response is larger than 16777216 bytes", NOON)
}

fn later(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

/// Unreadable arrivals of a chain are listed by block and hash, starting at a given block.
pub async fn unreadable_arrivals_are_listed_in_chain_order(store: Arc<dyn PaymentStore>) {
    let locations = [
        location(1, 7, Some(2)),
        location(1, 7, Some(1)),
        location(1, 7, None),
        location(1, 9, Some(1)),
        location(1, 5, None),
    ];
    for location in locations {
        store.put_unreadable(arrival(location)).await.unwrap();
    }
    store.put_unreadable(arrival(location(2, 7, Some(2)))).await.unwrap();
    let listed = async |from, limit| {
        let listed = store.unreadable(1, from, limit).await.unwrap();
        listed.into_iter().map(|arrival| arrival.location).collect::<Vec<_>>()
    };
    let all = [locations[4], locations[2], locations[1], locations[0], locations[3]];
    assert_eq!(listed(0, 10).await, all);
    assert_eq!(listed(6, 10).await, all[1..]);
    assert_eq!(listed(0, 2).await, all[..2]);
    assert!(listed(10, 10).await.is_empty());
    assert_eq!(store.unreadable(2, 0, 10).await.unwrap(), [arrival(location(2, 7, Some(2)))]);
    assert_eq!(store.unreadable(3, 0, 10).await.unwrap(), []);
}

/// A new record for the same place replaces the old one completely.
pub async fn newer_record_of_an_unreadable_arrival_replaces_it(store: Arc<dyn PaymentStore>) {
    let first = arrival(location(8453, 7, Some(1)));
    store.put_unreadable(first.clone()).await.unwrap();
    let second = first.failed_again("no status", later(30));
    store.put_unreadable(second.clone()).await.unwrap();
    assert_eq!(store.unreadable(8453, 0, 10).await.unwrap(), std::slice::from_ref(&second));
    let given_up = UnreadableArrival { next_attempt_at: None, attempts: UnreadableArrival::ATTEMPTS_MAX, ..second };
    store.put_unreadable(given_up.clone()).await.unwrap();
    assert_eq!(store.unreadable(8453, 0, 10).await.unwrap(), [given_up]);
}

/// An arrival is due when its next attempt is, the earliest first. One that was given up on is never due.
pub async fn unreadable_arrivals_are_due_at_their_next_attempt(store: Arc<dyn PaymentStore>) {
    let at = |block, seconds: Option<u64>| UnreadableArrival {
        next_attempt_at: seconds.map(later),
        ..arrival(location(1, block, Some(1)))
    };
    for arrival in [at(1, Some(60)), at(2, Some(30)), at(3, None), at(4, Some(61))] {
        store.put_unreadable(arrival).await.unwrap();
    }
    store.put_unreadable(UnreadableArrival { location: location(2, 1, Some(1)), ..at(1, Some(0)) }).await.unwrap();
    let due = async |seconds, limit| {
        let due = store.unreadable_due(1, later(seconds), limit).await.unwrap();
        due.into_iter().map(|arrival| arrival.location.block_number).collect::<Vec<_>>()
    };
    assert!(due(29, 10).await.is_empty());
    assert_eq!(due(30, 10).await, [2]);
    assert_eq!(due(60, 10).await, [2, 1]);
    assert_eq!(due(60, 1).await, [2]);
    assert_eq!(due(1_000_000, 10).await, [2, 1, 4]);
}

/// An arrival that was finally read is deleted, and no other.
pub async fn arrival_is_deleted_once_it_was_read(store: Arc<dyn PaymentStore>) {
    let (one, block) = (location(1, 7, Some(1)), location(1, 7, None));
    for location in [one, block] {
        store.put_unreadable(arrival(location)).await.unwrap();
    }
    store.forget_unreadable(&location(2, 7, Some(1))).await.unwrap();
    store.forget_unreadable(&one).await.unwrap();
    store.forget_unreadable(&one).await.unwrap();
    assert_eq!(store.unreadable(1, 0, 10).await.unwrap(), [arrival(block)]);
    assert_eq!(store.unreadable_due(1, later(1_000), 10).await.unwrap(), [arrival(block)]);
}
