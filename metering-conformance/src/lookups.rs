//! Contracts for what operators find across the parts of the store: payments and failing deliveries.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::chains::{TxHash, TxRef};
use metering_core::events::{AttemptOutcome, Delivery, WebhookOwner};
use metering_core::operators::{PaymentFilter, PaymentState, Period};
use metering_core::payments::{PaymentRecord, ReceiptNumber, ReceiptTerms};
use metering_core::store::{FullStore, PaymentCredit};

use super::event_scene::{LEASE, MANY, hook, send_tests};
use super::sale::{credit, credited, payment_by, tx, tx_on};
use super::scene::{DAY, NOON, customer, paged};

/// The first byte of the hash of each payment that matches, in pages of `limit`.
async fn listed(store: &dyn FullStore, filter: &PaymentFilter, limit: u32) -> Vec<u8> {
    let found = paged(limit, async |after, limit| store.newest_payments(filter, after, limit).await).await;
    found.iter().map(|record| record.payment.tx.hash.as_bytes()[0]).collect()
}

/// Payments are listed newest first, by the day of recording, their state, account and chain.
pub async fn newest_payments_are_first(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    assert!(listed(&*store, &PaymentFilter::default(), 5).await.is_empty());
    for number in 1..=4_u8 {
        let now = NOON.saturating_add(DAY * u32::from(number));
        credited(&*store, PaymentCredit { now, ..credit(&id, payment_by(number, tx(number))) }).await;
    }
    for limit in [1, 3, 4, 5] {
        assert_eq!(listed(&*store, &PaymentFilter::default(), limit).await, [4, 3, 2, 1], "pages of {limit}");
    }
    let (from, until) = (Some(NOON.saturating_add(DAY * 2)), Some(NOON.saturating_add(DAY * 4)));
    let recorded = PaymentFilter { recorded: Period { from, until }, ..PaymentFilter::default() };
    assert_eq!(listed(&*store, &recorded, 5).await, [3, 2]);
    let state = |state| PaymentFilter { state: Some(state), ..PaymentFilter::default() };
    assert_eq!(listed(&*store, &state(PaymentState::Unsettled), 5).await, [4, 3, 2, 1]);
    assert!(listed(&*store, &state(PaymentState::Final), 5).await.is_empty());
    assert!(listed(&*store, &state(PaymentState::Reversed), 5).await.is_empty());
    let other = customer(&*store, 0).await.id;
    credited(&*store, credit(&other, payment_by(5, tx_on(1, 5)))).await;
    let of = |account: &AccountId| PaymentFilter { account: Some(account.clone()), ..PaymentFilter::default() };
    assert_eq!(listed(&*store, &of(&id), 3).await, [4, 3, 2, 1]);
    assert_eq!(listed(&*store, &of(&other), 5).await, [5]);
    let on = |chain_id| PaymentFilter { chain_id: Some(chain_id), ..PaymentFilter::default() };
    assert_eq!(listed(&*store, &on(tx(1).chain_id), 3).await, [4, 3, 2, 1]);
    assert_eq!(listed(&*store, &on(1), 5).await, [5]);
    assert!(listed(&*store, &PaymentFilter { account: Some(id), ..on(1) }, 5).await.is_empty());
}

/// Payments are found by their hash on every chain, and by the number of their receipt on one.
pub async fn payments_are_found_by_hash_and_receipt(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    let txs = [tx(1), tx_on(1, 1), tx(2)];
    for tx in txs {
        credited(&*store, credit(&id, payment_by(tx.hash.as_bytes()[0], tx))).await;
    }
    let of_hash =
        |records: Vec<PaymentRecord>| -> Vec<TxRef> { records.iter().map(|record| record.payment.tx).collect() };
    assert_eq!(of_hash(store.payments_by_hash(&tx(1).hash).await.unwrap()), txs[..2]);
    assert_eq!(of_hash(store.payments_by_hash(&tx(3).hash).await.unwrap()), []);
    for tx in txs {
        assert_eq!(of_hash(store.payments_by_receipt(&ReceiptNumber::of(&tx)).await.unwrap()), [tx]);
    }
    // The same beginning of the hash, and another end.
    let mut bytes = [1; 32];
    bytes[31] = 2;
    let similar = TxRef { hash: TxHash::from_bytes(bytes), ..tx(1) };
    assert_eq!(of_hash(store.payments_by_hash(&similar.hash).await.unwrap()), []);
    assert_eq!(of_hash(store.payments_by_receipt(&ReceiptNumber::of(&similar)).await.unwrap()), [tx(1)]);
    assert_eq!(of_hash(store.payments_by_receipt(&ReceiptNumber::of(&tx_on(1, 2))).await.unwrap()), []);
    let terms = ReceiptTerms { numbering: Some("INV-".parse().unwrap()), ..ReceiptTerms::default() };
    store.set_receipt_terms(terms, NOON).await.unwrap();
    credited(&*store, credit(&id, payment_by(4, tx(4)))).await;
    let numbered = async |text: &str| store.payment_by_number(&text.parse().unwrap()).await.unwrap();
    assert_eq!(numbered("INV-00001").await.map(|record| record.payment.tx), Some(tx(4)));
    assert_eq!(numbered("INV-00002").await, None);
}

/// All failing deliveries, read one by one.
async fn failing(store: &dyn FullStore) -> Vec<Delivery> {
    paged(1, async |after, limit| store.failing_deliveries(after, limit).await).await
}

/// A delivery fails from its first failed attempt until it is delivered. Those behind it are not listed.
pub async fn failing_deliveries_are_listed(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    let webhook = hook(&*store, &id, &[]).await;
    let sent = send_tests(&*store, &webhook, 2).await;
    assert_eq!(failing(&*store).await, []);
    let owner = WebhookOwner::Customers;
    let mut due = store.claim_deliveries(NOON, LEASE, MANY, owner).await.unwrap();
    let first = due.remove(0).delivery;
    assert_eq!(first.id, sent[0].id);
    assert_eq!(failing(&*store).await, [], "an attempt in progress has not failed");
    let failed =
        AttemptOutcome::Failed { status: Some(500), error: "HTTP 500".to_owned(), retry_after: None, response: None };
    let failed = store.finish_delivery(first.id, first.progress.attempts, failed, NOON).await.unwrap();
    let failed = failed.expect("the attempt is the current one");
    assert_eq!(failing(&*store).await, std::slice::from_ref(&failed));
    let next = failed.progress.next_at;
    let again = store.claim_deliveries(next, LEASE, MANY, owner).await.unwrap().remove(0).delivery;
    let delivered = AttemptOutcome::Delivered { status: 200 };
    store.finish_delivery(again.id, again.progress.attempts, delivered, next).await.unwrap();
    assert_eq!(failing(&*store).await, []);
}
