//! Contracts for payments that processors took: each is credited once, and reversals take back their part of it, each once
//! and in any order.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::chains::{Address, TokenUnits};
use metering_core::events::EventKind::{PaymentCredited, PaymentReversed};
use metering_core::money::{Currency, LedgerKind};
use metering_core::operators::AuditQuery;
use metering_core::payments::{
    CurrencyAmount, Payment, PaymentSettlement, PaymentUse, ProcessorRef, ProcessorReversal,
};
use metering_core::store::{
    FullStore, PaymentCredit, PaymentCredited as Credited, PaymentStore, ProcessorReversed, RecordedReversal,
    ReversalChange,
};
use metering_core::usage::DayRange;

use super::event_scene::reported;
use super::sale::{Books, SOLD, after, credit, payment_by};
use super::scene::{
    BASE, MINUTE, NOON, Verified, accepted, account, assert_verified, balance, charge, customer, new_id, racing,
};

/// The amount paid, in cents.
const PAID: u128 = 1_000;

fn reference(id: &str) -> ProcessorRef {
    ProcessorRef::new("stripe", id).unwrap()
}

fn paid(account: &AccountId, id: &str) -> PaymentCredit {
    let payment = Payment {
        payer: Address::ZERO,
        recipient: Address::ZERO,
        token: "EUR".parse::<Currency>().unwrap().token(),
        amount: TokenUnits::new(PAID),
        block_number: 0,
        block_hash: None,
        mined_at: NOON,
        ..payment_by(1, reference(id).tx())
    };
    PaymentCredit { used_as: PaymentUse::Processor, ..credit(account, payment) }
}

pub(super) async fn credited(store: &dyn PaymentStore, account: &AccountId, id: &str) -> Credited {
    store.credit_processor_payment(paid(account, id), reference(id)).await.unwrap()
}

fn reversal(id: &str, amount: u128) -> ReversalChange {
    ReversalChange {
        reversal: reference(id),
        payment: reference("pi_1"),
        amount: Some(TokenUnits::new(amount)),
        reason: "requested_by_customer".to_owned(),
        restored: false,
        again: false,
        now: after(MINUTE),
    }
}

fn end(id: &str, amount: u128) -> ReversalChange {
    ReversalChange { restored: true, ..reversal(id, amount) }
}

async fn reversed(store: &dyn PaymentStore, change: ReversalChange) -> RecordedReversal {
    match store.reverse_processor_payment(change).await.unwrap() {
        ProcessorReversed::Recorded(recorded) => *recorded,
        refusal => panic!("it was not recorded: {refusal:?}"),
    }
}

async fn settlement(store: &dyn PaymentStore) -> PaymentSettlement {
    store.payment(&reference("pi_1").tx()).await.unwrap().expect("the payment is recorded").settlement
}

/// A payment is credited once. Its record names the processor, and is final.
pub async fn processor_payment_is_credited_once(store: Verified<dyn PaymentStore>) {
    let (customer, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let outcome = credited(&*store, &customer.id, "pi_1").await;
    assert_eq!(outcome, Credited::Account(account(&*store, &customer.id).await));
    assert_eq!(balance(&*store, &customer.id).await, SOLD + BASE);
    let record = store.payment(&reference("pi_1").tx()).await.unwrap().expect("the payment is recorded");
    assert_eq!((record.processor, record.settlement), (Some(reference("pi_1")), PaymentSettlement::Final));
    let books = Books::read(&*store).await;
    assert!(matches!(credited(&*store, &customer.id, "pi_1").await, Credited::Repeated(..)));
    assert_eq!(credited(&*store, &other.id, "pi_1").await, Credited::TxUsed);
    assert_eq!(Books::read(&*store).await, books, "nothing changed");
    assert!(matches!(credited(&*store, &customer.id, "pi_2").await, Credited::Account(_)), "another payment");
}

/// A payment for a revoked account is credited, because its money was taken, and listed until all of it is reversed.
pub async fn a_payment_for_a_revoked_account_is_credited_and_listed(store: Verified<dyn FullStore>) {
    let (before, gone) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    credited(&*store, &before.id, "pi_0").await;
    store.revoke_account(&before.id, after(MINUTE)).await.unwrap();
    store.revoke_account(&gone.id, NOON).await.unwrap();
    let listed = async || {
        let found = store.payments_of_revoked(10).await.unwrap();
        found.iter().map(|record| (record.account.clone(), record.processor.clone())).collect::<Vec<_>>()
    };
    assert!(listed().await.is_empty(), "what was bought before is not listed");
    for id in ["pi_1", "pi_2"] {
        let outcome = credited(&*store, &gone.id, id).await;
        assert_eq!(outcome, Credited::Account(account(&*store, &gone.id).await));
        assert!(matches!(credited(&*store, &gone.id, id).await, Credited::Repeated(..)));
    }
    assert_eq!(credited(&*store, &new_id(), "pi_3").await, Credited::NoSuchAccount);
    assert_eq!(balance(&*store, &gone.id).await, BASE + 2 * SOLD);
    let [first, second] = ["pi_1", "pi_2"].map(|id| (gone.id.clone(), Some(reference(id))));
    assert_eq!(listed().await, [second.clone(), first.clone()], "newest first");
    assert_eq!(store.payments_of_revoked(1).await.unwrap().len(), 1);
    // How much of the first payment is reversed, what is listed then
    let table = [
        (reversal("re_1", PAID / 4), vec![second.clone(), first.clone()]),
        (reversal("re_2", PAID), vec![second.clone()]),
        (end("re_2", PAID), vec![second, first]),
    ];
    for (change, expected) in table {
        reversed(&*store, change.clone()).await;
        assert_eq!(listed().await, expected, "{change:?}");
    }
    assert_eq!(balance(&*store, &gone.id).await, BASE + 2 * SOLD - SOLD / 4);
}

/// Of many concurrent reports of a payment, one credits it, even if they name different accounts.
pub async fn concurrent_processor_payments_credit_once(store: Verified<dyn PaymentStore>) {
    let customers = [customer(&*store, BASE).await, customer(&*store, BASE).await];
    let outcomes = racing(&store, 0..8, |store, number| {
        let id = customers[number % 2].id.clone();
        async move { credited(&*store, &id, "pi_1").await }
    })
    .await;
    let first = outcomes.iter().filter(|outcome| matches!(outcome, Credited::Account(_))).count();
    let repeated = outcomes.iter().filter(|outcome| matches!(outcome, Credited::Repeated(..))).count();
    let used = outcomes.iter().filter(|outcome| matches!(outcome, Credited::TxUsed)).count();
    assert_eq!((first, repeated, used), (1, 3, 4), "{outcomes:?}");
    let balances = [balance(&*store, &customers[0].id).await, balance(&*store, &customers[1].id).await];
    assert_eq!(balances.iter().sum::<i64>(), SOLD + 2 * BASE);
}

/// Reversals take back their part, even if it was spent, and all of it together at most. One that ends gives it back.
pub async fn reversals_of_a_processor_payment_add_up(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, &customer.id, "pi_1").await;
    accepted(&*store, charge(customer.key, SOLD), NOON).await;
    let part = reversed(&*store, reversal("re_1", PAID / 4)).await;
    assert_eq!(part.account, account(&*store, &customer.id).await);
    assert_eq!(balance(&*store, &customer.id).await, BASE - SOLD / 4, "a debt");
    assert_eq!(settlement(&*store).await, PaymentSettlement::Final);
    assert_verified(&*store).await;
    let rest = reversed(&*store, reversal("dp_1", PAID)).await;
    assert_eq!((rest.amount.get(), balance(&*store, &customer.id).await), (PAID, BASE - SOLD));
    assert_eq!(settlement(&*store).await, PaymentSettlement::Reversed { at: after(MINUTE) });
    assert_verified(&*store).await;
    reversed(&*store, end("dp_1", PAID)).await;
    assert_eq!(balance(&*store, &customer.id).await, BASE - SOLD / 4);
    assert_eq!(settlement(&*store).await, PaymentSettlement::Final);
    let kinds: Vec<_> = store.ledger(None, 10).await.unwrap().items.into_iter().map(|entry| entry.kind).collect();
    let expected = [LedgerKind::PaymentReversed, LedgerKind::PaymentReversed, LedgerKind::PaymentRestored];
    assert_eq!(kinds[2..], expected);
    let recorded: Vec<ProcessorReversal> = store.processor_reversals(&reference("pi_1").tx().hash).await.unwrap();
    let ended: Vec<_> = recorded.iter().map(|known| (known.reference.id(), known.restored_at.is_some())).collect();
    assert_eq!(
        ended,
        [("re_1", false), ("dp_1", true)],
        "ordered by when they were reported, even within one millisecond"
    );
}

/// A reversal counts once, on its first terms. One that ended stays ended, even if its end came first, until it is
/// reported to take credits back again.
pub async fn a_reversal_counts_once(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let unknown = store.reverse_processor_payment(reversal("re_1", 1)).await.unwrap();
    assert_eq!(unknown, ProcessorReversed::NoSuchPayment);
    credited(&*store, &customer.id, "pi_1").await;
    reversed(&*store, reversal("re_1", PAID / 4)).await;
    reversed(&*store, end("dp_1", PAID)).await;
    let books = Books::read(&*store).await;
    for change in [reversal("re_1", PAID / 4), reversal("dp_1", PAID), end("dp_1", PAID)] {
        let outcome = store.reverse_processor_payment(change).await.unwrap();
        assert!(matches!(outcome, ProcessorReversed::Repeated(_)), "{outcome:?}");
    }
    let other = store.reverse_processor_payment(reversal("re_1", 7)).await.unwrap();
    assert!(matches!(other, ProcessorReversed::OtherTerms(_)), "{other:?}");
    let more = store.reverse_processor_payment(reversal("re_2", PAID + 1)).await.unwrap();
    assert_eq!(more, ProcessorReversed::TooMuch(TokenUnits::new(PAID)));
    assert_eq!(Books::read(&*store).await, books, "nothing changed");
    assert_eq!(balance(&*store, &customer.id).await, BASE + SOLD - SOLD / 4);
    assert_verified(&*store).await;
    let again = ReversalChange { again: true, ..reversal("dp_1", PAID) };
    reversed(&*store, again.clone()).await;
    assert_eq!(balance(&*store, &customer.id).await, BASE);
    assert!(matches!(store.reverse_processor_payment(again).await.unwrap(), ProcessorReversed::Repeated(_)));
    reversed(&*store, end("dp_1", PAID)).await;
    assert_eq!(balance(&*store, &customer.id).await, BASE + SOLD - SOLD / 4);
}

/// Of many concurrent reports of a reversal, one takes credits back.
pub async fn concurrent_reversals_count_once(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, &customer.id, "pi_1").await;
    let outcomes = racing(&store, 0..8, |store, number| {
        let change = reversal(if number % 2 == 0 { "re_1" } else { "re_2" }, PAID / 4);
        async move { store.reverse_processor_payment(change).await.unwrap() }
    })
    .await;
    let first = outcomes.iter().filter(|outcome| matches!(outcome, ProcessorReversed::Recorded(_))).count();
    assert_eq!((first, outcomes.len()), (2, 8), "{outcomes:?}");
    assert_eq!(balance(&*store, &customer.id).await, BASE + SOLD / 2);
}

/// Reports count what was paid, less what was reversed, by currency.
pub async fn reports_count_what_was_not_reversed(store: Arc<dyn FullStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, &customer.id, "pi_1").await;
    reversed(&*store, reversal("re_1", PAID / 4)).await;
    reversed(&*store, end("dp_1", PAID)).await;
    let euro = "EUR".parse::<Currency>().unwrap().token();
    let week = DayRange::last_days(NOON, 7);
    for (change, expected) in [(None, vec![(0, euro, PAID * 3 / 4)]), (Some(reversal("re_2", PAID)), vec![])] {
        if let Some(change) = change {
            reversed(&*store, change).await;
        }
        let report = store.operations_report(week).await.unwrap();
        let revenue: Vec<_> = report.revenue.iter().map(|day| (day.chain_id, day.token, day.amount.get())).collect();
        assert_eq!(revenue, expected);
        let worth: Vec<_> = report.values.iter().map(|day| (day.currency.token(), day.amount)).collect();
        let amount = |units| CurrencyAmount::of_minor(units, 2).unwrap();
        assert_eq!(worth, expected.iter().map(|(_, token, units)| (*token, amount(*units))).collect::<Vec<_>>());
        assert_eq!(report.sales.len(), expected.len());
    }
}

/// A processor's payment and its reversal are in the account's events and in the audit log.
pub async fn processor_payments_are_reported(store: Arc<dyn FullStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, &customer.id, "pi_1").await;
    reversed(&*store, reversal("re_1", PAID)).await;
    reversed(&*store, end("re_1", PAID)).await;
    assert_eq!(reported(&*store, &customer.id).await, [PaymentCredited, PaymentReversed, PaymentCredited]);
    let log = store.audit_log(&AuditQuery::default(), 10).await.unwrap();
    let actions: Vec<_> = log.iter().map(|logged| logged.entry.action.as_str()).collect();
    assert_eq!(actions, ["payment.restore", "payment.reverse", "payment.credit"]);
    assert!(log.iter().all(|logged| logged.entry.actor.to_string() == "processor:stripe"), "{log:?}");
}
