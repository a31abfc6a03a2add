//! Contracts for what is stored of receipts and credit notes: the terms of their time, and numbers without gaps.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::payments::{
    Buyer, CreditNoteNumber, IssuedReceipt, ProcessorRef, ReceiptTerms, ReceiptTermsRecord, SalesTax, Seller,
    SettlementStep,
};
use metering_core::store::{PaymentCredit, PaymentStore, ReversalChange, SettlementChange};
use tokio::task::JoinSet;

use super::processors;
use super::sale::{after, credit, credited, payment_by, tx};
use super::scene::{BASE, MINUTE, NOON, customer};

fn terms(prefix: Option<&str>) -> ReceiptTerms {
    ReceiptTerms {
        seller: Seller {
            name: "Größe “x” Ltd".to_owned(),
            address: ["1 High Street", "London"].map(str::to_owned).to_vec(),
            tax_id: Some("DE 1".to_owned()),
            contact: None,
        },
        tax: Some(SalesTax { name: "VAT".to_owned(), rate: "0.19".parse().unwrap(), reverse_charge: true }),
        numbering: prefix.map(|prefix| prefix.parse().unwrap()),
    }
}

/// The issued ones of an account, by number and terms.
async fn issued(store: &dyn PaymentStore, account: &AccountId) -> Vec<IssuedReceipt> {
    let mut issued = store.issued_receipts(account).await.unwrap();
    issued.sort_by_key(|one| (one.number.as_ref().map(|number| number.sequence), one.terms));
    issued
}

/// A receipt keeps the terms that held when its payment was credited. Default terms are not recorded as the first ones.
pub async fn receipts_keep_the_terms_of_their_payment(store: Arc<dyn PaymentStore>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let (first, plain) = (terms(None), ReceiptTerms { tax: None, ..terms(None) });
    store.set_receipt_terms(plain.clone(), NOON).await.unwrap();
    assert_eq!(store.receipt_terms().await.unwrap(), []);
    credited(&*store, credit(&owner.id, payment_by(1, tx(1)))).await;
    for at in [NOON, after(MINUTE)] {
        store.set_receipt_terms(first.clone(), at).await.unwrap();
    }
    credited(&*store, credit(&owner.id, payment_by(2, tx(2)))).await;
    store.set_receipt_terms(plain.clone(), after(2 * MINUTE)).await.unwrap();
    credited(&*store, credit(&owner.id, payment_by(3, tx(3)))).await;
    let record = |number, since, terms| ReceiptTermsRecord { number, since, terms };
    let expected = [record(1, NOON, first), record(2, after(2 * MINUTE), plain)];
    assert_eq!(store.receipt_terms().await.unwrap(), expected);
    let receipt = |tx, terms| {
        let account = owner.id.clone();
        IssuedReceipt { account, tx, part: 0, terms, reverse_charge: false, number: None }
    };
    assert_eq!(issued(&*store, &owner.id).await, [receipt(tx(2), 1), receipt(tx(3), 2)]);
    assert_eq!(issued(&*store, &other.id).await, []);
}

/// Whether a buyer owes the tax is decided by who buys when the payment is credited.
pub async fn reverse_charge_is_decided_with_the_payment(store: Arc<dyn PaymentStore>) {
    let owner = customer(&*store, BASE).await;
    store.set_receipt_terms(terms(Some("INV-")), NOON).await.unwrap();
    for (number, tax_id) in [(1_u8, Some("FR 2")), (2, Some("DE 3")), (3, None)] {
        let at = after(MINUTE * u32::from(number));
        let buyer = Buyer::new::<&str>("Acme", &[], tax_id).unwrap();
        assert!(store.set_buyer(&owner.id, Some(buyer), at).await.unwrap());
        credited(&*store, PaymentCredit { now: at, ..credit(&owner.id, payment_by(number, tx(number))) }).await;
    }
    let owed: Vec<bool> = issued(&*store, &owner.id).await.iter().map(|one| one.reverse_charge).collect();
    assert_eq!(owed, [true, false, false]);
}

/// Concurrent payments, of which some are refused, have consecutive numbers.
pub async fn concurrent_receipts_have_consecutive_numbers(store: Arc<dyn PaymentStore>) {
    numbered([Arc::clone(&store), store]).await;
}

/// The contract for consecutive numbers, with one opener of a store or two.
pub(super) async fn numbered(stores: [Arc<dyn PaymentStore>; 2]) {
    const PAYMENTS: u8 = 12;
    let store = Arc::clone(&stores[0]);
    let customers = [customer(&*store, BASE).await.id, customer(&*store, BASE).await.id];
    store.set_receipt_terms(terms(Some("INV-{year}-")), NOON).await.unwrap();
    let mut credits = JoinSet::new();
    for number in 0..2 * PAYMENTS {
        let opener = usize::from(number % 2);
        let (store, id) = (Arc::clone(&stores[opener]), customers[opener].clone());
        let number = number / 2 + 1;
        credits.spawn(async move { store.credit_payment(credit(&id, payment_by(number, tx(number)))).await.unwrap() });
    }
    credits.join_all().await;
    let mut numbers = Vec::new();
    for id in &customers {
        numbers.extend(issued(&*store, id).await.into_iter().map(|one| one.number.unwrap().to_string()));
    }
    numbers.sort();
    let year = NOON.to_string()[..4].to_owned();
    let expected: Vec<String> = (1..=PAYMENTS).map(|place| format!("INV-{year}-{place:05}")).collect();
    assert_eq!(numbers, expected);
}

/// A credit note has the next number, once, even if its reversal is reported again. One that took nothing back has none until
/// it does, and one that takes back again has another, even if all of it is reported in the same millisecond.
pub async fn credit_notes_have_the_next_numbers(store: Arc<dyn PaymentStore>) {
    let owner = customer(&*store, BASE).await;
    store.set_receipt_terms(terms(Some("INV-")), NOON).await.unwrap();
    processors::credited(&*store, &owner.id, "pi_1").await;
    let named = |id| ProcessorRef::new("stripe", id).unwrap();
    let [begins, ends, again] = [(false, false), (true, false), (false, true)];
    let refund = [("re_1", begins), ("re_1", begins), ("re_1", ends)];
    let dispute = [("dp_1", again), ("dp_1", ends), ("dp_1", again)];
    for (id, (restored, again)) in [("dp_1", ends)].into_iter().chain(refund).chain(dispute) {
        let (reversal, payment) = (named(id), named("pi_1"));
        let (reason, now) = ("Unused".to_owned(), after(MINUTE));
        let change = ReversalChange { reversal, payment, amount: None, reason, restored, again, now };
        store.reverse_processor_payment(change).await.unwrap();
    }
    credited(&*store, credit(&owner.id, payment_by(1, tx(1)))).await;
    let seen = store.payment(&tx(1)).await.unwrap().expect("the payment is recorded");
    store.settle_payment(SettlementChange { seen, step: SettlementStep::Reverse, now: NOON }).await.unwrap();
    let reversals = store.processor_reversals(&named("pi_1").tx().hash).await.unwrap();
    let [refund, dispute] = ["re_1", "dp_1"].map(|id| {
        let reversal = reversals.iter().find(|known| known.reference == named(id)).unwrap();
        CreditNoteNumber::of_reversal(reversal).part()
    });
    let issued = issued(&*store, &owner.id).await;
    let places: Vec<_> = issued.iter().map(|one| (one.number.as_ref().unwrap().sequence, one.tx, one.part)).collect();
    let paid = named("pi_1").tx();
    let again = issued[3].part;
    assert!(![0, refund, dispute].contains(&again));
    let expected =
        [(1, paid, 0), (2, paid, refund), (3, paid, dispute), (4, paid, again), (5, tx(1), 0), (6, tx(1), 1)];
    assert_eq!(places, expected);
}

/// A reversal has no credit note while others take back all of the payment. It gets one, with the next number, in the
/// transaction that ends the other. One that takes back again gets another.
pub async fn credit_notes_wait_for_room(store: Arc<dyn PaymentStore>) {
    let owner = customer(&*store, BASE).await;
    store.set_receipt_terms(terms(Some("INV-")), NOON).await.unwrap();
    processors::credited(&*store, &owner.id, "pi_1").await;
    let named = |id| ProcessorRef::new("stripe", id).unwrap();
    let [begins, ends, again] = [(false, false), (true, false), (false, true)];
    // the reversal, the minute, what happens to it, how many documents there are then
    let table = [
        ("dp_1", 1_u32, begins, 2),
        ("re_1", 2, begins, 2),
        ("dp_1", 3, ends, 3),
        ("re_1", 4, ends, 3),
        ("dp_1", 5, again, 4),
    ];
    for (id, minute, (restored, again), count) in table {
        let (reversal, payment, reason) = (named(id), named("pi_1"), "Unused".to_owned());
        let now = after(minute * MINUTE);
        let change = ReversalChange { reversal, payment, amount: None, reason, restored, again, now };
        store.reverse_processor_payment(change).await.unwrap();
        assert_eq!(issued(&*store, &owner.id).await.len(), count, "{id} in minute {minute}");
    }
    let reversals = store.processor_reversals(&named("pi_1").tx().hash).await.unwrap();
    let part = |id| {
        let reversal = reversals.iter().find(|known| known.reference == named(id)).unwrap();
        CreditNoteNumber::of_reversal(reversal).part()
    };
    let parts: Vec<_> = issued(&*store, &owner.id).await.iter().map(|one| one.part).collect();
    assert_eq!(parts[..3], [0, part("dp_1"), part("re_1")]);
    assert!(!parts[..3].contains(&parts[3]), "what takes back again has another credit note: {parts:?}");
    let dispute = reversals.iter().find(|known| known.reference == named("dp_1")).unwrap();
    assert_eq!(dispute.interruptions, [(after(3 * MINUTE), after(5 * MINUTE))]);
}
