//! Contracts for top-ups: a payment is credited once, to one account, unless an open quote matches it.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::Totals;
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Payment, PaymentRecord, PaymentUse, Quote};
use metering_core::store::{Claimed, PaymentCredit, PaymentCredited, PaymentStore, QuotePrecedence};
use metering_core::usage::ActivityKind;

use super::sale::{
    BONUS, Books, MOMENT, PLAN, SOLD, after, buyer, claim, claimed, credit, credited, late_claim, open, payment_by,
    payment_of, purchase, quote, tx, tx_on, wallet,
};
use super::scene::{
    BASE, MINUTE, NOON, Verified, accepted, account, adjustment, atoms, charge, customer, entry, new_id, refused,
};

/// Credits a payment and expects `refusal` and no changes.
async fn assert_refused(store: &dyn PaymentStore, credit: PaymentCredit, refusal: PaymentCredited) {
    let before = Books::read(store).await;
    assert_eq!(store.credit_payment(credit.clone()).await.unwrap(), refusal, "{credit:?}");
    assert_eq!(Books::read(store).await, before, "{credit:?}");
    assert_eq!(store.linked_accounts(&credit.payment.payer).await.unwrap(), [], "{credit:?}");
}

/// A payment is credited atomically: the balance, the ledger entry, and the record that makes it count once.
pub async fn a_payment_is_credited(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let credit = PaymentCredit { now: after(MINUTE), ..credit(&customer.id, payment_by(1, tx(1))) };
    let after_it = credited(&*store, credit.clone()).await;
    let totals =
        Totals { balance: atoms(SOLD + BASE), purchased: atoms(SOLD), granted: atoms(BASE), ..Totals::default() };
    assert_eq!(after_it.totals, totals);
    assert_eq!(account(&*store, &customer.id).await, after_it);
    let paid = Some(PaymentRef { tx: tx(1), plan_id: Some(PLAN.to_owned()) });
    let written = store.ledger(None, 10).await.unwrap().items.remove(1);
    assert_eq!((&written.account, written.kind, written.amount), (&customer.id, credit.entry.kind, atoms(SOLD)));
    assert_eq!((&written.description, written.created_at), (&credit.entry.description, after(MINUTE)));
    assert_eq!(written.payment, paid);
    let shown = store.activity(&customer.id, 1).await.unwrap().remove(0);
    assert_eq!(shown.kind, ActivityKind::Ledger(LedgerKind::PurchaseTopup));
    assert_eq!((shown.amount, shown.payment), (atoms(SOLD), paid));
    let record = PaymentRecord {
        plan_id: Some(PLAN.to_owned()),
        sold: credit.sold,
        value: credit.value,
        ..PaymentRecord::of(credit.payment, customer.id, PaymentUse::Topup, after(MINUTE))
    };
    assert_eq!(store.payment(&tx(1)).await.unwrap(), Some(record));
}

/// Credits from a payment can be spent by the next charge.
pub async fn credited_payment_takes_effect_immediately(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    accepted(&*store, charge(customer.key, 3 * BASE), NOON).await;
    let refusal = refused(&*store, charge(customer.key, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    let receipt = accepted(&*store, charge(customer.key, BASE), NOON).await;
    assert_eq!(receipt.balance, atoms(SOLD - 3 * BASE));
}

/// A credit can have an entry of any kind, with a plan, without a plan, or without naming the payment.
pub async fn credit_equals_its_ledger_entry(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, 0).await;
    let plain = |kind| entry(kind, SOLD);
    let of = |number, plan_id| Some(PaymentRef { tx: tx(number), plan_id });
    let entries = [
        NewLedgerEntry { payment: of(0, None), ..plain(LedgerKind::PurchaseTopup) },
        NewLedgerEntry { payment: of(1, Some("größer".to_owned())), ..plain(LedgerKind::Adjustment) },
        plain(LedgerKind::SignupBonus),
        NewLedgerEntry { payment: of(3, None), ..adjustment(-BASE) },
    ];
    for (entry, number) in entries.iter().zip(0..) {
        let used_as = if number % 2 == 0 { PaymentUse::Topup } else { PaymentUse::Assigned };
        let credit = credit(&customer.id, payment_by(1, tx(number)));
        credited(&*store, PaymentCredit { entry: entry.clone(), used_as, ..credit }).await;
        let record = store.payment(&tx(number)).await.unwrap().expect("the payment is recorded");
        let plan_id = entry.payment.clone().and_then(|payment| payment.plan_id);
        assert_eq!((record.used_as, record.plan_id), (used_as, plan_id), "{entry:?}");
    }
    let written = store.ledger(None, 10).await.unwrap().items;
    assert!(written.into_iter().map(|entry| entry.payment).eq(entries.map(|entry| entry.payment)));
    let totals = account(&*store, &customer.id).await.totals;
    assert_eq!((totals.purchased, totals.granted), (atoms(SOLD), atoms(2 * SOLD - BASE)));
}

/// An account that registers its payment again gets the record and the current account.
pub async fn a_repeated_credit_changes_nothing(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    for (number, used_as) in [(1, PaymentUse::Topup), (2, PaymentUse::Assigned)] {
        let first = PaymentCredit { used_as, ..credit(&customer.id, payment_by(number, tx(number))) };
        credited(&*store, first.clone()).await;
        accepted(&*store, charge(customer.key, BASE), NOON).await;
        let record = store.payment(&tx(number)).await.unwrap().expect("the payment is recorded");
        assert_eq!(record.recorded_at, NOON);
        let now = account(&*store, &customer.id).await;
        let again = [
            first.clone(),
            PaymentCredit { used_as: PaymentUse::Topup, link_payer: true, ..first.clone() },
            PaymentCredit { used_as: PaymentUse::Assigned, now: after(MINUTE), ..first.clone() },
            PaymentCredit { entry: adjustment(i64::MAX), quotes: QuotePrecedence::Account, ..first.clone() },
        ];
        for again in again {
            let result = PaymentCredited::Repeated(now.clone(), Box::new(record.clone()));
            assert_refused(&*store, again, result).await;
        }
    }
}

/// A transaction counts once, for one account. Even the account it created by a claim gets nothing more for it.
pub async fn a_used_transaction_credits_nothing(store: Arc<dyn PaymentStore>) {
    let (first, second) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    credited(&*store, credit(&first.id, payment_by(1, tx(1)))).await;
    let assigned = credit(&first.id, payment_by(2, tx(2)));
    credited(&*store, PaymentCredit { used_as: PaymentUse::Assigned, ..assigned }).await;
    let buyer = buyer(&*store, 3).await;
    let awaited = open(&*store, quote(4)).await;
    let late = claimed(&*store, late_claim(&awaited, tx(4))).await;
    let table = [(&second.id, 1), (&second.id, 2), (&buyer.id, 1), (&buyer.id, 3), (&first.id, 3), (&late.id, 4)];
    for (account, number) in table {
        for link_payer in [false, true] {
            let credit = credit(account, payment_by(number, tx(number)));
            assert_refused(&*store, PaymentCredit { link_payer, ..credit }, PaymentCredited::TxUsed).await;
        }
    }
    store.revoke_account(&first.id, NOON).await.unwrap();
    assert_refused(&*store, credit(&second.id, payment_by(1, tx(1))), PaymentCredited::TxUsed).await;
    // The same hash on another chain is another transaction.
    credited(&*store, credit(&second.id, payment_by(1, tx_on(1, 1)))).await;
}

/// A payment that matches an open quote belongs to the quote and stays unused until the quote is claimed.
pub async fn payment_awaited_by_a_quote_is_not_credited_elsewhere(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let quote = open(&*store, quote(1)).await;
    let payment = payment_of(&quote, tx(1));
    for link_payer in [false, true] {
        let credit = PaymentCredit { link_payer, ..credit(&customer.id, payment.clone()) };
        assert_refused(&*store, credit, PaymentCredited::BelongsToQuote).await;
        assert_eq!(store.payment(&tx(1)).await.unwrap(), None);
    }
    // Payments that do not match the quote can be credited.
    credited(&*store, credit(&customer.id, payment_by(2, tx(2)))).await;
    let mined_at = quote.honoured_until().saturating_add(MOMENT);
    let too_late = Payment { mined_at, ..payment_of(&quote, tx(3)) };
    credited(&*store, credit(&customer.id, too_late)).await;
    claimed(&*store, claim(&quote, tx(1))).await;
    credited(&*store, credit(&customer.id, payment_of(&quote, tx(4)))).await;
}

/// The payer may give the account precedence over the quote; the quote stays open for another payment.
pub async fn account_may_take_precedence_over_a_quote(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let quote = open(&*store, quote(1)).await;
    let credit = credit(&customer.id, payment_of(&quote, tx(1)));
    credited(&*store, PaymentCredit { quotes: QuotePrecedence::Account, ..credit }).await;
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(quote.clone()));
    let another = payment_of(&quote, tx(2));
    assert_eq!(store.quote_paid_by(&another).await.unwrap(), Some(quote.clone()));
    assert_eq!(store.claim_quote(claim(&quote, tx(1))).await.unwrap(), Claimed::TxUsed);
    claimed(&*store, claim(&quote, tx(2))).await;
}

/// An unknown or revoked account is not credited, and the transaction stays unused.
pub async fn only_live_accounts_are_credited(store: Arc<dyn PaymentStore>) {
    let (revoked, live) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    credited(&*store, credit(&revoked.id, payment_by(1, tx(1)))).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let quote = open(&*store, quote(2)).await;
    for account in [&revoked.id, &new_id()] {
        // A used payment, one that matches a quote, and a free one.
        for payment in [payment_by(1, tx(1)), payment_of(&quote, tx(2)), payment_by(3, tx(3))] {
            let credit = PaymentCredit { link_payer: true, ..credit(account, payment) };
            assert_refused(&*store, credit, PaymentCredited::NoSuchAccount).await;
        }
    }
    credited(&*store, credit(&live.id, payment_by(3, tx(3)))).await;
}

/// An entry that would take the balance out of range changes nothing; the transaction can still be used.
pub async fn a_credit_beyond_range_changes_nothing(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    for kind in [LedgerKind::PurchaseTopup, LedgerKind::Adjustment] {
        let credit = credit(&customer.id, payment_by(1, tx(1)));
        let entry = purchase(kind, i64::MAX, tx(1));
        let beyond = PaymentCredit { entry, link_payer: true, ..credit };
        assert_refused(&*store, beyond, PaymentCredited::OutOfRange).await;
        assert_eq!(store.payment(&tx(1)).await.unwrap(), None);
    }
    let fits = PaymentCredit {
        entry: purchase(LedgerKind::PurchaseTopup, i64::MAX - BASE, tx(1)),
        link_payer: true,
        ..credit(&customer.id, payment_by(1, tx(1)))
    };
    assert_eq!(credited(&*store, fits).await.totals.balance, atoms(i64::MAX));
    assert_eq!(store.linked_accounts(&wallet(1)).await.unwrap(), [customer.id]);
}

/// Crediting an account whose key has not been given out does not give it out.
pub async fn credit_delivers_no_key(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, Quote { email: Some("a@example.com".parse().unwrap()), ..quote(1) }).await;
    let made = claimed(&*store, late_claim(&quote, tx(1))).await;
    let topped_up = credited(&*store, credit(&made.id, payment_by(2, tx(2)))).await;
    assert_eq!(topped_up.totals.balance, atoms(2 * SOLD + BONUS));
    assert_eq!(claimed(&*store, claim(&quote, tx(1))).await, topped_up);
}
