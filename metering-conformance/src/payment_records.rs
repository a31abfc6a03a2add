//! Contracts for payment records, which make a transaction count once and are never deleted.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::chains::{Address, TokenUnits};
use metering_core::clock::Timestamp;
use metering_core::money::LedgerKind;
use metering_core::payments::{Payment, PaymentRecord, PaymentSettlement, PaymentUse, PaymentValue, Quote, SoldPlan};
use metering_core::store::{Claimed, PaymentCredit, PaymentCredited, PaymentStore};

use super::sale::{
    Books, PLAN, claim, claimed, credit, credited, open, payment_by, purchase, quote, sold, tx, tx_on, value, wallet,
};
use super::scene::{BASE, DAY, NOON, Verified, customer};

/// An unused transaction has no record, even with a similar hash or with the same hash on another chain.
pub async fn an_unused_transaction_has_no_record(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    open(&*store, quote(2)).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    for unused in [tx(0), tx(2), tx_on(1, 1), tx_on(8454, 1)] {
        assert_eq!(store.payment(&unused).await.unwrap(), None, "{unused}");
    }
    assert_eq!(store.payments(None, 10).await.unwrap().items.len(), 1);
}

/// All fields of a payment are stored exactly: the largest amounts and numbers, and times to the millisecond.
pub async fn payments_are_stored_unchanged(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let at = Timestamp::from_unix_millis;
    let units = TokenUnits::new;
    let payments = [
        payment_by(1, tx(1)),
        Payment { amount: TokenUnits::MAX, block_number: u64::MAX, block_hash: None, ..payment_by(2, tx(2)) },
        Payment { amount: units(u128::MAX - 1), block_number: 1 << 63, ..payment_by(3, tx(3)) },
        Payment { amount: units(1 << 64), block_number: (1 << 63) - 1, ..payment_by(4, tx_on(u64::MAX, 4)) },
        Payment { amount: units((1 << 64) - 1), block_number: 0, ..payment_by(5, tx_on(1, 5)) },
        Payment { amount: TokenUnits::ZERO, mined_at: at(-1), token: Address::ZERO, ..payment_by(6, tx(6)) },
        Payment { mined_at: at(253_402_300_799_999), recipient: wallet(0xFF), ..payment_by(0xFE, tx(0xFF)) },
    ];
    let mut records = Vec::new();
    for (payment, n) in payments.into_iter().zip(0..) {
        let now = NOON.saturating_add(DAY * n);
        let used_as = if n % 2 == 0 { PaymentUse::Topup } else { PaymentUse::Assigned };
        let sold = match n % 3 {
            0 => None,
            1 => Some(sold()),
            _ => Some(SoldPlan { label: String::new(), bonus_credits: None, token_decimals: u8::MAX, ..sold() }),
        };
        // All members, only the currency, or none of them.
        let value = match n % 3 {
            0 => Some(value()),
            1 => Some(PaymentValue { converted: None, ..value() }),
            _ => None,
        };
        let credit = credit(&customer.id, payment.clone());
        credited(&*store, PaymentCredit { now, used_as, sold: sold.clone(), value: value.clone(), ..credit }).await;
        let settlement =
            if payment.block_hash.is_some() { PaymentSettlement::Unsettled } else { PaymentSettlement::Final };
        let record = PaymentRecord::of(payment, customer.id.clone(), used_as, now);
        records.push(PaymentRecord { plan_id: Some(PLAN.to_owned()), sold, value, settlement, ..record });
    }
    for record in &records {
        assert_eq!(store.payment(&record.payment.tx).await.unwrap().as_ref(), Some(record));
    }
    assert_eq!(store.payments(None, 10).await.unwrap().items, records);
}

/// A claim's payment is stored as given, even where it differs from the quote.
pub async fn claim_stores_the_judged_payment(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, Quote { plan_id: "then".to_owned(), ..quote(1) }).await;
    let mut claim = claim(&quote, tx(1));
    claim.payment = Payment { amount: TokenUnits::MAX, block_number: u64::MAX, ..payment_by(2, tx(1)) };
    claim.account.entries = vec![purchase(LedgerKind::PurchasePaySignup, 1, tx(1))];
    let made = claimed(&*store, claim.clone()).await;
    let record = store.payment(&tx(1)).await.unwrap().expect("the payment is recorded");
    assert_eq!((record.payment, record.account), (claim.payment, made.id));
    assert_eq!((record.used_as, record.plan_id.as_deref()), (PaymentUse::PaySignup, Some(PLAN)));
}

async fn listed(store: &dyn PaymentStore) -> Vec<(AccountId, u8)> {
    let records = Books::read(store).await.payments;
    records.into_iter().map(|record| (record.account, record.payment.tx.hash.as_bytes()[0])).collect()
}

/// Records of all accounts are listed in the order of writing, regardless of their times. Refusals write none.
pub async fn records_are_listed_as_written(store: Arc<dyn PaymentStore>) {
    let (first, second) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let mut expected = Vec::new();
    for (number, id) in [(5, &first.id), (3, &second.id), (9, &first.id), (1, &first.id)] {
        let now = NOON.saturating_sub(DAY * u32::from(number));
        credited(&*store, PaymentCredit { now, ..credit(id, payment_by(number, tx(number))) }).await;
        expected.push((id.clone(), number));
        let other = if *id == first.id { &second.id } else { &first.id };
        let refused = store.credit_payment(credit(other, payment_by(number, tx(number)))).await.unwrap();
        assert_eq!(refused, PaymentCredited::TxUsed);
        let quote = open(&*store, quote(number)).await;
        assert_eq!(store.claim_quote(claim(&quote, tx(number))).await.unwrap(), Claimed::TxUsed);
        expected.push((claimed(&*store, claim(&quote, tx(number + 100))).await.id, number + 100));
    }
    assert_eq!(listed(&*store).await, expected);
}

/// A record outlives the account's revocation, the quote's expiry, and the deletion of expired items.
pub async fn payment_record_is_never_deleted(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    let quote = open(&*store, quote(2)).await;
    let made = claimed(&*store, claim(&quote, tx(2))).await;
    let before = listed(&*store).await;
    store.revoke_account(&customer.id, NOON).await.unwrap();
    store.revoke_account(&made.id, NOON).await.unwrap();
    let much_later = NOON.saturating_add(DAY * 10_000);
    store.forget_expired(much_later).await.unwrap();
    assert_eq!(listed(&*store).await, before);
    let created_at = much_later;
    let expires_at = much_later.saturating_add(DAY);
    let again = open(&*store, Quote { created_at, expires_at, ..quote }).await;
    for used in [1, 2] {
        assert_eq!(store.claim_quote(claim(&again, tx(used))).await.unwrap(), Claimed::TxUsed, "{used}");
    }
}
