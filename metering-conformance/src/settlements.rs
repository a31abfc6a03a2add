//! Contracts for settling credited payments: each is unsettled, final or reversed, and each step is taken once.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::Account;
use metering_core::chains::{Block, TxRef};
use metering_core::money::{LedgerKind, PaymentRef};
use metering_core::payments::{Payment, PaymentRecord, PaymentSettlement, SettlementStep};
use metering_core::store::{Claimed, PaymentCredit, PaymentCredited, PaymentSettled, PaymentStore, SettlementChange};
use metering_core::usage::ActivityKind;
use tokio::task::JoinSet;

use super::sale::{
    BONUS, Books, PLAN, SOLD, TARGET, buyer, claim, credit, credited, open, payment_by, purchase, quote, tx, tx_on,
};
use super::scene::{
    BASE, MINUTE, NOON, Verified, accepted, account, adjustment, assert_verified, atoms, charge, commit, customer,
    paged, post, racing, refused, totals,
};

const CHAIN: u64 = TARGET.chain_id;
const LATER: Block = Block { number: 19, hash: [19; 32], time: NOON };

async fn record(store: &dyn PaymentStore, tx: TxRef) -> PaymentRecord {
    store.payment(&tx).await.unwrap().expect("the payment is recorded")
}

/// Takes a step from the payment's current record.
async fn step(store: &dyn PaymentStore, tx: TxRef, step: SettlementStep) -> PaymentSettled {
    let seen = record(store, tx).await;
    store.settle_payment(SettlementChange { seen, step, now: NOON }).await.unwrap()
}

/// Takes a step and expects success.
async fn stepped(store: &dyn PaymentStore, tx: TxRef, wanted: SettlementStep) -> Account {
    match step(store, tx, wanted).await {
        PaymentSettled::Changed(account) => account,
        refusal => panic!("the payment was not changed: {refusal:?}"),
    }
}

async fn unsettled(store: &dyn PaymentStore) -> Vec<TxRef> {
    let page = store.unsettled_payments(CHAIN, None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.items.into_iter().map(|record| record.payment.tx).collect()
}

/// A credited payment is unsettled. When it becomes final, only its settlement changes.
pub async fn a_payment_is_unsettled_until_it_is_final(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    let before = record(&*store, tx(1)).await;
    assert_eq!(before.settlement, PaymentSettlement::Unsettled);
    assert_eq!(unsettled(&*store).await, [tx(1)]);
    let books = Books::read(&*store).await;
    let after = stepped(&*store, tx(1), SettlementStep::Finalize).await;
    assert_eq!(after, account(&*store, &customer.id).await);
    assert_eq!(record(&*store, tx(1)).await, PaymentRecord { settlement: PaymentSettlement::Final, ..before });
    assert_eq!(unsettled(&*store).await, []);
    let now = Books::read(&*store).await;
    assert_eq!((now.accounts, now.ledger), (books.accounts, books.ledger));
    for wanted in [SettlementStep::Finalize, SettlementStep::Reverse, SettlementStep::Restore(LATER)] {
        assert_eq!(step(&*store, tx(1), wanted).await, PaymentSettled::Stale, "final is permanent");
    }
}

/// A payment without a block hash cannot be watched, so it is final immediately.
pub async fn payment_without_block_hash_is_final_immediately(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let payment = Payment { block_hash: None, ..payment_by(1, tx(1)) };
    credited(&*store, credit(&customer.id, payment)).await;
    assert_eq!(record(&*store, tx(1)).await.settlement, PaymentSettlement::Final);
    assert_eq!(unsettled(&*store).await, []);
}

/// A reversal takes the credits back with its own ledger entry that has the reason, below zero if they are already
/// used.
pub async fn reversal_removes_the_purchased_credits(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    accepted(&*store, charge(customer.key, 3 * BASE), NOON).await;
    let after = stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!((after.totals.balance, after.totals.purchased), (atoms(-2 * BASE), atoms(0)));
    assert_eq!(after, account(&*store, &customer.id).await);
    let refusal = refused(&*store, charge(customer.key, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    assert_eq!(record(&*store, tx(1)).await.settlement, PaymentSettlement::Reversed { at: NOON });
    assert_eq!(unsettled(&*store).await, [tx(1)], "it may be mined again");
    let shown = store.activity(&customer.id, 1).await.unwrap().remove(0);
    assert_eq!((shown.kind, shown.amount), (ActivityKind::Ledger(LedgerKind::PaymentReversed), atoms(-SOLD)));
    assert_eq!(shown.payment, Some(PaymentRef { tx: tx(1), plan_id: Some(PLAN.to_owned()) }));
    assert!(shown.description.is_some_and(|text| text.contains("reorganisation")));
}

/// A reversed payment that is mined again is credited again, and may be reversed again.
pub async fn a_payment_that_reappears_is_credited_again(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    for _ in 0..3 {
        stepped(&*store, tx(1), SettlementStep::Reverse).await;
        assert_eq!(totals(&*store, &customer.id).await.purchased, atoms(0));
        let after = stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
        assert_eq!((after.totals.balance, after.totals.purchased), (atoms(SOLD + BASE), atoms(SOLD)));
        let restored = record(&*store, tx(1)).await;
        assert_eq!((restored.settlement, restored.block()), (PaymentSettlement::Unsettled, Some(LATER)));
        assert_verified(&*store).await;
    }
    let shown = store.activity(&customer.id, 1).await.unwrap().remove(0);
    assert_eq!((shown.kind, shown.amount), (ActivityKind::Ledger(LedgerKind::PaymentRestored), atoms(SOLD)));
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    stepped(&*store, tx(1), SettlementStep::Finalize).await;
    assert_eq!(totals(&*store, &customer.id).await.balance, atoms(SOLD));
}

/// Reversing a claim takes back the purchased credits; the account's free credits stay.
pub async fn a_claim_is_reversed_without_its_bonus(store: Verified<dyn PaymentStore>) {
    let made = buyer(&*store, 1).await;
    let after = stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!((after.totals.balance, after.totals.granted), (atoms(BONUS), atoms(BONUS)));
    assert_eq!((after.totals.purchased, &after.id), (atoms(0), &made.id));
    let after = stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
    assert_eq!(after.totals, made.totals);
}

/// A payment that moved to another block is recorded there, and no credits change.
pub async fn a_payment_moves_to_another_block(store: Verified<dyn PaymentStore>) {
    let made = buyer(&*store, 1).await;
    let stale = record(&*store, tx(1)).await;
    assert_eq!(stepped(&*store, tx(1), SettlementStep::Move(LATER)).await, made);
    let moved = record(&*store, tx(1)).await;
    assert_eq!((moved.block(), moved.settlement), (Some(LATER), PaymentSettlement::Unsettled));
    assert_eq!(moved.recorded_at, stale.recorded_at);
    let change = SettlementChange { seen: stale, step: SettlementStep::Reverse, now: NOON };
    assert_eq!(
        store.settle_payment(change).await.unwrap(),
        PaymentSettled::Stale,
        "the record names another block now"
    );
    assert_eq!(account(&*store, &made.id).await, made);
}

/// Payments of revoked accounts are reversed too, so that the totals stay correct.
pub async fn a_revoked_account_is_reversed_too(store: Verified<dyn PaymentStore>) {
    let made = buyer(&*store, 1).await;
    store.revoke_account(&made.id, NOON).await.unwrap();
    let after = stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!((after.totals.balance, after.revoked_at), (atoms(BONUS), Some(NOON)));
    stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
    assert_eq!(totals(&*store, &made.id).await, made.totals);
}

/// Each settlement state allows certain steps; other steps, and steps based on a wrong record, change nothing.
pub async fn stale_settlement_step_changes_nothing(store: Arc<dyn PaymentStore>) {
    let made = buyer(&*store, 1).await;
    let unknown = PaymentRecord { payment: payment_by(2, tx(2)), ..record(&*store, tx(1)).await };
    let change = SettlementChange { seen: unknown, step: SettlementStep::Reverse, now: NOON };
    assert_eq!(store.settle_payment(change).await.unwrap(), PaymentSettled::Stale);
    assert_eq!(step(&*store, tx(1), SettlementStep::Restore(LATER)).await, PaymentSettled::Stale);
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    let before = Books::read(&*store).await;
    for wanted in [SettlementStep::Reverse, SettlementStep::Finalize, SettlementStep::Move(LATER)] {
        assert_eq!(step(&*store, tx(1), wanted).await, PaymentSettled::Stale);
    }
    assert_eq!(Books::read(&*store).await, before);
    assert_eq!(before.accounts[0].id, made.id);
}

/// A reversal whose amounts are out of range changes nothing.
pub async fn a_reversal_beyond_range_changes_nothing(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, 0).await;
    let entry = purchase(LedgerKind::PurchaseTopup, BASE, tx(1));
    credited(&*store, PaymentCredit { entry, ..credit(&customer.id, payment_by(1, tx(1))) }).await;
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    post(&*store, &customer.id, adjustment(i64::MIN), NOON).await;
    let before = Books::read(&*store).await;
    assert_eq!(step(&*store, tx(1), SettlementStep::Reverse).await, PaymentSettled::OutOfRange);
    assert_eq!(Books::read(&*store).await, before);
}

/// A reversed payment is still used: it cannot claim a quote or be credited again.
pub async fn a_reversed_payment_stays_used(store: Arc<dyn PaymentStore>) {
    let (first, second) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let paid = credit(&first.id, payment_by(1, tx(1)));
    credited(&*store, paid.clone()).await;
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    let quote = open(&*store, quote(1)).await;
    assert_eq!(store.claim_quote(claim(&quote, tx(1))).await.unwrap(), Claimed::TxUsed);
    let other = credit(&second.id, payment_by(1, tx(1)));
    assert_eq!(store.credit_payment(other).await.unwrap(), PaymentCredited::TxUsed);
    let again = store.credit_payment(paid).await.unwrap();
    assert!(matches!(again, PaymentCredited::Repeated(_, record) if record.settlement.reversed_at().is_some()));
}

/// Unsettled payments are listed by chain, in the order of writing, page by page.
pub async fn unsettled_payments_are_paged_by_chain(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let elsewhere = |number| tx_on(1, number);
    for number in 1..=5 {
        credited(&*store, credit(&customer.id, payment_by(number, tx(number)))).await;
        credited(&*store, credit(&customer.id, payment_by(number, elsewhere(number)))).await;
    }
    stepped(&*store, tx(2), SettlementStep::Finalize).await;
    stepped(&*store, tx(4), SettlementStep::Reverse).await;
    stepped(&*store, elsewhere(1), SettlementStep::Finalize).await;
    for size in [1, 2, 3, 4, 100] {
        let found = paged(size, async |after, size| store.unsettled_payments(CHAIN, after, size).await).await;
        let found: Vec<_> = found.into_iter().map(|record| record.payment.tx).collect();
        assert_eq!(found, [1, 3, 4, 5].map(tx), "{size}");
    }
    assert_eq!(store.unsettled_payments(1, None, 100).await.unwrap().items.len(), 4);
    assert!(store.unsettled_payments(2, None, 100).await.unwrap().items.is_empty());
}

/// Takes the same step many times concurrently and returns how often it succeeded.
async fn at_once(store: &Arc<dyn PaymentStore>, change: &SettlementChange) -> usize {
    let responses = racing(store, 0..20, |store, _| {
        let change = change.clone();
        async move { store.settle_payment(change).await.unwrap() }
    })
    .await;
    responses.iter().filter(|response| matches!(response, PaymentSettled::Changed(_))).count()
}

/// If many watchers report the same change, one of them changes the record: credits are taken back once, and given
/// again once.
pub async fn concurrent_watchers_reverse_a_payment_once(store: Verified<dyn PaymentStore>) {
    let made = buyer(&*store, 1).await;
    for (wanted, balance) in [
        (SettlementStep::Reverse, BONUS),
        (SettlementStep::Restore(LATER), SOLD + BONUS),
        (SettlementStep::Reverse, BONUS),
        (SettlementStep::Restore(LATER), SOLD + BONUS),
        (SettlementStep::Finalize, SOLD + BONUS),
    ] {
        let seen = record(&*store, tx(1)).await;
        let change = SettlementChange { seen, step: wanted, now: NOON };
        assert_eq!(at_once(&store, &change).await, 1);
        assert_eq!(totals(&*store, &made.id).await.balance, atoms(balance));
    }
}

/// Reversals race with charges: in any order, the totals add up.
pub async fn reversals_and_charges_add_up(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, 5 * BASE).await;
    for number in 1..=10 {
        credited(&*store, credit(&customer.id, payment_by(number, tx(number)))).await;
    }
    let mut tasks = JoinSet::new();
    for number in 1..=10 {
        let (reversing, charging, key) = (Arc::clone(&store), Arc::clone(&store), customer.key);
        tasks.spawn(async move { _ = stepped(&*reversing, tx(number), SettlementStep::Reverse).await });
        tasks.spawn(async move {
            let _ = commit(&*charging, vec![charge(key, BASE)], NOON.saturating_add(MINUTE)).await;
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let after = totals(&*store, &customer.id).await;
    assert_eq!(after.purchased, atoms(0));
    assert_eq!(after.balance, atoms(5 * BASE - after.used.atoms()));
}
