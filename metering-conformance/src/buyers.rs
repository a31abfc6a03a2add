//! Contracts for the details of buyers: stored with the time for which they hold, so that receipts keep theirs.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::payments::{Buyer, BuyerRecord};
use metering_core::store::{PaymentCredit, PaymentStore, ReceiptBuyerAdded};

use super::sale::{MOMENT, after, credit, credited, payment_by, tx};
use super::scene::{BASE, MINUTE, NOON, customer, new_id};

fn details(name: &str) -> Buyer {
    Buyer::new(name, &["Straße 1", "10115 Berlin"], Some("DE 123")).unwrap()
}

/// Details are replaced until something is bought. From then on, a change ends them and begins new ones.
pub async fn purchases_keep_their_buyer(store: Arc<dyn PaymentStore>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let read = async |id: &AccountId| store.buyers(id).await.unwrap();
    let record = |buyer, since, until| BuyerRecord { account: owner.id.clone(), since, until, buyer };
    assert_eq!(read(&owner.id).await, []);
    for name in ["Jörg", "Acme “Söhne”"] {
        assert!(store.set_buyer(&owner.id, Some(details(name)), NOON).await.unwrap());
    }
    let first = details("Acme “Söhne”");
    assert_eq!(read(&owner.id).await, [record(first.clone(), NOON, None)], "nothing was bought with the first name");
    let bought = after(MINUTE);
    let payment = credit(&owner.id, payment_by(1, tx(1)));
    credited(&*store, PaymentCredit { now: bought, ..payment }).await;
    let plain = Buyer::new::<&str>("Plain", &[], None).unwrap();
    let changed = after(2 * MINUTE);
    assert!(store.set_buyer(&owner.id, Some(plain.clone()), changed).await.unwrap());
    let kept = record(first, NOON, Some(changed));
    assert_eq!(read(&owner.id).await, [kept.clone(), record(plain, changed, None)]);
    assert!(kept.covers(bought));
    assert!(store.set_buyer(&owner.id, None, after(3 * MINUTE)).await.unwrap());
    assert_eq!(read(&owner.id).await, [kept], "nothing was bought with the second details");
    assert_eq!(read(&other.id).await, []);
    assert!(!store.set_buyer(&new_id(), None, NOON).await.unwrap(), "there is no such account");
}

/// A receipt without a buyer gets the current details, once.
pub async fn a_receipt_gets_its_buyer_once(store: Arc<dyn PaymentStore>) {
    use ReceiptBuyerAdded::{Added, NoBuyer, Taken};
    let owner = customer(&*store, BASE).await;
    let add = async || store.add_receipt_buyer(&owner.id, NOON).await.unwrap();
    assert_eq!(add().await, NoBuyer);
    let (now, later) = (after(MINUTE), after(2 * MINUTE));
    store.set_buyer(&owner.id, Some(details("Acme")), now).await.unwrap();
    assert_eq!([add().await, add().await], [Added, Added], "a repeated request changes nothing");
    store.set_buyer(&owner.id, Some(details("Other")), later).await.unwrap();
    assert_eq!(add().await, Taken);
    let records = store.buyers(&owner.id).await.unwrap();
    let account = owner.id.clone();
    let added = BuyerRecord { account, since: NOON, until: Some(NOON.saturating_add(MOMENT)), buyer: details("Acme") };
    assert_eq!(records[0], added);
    assert_eq!((records.len(), &records[1].buyer, records[1].since), (2, &details("Other"), now));
    assert_eq!(store.add_receipt_buyer(&new_id(), NOON).await.unwrap(), NoBuyer);
}
