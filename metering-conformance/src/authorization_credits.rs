//! Contracts for crediting authorizations: each credits its account once, as long as its payment is in the chain.

use std::sync::Arc;

use metering_core::access::Totals;
use metering_core::events::EventKind::{PaymentCredited, PaymentReversed};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::offers::{AuthorizationId, AuthorizationRecord, AuthorizationState, GasPlace, SettlementFailure};
use metering_core::payments::{Payment, PaymentRecord, PaymentSettlement, PaymentUse, SettlementStep};
use metering_core::store::{
    AuthorizationCredited, AuthorizationStore, FullStore, PaymentCredit, PaymentCredited as Outcome, PaymentSettled,
    QuotePrecedence, SettlementChange,
};
use tokio::task::JoinSet;

use super::authorization_scene::{
    GAS, LATER, TASKS, claim, credit, credited, fail, pending, place, record, stepped, submission,
};
use super::event_scene::{newest, reported};
use super::sale::{self, Books, SOLD, buyer, open, payment_by, quote, tx, wallet};
use super::scene::{
    BASE, MINUTE, NOON, Verified, accepted, account, assert_verified, atoms, balance, charge, customer, new_id, racing,
    totals,
};

/// Credits an authorization and expects `refusal` and no changes.
async fn assert_refused(
    store: &dyn AuthorizationStore,
    id: &AuthorizationId,
    credit: PaymentCredit,
    refusal: AuthorizationCredited,
) {
    let before = (Books::read(store).await, store.authorization(id).await.unwrap());
    assert_eq!(store.credit_authorization(id, credit.clone()).await.unwrap(), refusal, "{credit:?}");
    assert_eq!((Books::read(store).await, store.authorization(id).await.unwrap()), before, "{credit:?}");
}

async fn state(store: &dyn AuthorizationStore, id: &AuthorizationId) -> AuthorizationState {
    record(store, id).await.state
}

/// An authorization is credited atomically: the balance, the ledger entry, the payment's record, and its own state.
pub async fn an_authorization_is_credited(store: Verified<dyn AuthorizationStore>) {
    let customer = customer(&*store, BASE).await;
    let id = pending(&*store, &customer.id, 1).await;
    place(&*store, &id, 4).await;
    store.add_submission(&id, submission(1)).await.unwrap();
    let before = record(&*store, &id).await;
    let (now, link_payer) = (sale::after(MINUTE), true);
    let credit = PaymentCredit { now, link_payer, ..credit(&customer.id, 1, tx(1)) };
    let after = credited(&*store, &id, credit.clone()).await;
    let totals =
        Totals { balance: atoms(SOLD + BASE), purchased: atoms(SOLD), granted: atoms(BASE), ..Totals::default() };
    assert_eq!(after.totals, totals);
    assert_eq!(account(&*store, &customer.id).await, after);
    let written = store.ledger(None, 10).await.unwrap().items.remove(1);
    assert_eq!((&written.account, written.kind, written.amount), (&customer.id, credit.entry.kind, atoms(SOLD)));
    assert_eq!((written.description, written.created_at), (credit.entry.description, now));
    assert_eq!(written.payment, Some(PaymentRef { tx: tx(1), plan_id: None }));
    let paid = PaymentRecord::of(credit.payment, customer.id.clone(), PaymentUse::Authorization, now);
    let paid = PaymentRecord { value: credit.value, ..paid };
    assert_eq!(store.payment(&tx(1)).await.unwrap(), Some(paid));
    assert_eq!(store.linked_accounts(&wallet(1)).await.unwrap(), [customer.id]);
    let expected = AuthorizationRecord { state: AuthorizationState::Credited, tx: Some(tx(1)), ..before };
    assert_eq!(expected.gas, Some(GasPlace { wallet: GAS, nonce: 4 }));
    assert_eq!(record(&*store, &id).await, expected);
    accepted(&*store, charge(customer.key, BASE + SOLD), NOON).await;
}

/// A credited authorization has the events of its payment.
pub async fn credited_authorizations_are_told(store: Arc<dyn FullStore>) {
    let customer = customer(&*store, BASE).await;
    let id = pending(&*store, &customer.id, 1).await;
    assert_eq!(reported(&*store, &customer.id).await, []);
    credited(&*store, &id, credit(&customer.id, 1, tx(1))).await;
    let data = newest(&*store, &customer.id).await;
    let hash = tx(1).hash.to_string();
    assert!(data.contains(&hash) && data.contains(r#""plan_id":null"#), "{data}");
    let again = store.credit_authorization(&id, credit(&customer.id, 1, tx(2))).await.unwrap();
    assert!(matches!(again, AuthorizationCredited::NotPending(_)), "{again:?}");
    assert_eq!(reported(&*store, &customer.id).await, [PaymentCredited]);
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
    assert_eq!(reported(&*store, &customer.id).await, [PaymentCredited, PaymentReversed, PaymentCredited]);
    let failed = pending(&*store, &customer.id, 2).await;
    assert!(fail(&*store, &failed).await);
    assert_eq!(reported(&*store, &customer.id).await.len(), 3, "what moves no credits makes no event");
}

/// An authorization that was credited or has failed is not credited.
pub async fn only_pending_authorizations_are_credited(store: Verified<dyn AuthorizationStore>) {
    let customer = customer(&*store, BASE).await;
    let (paid, failed) = (pending(&*store, &customer.id, 1).await, pending(&*store, &customer.id, 2).await);
    credited(&*store, &paid, credit(&customer.id, 1, tx(1))).await;
    assert!(fail(&*store, &failed).await);
    for (id, number) in [(&paid, 1), (&failed, 2)] {
        let refusal = AuthorizationCredited::NotPending(record(&*store, id).await);
        for tx in [tx(1), tx(9)] {
            assert_refused(&*store, id, credit(&customer.id, number, tx), refusal.clone()).await;
        }
    }
    assert_eq!(store.payment(&tx(9)).await.unwrap(), None);
    assert_eq!(balance(&*store, &customer.id).await, SOLD + BASE);
}

/// Only its own account is credited, and only if it is not revoked. The authorization stays pending, and the
/// transaction unused.
pub async fn an_authorization_credits_its_own_live_account(store: Arc<dyn AuthorizationStore>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let id = pending(&*store, &owner.id, 1).await;
    let unknown = AuthorizationId { chain_id: 1, ..id };
    let nobody = AuthorizationCredited::NoSuchAccount;
    assert_refused(&*store, &unknown, credit(&owner.id, 1, tx(1)), nobody.clone()).await;
    assert_refused(&*store, &id, credit(&other.id, 1, tx(1)), nobody.clone()).await;
    assert_refused(&*store, &id, credit(&new_id(), 1, tx(1)), nobody.clone()).await;
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert_refused(&*store, &id, credit(&owner.id, 1, tx(1)), nobody).await;
    assert_eq!(state(&*store, &id).await, AuthorizationState::Pending);
    assert_eq!(store.payment(&tx(1)).await.unwrap(), None);
}

/// A transaction that was used for anything else credits no authorization.
pub async fn a_used_transaction_credits_no_authorization(store: Verified<dyn AuthorizationStore>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let id = pending(&*store, &owner.id, 1).await;
    for (account, number) in [(&owner.id, 2), (&other.id, 3)] {
        sale::credited(&*store, sale::credit(account, payment_by(number, tx(number)))).await;
    }
    buyer(&*store, 4).await;
    for (account, number) in [(&owner.id, 5), (&other.id, 6)] {
        let another = pending(&*store, account, number).await;
        credited(&*store, &another, credit(account, number, tx(number))).await;
    }
    for number in 2..=6 {
        let used = credit(&owner.id, 1, tx(number));
        assert_refused(&*store, &id, used, AuthorizationCredited::TxUsed).await;
    }
    let quote = open(&*store, quote(1)).await;
    let awaited = PaymentCredit { quotes: QuotePrecedence::Quote, ..credit(&owner.id, 1, tx(7)) };
    assert_eq!(awaited.payment, sale::payment_of(&quote, tx(7)));
    assert_refused(&*store, &id, awaited, AuthorizationCredited::TxUsed).await;
    credited(&*store, &id, credit(&owner.id, 1, tx(7))).await;
    let top_up = store.credit_payment(sale::credit(&other.id, payment_by(1, tx(7)))).await.unwrap();
    assert_eq!(top_up, Outcome::TxUsed, "a transaction that executed an authorization is not a top-up");
}

/// An entry that would take the balance out of range changes nothing; the authorization can still be credited.
pub async fn an_authorization_beyond_range_changes_nothing(store: Arc<dyn AuthorizationStore>) {
    let customer = customer(&*store, BASE).await;
    let id = pending(&*store, &customer.id, 1).await;
    let of = |amount| {
        let credit = credit(&customer.id, 1, tx(1));
        PaymentCredit { entry: NewLedgerEntry { amount: atoms(amount), ..credit.entry.clone() }, ..credit }
    };
    assert_refused(&*store, &id, of(i64::MAX), AuthorizationCredited::OutOfRange).await;
    let after = credited(&*store, &id, of(i64::MAX - BASE)).await;
    assert_eq!(after.totals.balance, atoms(i64::MAX));
}

/// 50 credits of one authorization, by the same or by different transactions: one is written.
pub async fn concurrent_credits_of_an_authorization_credit_once(store: Verified<dyn AuthorizationStore>) {
    let customer = customer(&*store, BASE).await;
    for (number, differ) in [(1, false), (2, true)] {
        let id = pending(&*store, &customer.id, number).await;
        let outcomes = racing(&store, 0..TASKS, |store, task| {
            let executed = tx(if differ { 100 + task } else { 1 });
            let credit = credit(&customer.id, number, executed);
            async move { store.credit_authorization(&id, credit).await.unwrap() }
        })
        .await;
        let stored = record(&*store, &id).await;
        assert_eq!(stored.state, AuthorizationState::Credited);
        let others = outcomes.iter().filter(|outcome| **outcome == AuthorizationCredited::NotPending(stored.clone()));
        assert_eq!(others.count(), usize::from(TASKS) - 1);
        let winner = stored.tx.expect("a credited one has its transaction");
        assert_eq!(store.payment(&winner).await.unwrap().map(|paid| paid.account), Some(customer.id.clone()));
    }
    assert_eq!(Books::read(&*store).await.counts(), (1, 3, 2));
    assert_eq!(balance(&*store, &customer.id).await, 2 * SOLD + BASE);
}

/// Of several authorizations that name the same transaction, one is credited.
pub async fn concurrent_authorizations_share_no_transaction(store: Verified<dyn AuthorizationStore>) {
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let customer = customer(&*store, 0).await;
        let id = pending(&*store, &customer.id, number).await;
        let (store, credit) = (Arc::clone(&store), credit(&customer.id, number, tx(1)));
        tasks.spawn(async move { (id, store.credit_authorization(&id, credit).await.unwrap()) });
    }
    let outcomes = tasks.join_all().await;
    let won = |(_, outcome): &&(_, _)| matches!(outcome, AuthorizationCredited::Account(_));
    assert_eq!(outcomes.iter().filter(won).count(), 1);
    for (id, outcome) in outcomes {
        let expected = match outcome {
            AuthorizationCredited::Account(_) => (AuthorizationState::Credited, Some(tx(1))),
            other => {
                assert_eq!(other, AuthorizationCredited::TxUsed);
                (AuthorizationState::Pending, None)
            }
        };
        let found = record(&*store, &id).await;
        assert_eq!((found.state, found.tx), expected);
    }
}

/// An authorization that is credited and fails concurrently does one of the two.
pub async fn a_credit_and_a_failure_of_an_authorization_race(store: Verified<dyn AuthorizationStore>) {
    let customer = customer(&*store, 0).await;
    let mut sold = 0;
    for number in 1..=20 {
        let id = pending(&*store, &customer.id, number).await;
        let (failing, crediting) = (Arc::clone(&store), Arc::clone(&store));
        let credit = credit(&customer.id, number, tx(number));
        let failed = tokio::spawn(async move { fail(&*failing, &id).await });
        let paid = tokio::spawn(async move { crediting.credit_authorization(&id, credit).await.unwrap() });
        let (failed, paid) = (failed.await.unwrap(), paid.await.unwrap());
        let stored = record(&*store, &id).await;
        if failed {
            assert_eq!(paid, AuthorizationCredited::NotPending(stored));
        } else {
            assert_eq!(stored.state, AuthorizationState::Credited);
            sold += SOLD;
        }
    }
    assert_eq!(balance(&*store, &customer.id).await, sold);
}

/// A reversal makes an authorization pending again, and a restored payment makes it credited. Other steps leave it.
pub async fn an_authorization_follows_its_payment(store: Arc<dyn AuthorizationStore>) {
    let customer = customer(&*store, 0).await;
    let (id, other) = (pending(&*store, &customer.id, 1).await, pending(&*store, &customer.id, 2).await);
    place(&*store, &id, 0).await;
    store.add_submission(&id, submission(1)).await.unwrap();
    for (id, number) in [(&id, 1), (&other, 2)] {
        credited(&*store, id, credit(&customer.id, number, tx(number))).await;
    }
    let (first, others) = (record(&*store, &id).await, record(&*store, &other).await);
    assert_eq!(store.authorization_executed_in(tx(3)).await.unwrap(), None);
    let (credited, pending) = (AuthorizationState::Credited, AuthorizationState::Pending);
    let steps = [
        (SettlementStep::Move(LATER), credited),
        (SettlementStep::Reverse, pending),
        (SettlementStep::Restore(LATER), credited),
        (SettlementStep::Reverse, pending),
        (SettlementStep::Restore(LATER), credited),
        (SettlementStep::Finalize, credited),
    ];
    for (step, state) in steps {
        stepped(&*store, tx(1), step.clone()).await;
        let expected = AuthorizationRecord { state, ..first.clone() };
        assert_eq!(record(&*store, &id).await, expected, "{step:?} changes the state alone");
        let executed = store.authorization_executed_in(tx(1)).await.unwrap();
        assert_eq!(executed, Some(expected), "{step:?}");
        assert_eq!(record(&*store, &other).await, others, "{step:?} of another payment");
        let claimed = claim(&*store, 60, 9).await;
        assert_eq!(claimed, if state == pending { vec![id] } else { vec![] }, "{step:?}");
        store.extend_claim(&id, NOON).await.unwrap();
        let purchased = if state == pending { SOLD } else { 2 * SOLD };
        assert_eq!(totals(&*store, &customer.id).await.purchased, atoms(purchased), "{step:?}");
        assert_verified(&*store).await;
    }
}

/// A refused step does not change the authorization.
pub async fn a_refused_settlement_leaves_the_authorization(store: Arc<dyn AuthorizationStore>) {
    let customer = customer(&*store, 0).await;
    let id = pending(&*store, &customer.id, 1).await;
    let payment = Payment { block_hash: None, ..payment_by(1, tx(1)) };
    credited(&*store, &id, PaymentCredit { payment, ..credit(&customer.id, 1, tx(1)) }).await;
    let before = record(&*store, &id).await;
    let seen = store.payment(&tx(1)).await.unwrap().expect("the payment is recorded");
    assert_eq!(seen.settlement, PaymentSettlement::Final);
    let reverse = SettlementChange { seen, step: SettlementStep::Reverse, now: NOON };
    assert_eq!(store.settle_payment(reverse).await.unwrap(), PaymentSettled::Stale);
    assert_eq!(record(&*store, &id).await, before);
}

/// After a reversal, another transaction may execute the authorization. The first one then changes nothing more.
pub async fn a_reversed_authorization_is_credited_by_another_transaction(store: Verified<dyn AuthorizationStore>) {
    let customer = customer(&*store, 0).await;
    let id = pending(&*store, &customer.id, 1).await;
    credited(&*store, &id, credit(&customer.id, 1, tx(1))).await;
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    let again = credit(&customer.id, 1, tx(1));
    assert_refused(&*store, &id, again, AuthorizationCredited::TxUsed).await;
    assert_eq!(balance(&*store, &customer.id).await, 0);
    let after = credited(&*store, &id, credit(&customer.id, 1, tx(2))).await;
    assert_eq!((after.totals.balance, after.totals.purchased), (atoms(SOLD), atoms(SOLD)));
    let second = record(&*store, &id).await;
    assert_eq!((second.state, second.tx), (AuthorizationState::Credited, Some(tx(2))));
    let entries: Vec<_> = store.ledger(None, 9).await.unwrap().items.into_iter().map(|entry| entry.kind).collect();
    let purchase = LedgerKind::PurchaseTopup;
    assert_eq!(entries, [purchase, LedgerKind::PaymentReversed, purchase]);
    stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!(record(&*store, &id).await, second, "its payment is that of the second transaction");
    stepped(&*store, tx(2), SettlementStep::Reverse).await;
    assert_eq!(state(&*store, &id).await, AuthorizationState::Pending);
}

/// A payment may be restored after its authorization has failed. The account has the credits then, so the authorization
/// is credited.
pub async fn a_restored_payment_credits_a_failed_authorization(store: Arc<dyn AuthorizationStore>) {
    let customer = customer(&*store, 0).await;
    let id = pending(&*store, &customer.id, 1).await;
    credited(&*store, &id, credit(&customer.id, 1, tx(1))).await;
    let first = record(&*store, &id).await;
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert!(store.fail_authorization(&id, SettlementFailure::Expired, NOON).await.unwrap());
    assert_eq!(record(&*store, &id).await.tx, Some(tx(1)));
    stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
    assert_eq!(record(&*store, &id).await, first);
    assert_eq!(balance(&*store, &customer.id).await, SOLD);
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!(state(&*store, &id).await, AuthorizationState::Pending);
}

/// The authorizations of a revoked account follow their payments too.
pub async fn authorizations_of_revoked_accounts_follow_their_payments(store: Arc<dyn AuthorizationStore>) {
    let customer = customer(&*store, 0).await;
    let id = pending(&*store, &customer.id, 1).await;
    credited(&*store, &id, credit(&customer.id, 1, tx(1))).await;
    store.revoke_account(&customer.id, NOON).await.unwrap();
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!(state(&*store, &id).await, AuthorizationState::Pending);
    stepped(&*store, tx(1), SettlementStep::Restore(LATER)).await;
    assert_eq!(state(&*store, &id).await, AuthorizationState::Credited);
}
