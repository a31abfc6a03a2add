//! Contracts for unclaimed payments: stored once, listed newest first, and deleted once an account has them or a
//! reorganisation removed them.

use std::sync::Arc;

use metering_core::chains::{Address, Block, TxHash, TxRef};
use metering_core::payments::{Arrival, Payment, PaymentFault, UnclaimedPayment};
use metering_core::store::{Cursor, PaymentStore, StoreError};

use super::sale::{after, buyer, credit, credited, payment_by, tx, tx_on};
use super::scene::{BASE, MINUTE, NOON, customer};

/// The payment of transaction `number`, mined in a block that many minutes after noon.
fn unclaimed(number: u8, block: u64) -> UnclaimedPayment {
    let block = Block { number: block, hash: [number; 32], time: after(MINUTE * u32::from(number)) };
    let (block_number, block_hash, mined_at) = (block.number, Some(block.hash), block.time);
    let payment = Payment { block_number, block_hash, mined_at, ..payment_by(number, tx(number)) };
    UnclaimedPayment {
        arrival: Arrival { tx: payment.tx, target: payment.target(), block, payment: Ok(payment) },
        seen_at: NOON,
    }
}

async fn put(store: &dyn PaymentStore, payment: UnclaimedPayment) -> UnclaimedPayment {
    store.put_unclaimed(payment.clone()).await.unwrap();
    payment
}

/// The first page, and how many there are in all.
async fn newest(store: &dyn PaymentStore, limit: u32) -> (Vec<UnclaimedPayment>, u64) {
    let (page, count) = store.unclaimed(None, limit).await.unwrap();
    (page.items, count)
}

/// The hashes of all that are stored, newest first.
async fn stored(store: &dyn PaymentStore) -> Vec<TxHash> {
    let (listed, count) = newest(store, 100).await;
    assert_eq!(u64::try_from(listed.len()).ok(), Some(count));
    listed.into_iter().map(|payment| payment.arrival.tx.hash).collect()
}

/// They are listed by the time when they were mined, including those whose purpose is unclear.
pub async fn newest_unclaimed_payments_are_first(store: Arc<dyn PaymentStore>) {
    assert_eq!(newest(&*store, 10).await, (vec![], 0));
    let of_fault = |number, fault| {
        let mut unclear = unclaimed(number, 7);
        unclear.arrival.payment = Err(fault);
        unclear
    };
    let first = put(&*store, unclaimed(1, 9)).await;
    let third = put(&*store, of_fault(3, PaymentFault::SeveralTransfers { count: 2 })).await;
    let second = put(&*store, of_fault(2, PaymentFault::HasInput)).await;
    assert_eq!(newest(&*store, 10).await, (vec![third.clone(), second.clone(), first], 3));
    assert_eq!(newest(&*store, 2).await, (vec![third, second], 3), "all are counted");
    assert_eq!(newest(&*store, 0).await, (vec![], 3));
}

/// Pages have each payment once, also those of one block and one transaction, even while others arrive.
pub async fn unclaimed_payments_are_paged(store: Arc<dyn PaymentStore>) {
    let mut same_block = unclaimed(2, 8);
    same_block.arrival.tx = tx(3);
    let mut elsewhere = unclaimed(2, 8);
    elsewhere.arrival.target.token = Address::from_bytes([7; 20]);
    for payment in [unclaimed(1, 7), unclaimed(2, 8), same_block, elsewhere, unclaimed(4, 9)] {
        put(&*store, payment).await;
    }
    let (all, _) = newest(&*store, 100).await;
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let (page, count) = store.unclaimed(after.as_ref(), 1).await.unwrap();
        assert_eq!(count, 5 + u64::from(after.is_some()), "all are counted");
        paged.extend(page.items);
        if after.is_none() {
            put(&*store, unclaimed(5, 10)).await;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, all);
    for cursor in ["", "1", "1.2.3.4.5.6"] {
        let found = store.unclaimed(Some(&Cursor::new(cursor)), 1).await;
        assert!(matches!(found, Err(StoreError::UnknownCursor)), "{cursor}");
    }
}

/// A stored payment keeps the details of its first sighting.
pub async fn unclaimed_payment_is_stored_once(store: Arc<dyn PaymentStore>) {
    let first = put(&*store, unclaimed(1, 7)).await;
    put(&*store, UnclaimedPayment { seen_at: after(MINUTE), ..first.clone() }).await;
    assert_eq!(newest(&*store, 10).await, (vec![first], 1));
}

/// A payment that an account has is not unclaimed, in either order.
pub async fn used_payment_is_not_unclaimed(store: Arc<dyn PaymentStore>) {
    let owner = customer(&*store, BASE).await;
    for number in [1, 2, 3] {
        put(&*store, unclaimed(number, 17)).await;
    }
    credited(&*store, credit(&owner.id, payment_by(1, tx(1)))).await;
    assert_eq!(stored(&*store).await, [tx(3).hash, tx(2).hash]);
    buyer(&*store, 2).await;
    put(&*store, unclaimed(2, 17)).await;
    assert_eq!(stored(&*store).await, [tx(3).hash]);
}

/// Those in given blocks of a chain are found, and deleted unless they have moved to other blocks.
pub async fn removed_payments_are_not_unclaimed(store: Arc<dyn PaymentStore>) {
    for (number, block) in [(1, 7), (2, 8), (3, 8), (4, 9), (4, 10)] {
        put(&*store, unclaimed(number, block)).await;
    }
    let mut elsewhere = unclaimed(5, 8);
    let TxRef { chain_id, .. } = elsewhere.arrival.tx;
    (elsewhere.arrival.tx, elsewhere.arrival.target.chain_id) = (tx_on(chain_id + 1, 5), chain_id + 1);
    elsewhere.arrival.payment = Err(PaymentFault::HasInput);
    put(&*store, elsewhere).await;
    let gone = store.unclaimed_in(chain_id, 8..=9).await.unwrap();
    let mut found: Vec<_> = gone.iter().map(|one| (one.arrival.block.number, one.arrival.tx.hash)).collect();
    found.sort_unstable();
    assert_eq!(found, [(8, tx(2).hash), (8, tx(3).hash), (9, tx(4).hash)]);
    // The second is mined again in another block of the same number.
    let mut moved = unclaimed(2, 8);
    moved.arrival.block.hash = [99; 32];
    put(&*store, moved).await;
    store.forget_unclaimed(gone).await.unwrap();
    let [fifth, fourth, second, first] = [5, 4, 2, 1].map(|number| tx(number).hash);
    assert_eq!(stored(&*store).await, [fifth, fourth, second, first]);
    let kept = newest(&*store, 10).await.0;
    assert_eq!((kept[1].arrival.block.number, kept[2].arrival.block.hash), (10, [99; 32]));
    let rest = store.unclaimed_in(chain_id, 0..=u64::from(u32::MAX)).await.unwrap();
    store.forget_unclaimed(rest).await.unwrap();
    assert_eq!(stored(&*store).await, [fifth]);
}
