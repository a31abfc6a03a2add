//! Contracts for events of payments: one when a payment is credited, reversed, or credited again.

use std::sync::Arc;

use metering_core::access::{AccountId, BudgetReset, EmailStatus};
use metering_core::chains::{Block, TxRef};
use metering_core::events::EventKind::{
    self, BalanceExhausted, BalanceLow, KeyCreated, PaymentCredited, PaymentReversed,
};
use metering_core::money::{AlertLevel, NewLedgerEntry, PaymentRef, Refill};
use metering_core::payments::SettlementStep;
use metering_core::random::SystemRandomness;
use metering_core::signups::{EmailLink, LinkPurpose, LinkToken};
use metering_core::store::{
    Claimed, EmailVerified, FullStore, NewAccount, PaymentCredit, PaymentCredited as Outcome, PaymentSettled,
    PaymentStore, QuotePrecedence, SettlementChange,
};

use super::event_scene::{events, later_events, low, newest, raised, reported, set_threshold};
use super::sale::{
    BONUS, PLAN, SOLD, TARGET, buyer, claim, claimed, credit, credited, late_claim, open, payment_by, quote, tx,
};
use super::scene::{
    BASE, DAY, NOON, Verified, accepted, adjustment, atoms, charge, create, customer, entry, new_account, new_id,
    refused,
};

const BLOCK: Block = Block { number: 19, hash: [19; 32], time: NOON };

fn paid(account: &AccountId, credits: i64, balance: i64, tx: TxRef, plan: Option<&str>) -> String {
    let plan = plan.map_or_else(|| "null".to_owned(), |plan| format!("\"{plan}\""));
    format!(
        r#"{{"org_id":"{account}","credits":{},"balance":{},"chain_id":{},"tx_hash":"{}","plan_id":{plan}}}"#,
        atoms(credits),
        atoms(balance),
        tx.chain_id,
        tx.hash,
    )
}

async fn step(store: &dyn PaymentStore, tx: TxRef, step: SettlementStep) -> PaymentSettled {
    let seen = store.payment(&tx).await.unwrap().expect("the payment is recorded");
    store.settle_payment(SettlementChange { seen, step, now: NOON }).await.unwrap()
}

async fn stepped(store: &dyn PaymentStore, tx: TxRef, wanted: SettlementStep) {
    let outcome = step(store, tx, wanted).await;
    assert!(matches!(outcome, PaymentSettled::Changed(_)), "{outcome:?}");
}

async fn kinds(store: &dyn FullStore, account: &AccountId) -> Vec<EventKind> {
    events(store, account).await.iter().map(|event| event.kind).collect()
}

/// A claim writes events of its key and its payment, and none of the free credits that come with it.
pub async fn a_claim_is_told(store: Arc<dyn FullStore>) {
    let account = buyer(&*store, 1).await;
    assert_eq!(kinds(&*store, &account.id).await, [KeyCreated, PaymentCredited]);
    let data = newest(&*store, &account.id).await;
    assert_eq!(data, paid(&account.id, SOLD, SOLD + BONUS, tx(1), Some(PLAN)));
    let quote = open(&*store, quote(2)).await;
    let late = claimed(&*store, late_claim(&quote, tx(2))).await;
    assert_eq!(kinds(&*store, &late.id).await, [KeyCreated, PaymentCredited]);
    claimed(&*store, claim(&quote, tx(2))).await;
    assert_eq!(kinds(&*store, &late.id).await, [KeyCreated, PaymentCredited], "its owner only gets the key");
}

/// A refused claim writes no events.
pub async fn a_refused_claim_is_not_told(store: Arc<dyn FullStore>) {
    let owner = buyer(&*store, 1).await;
    let before = events(&*store, &owner.id).await;
    let second = open(&*store, quote(2)).await;
    let used = claim(&second, tx(1));
    let (id, outcome) = (used.account.id.clone(), store.claim_quote(used).await.unwrap());
    assert_eq!(outcome, Claimed::TxUsed);
    let unknown = claim(&quote(3), tx(3));
    let unknown_id = unknown.account.id.clone();
    assert_eq!(store.claim_quote(unknown).await.unwrap(), Claimed::NoSuchQuote);
    for id in [id, unknown_id] {
        assert_eq!(events(&*store, &id).await, []);
    }
    assert_eq!(events(&*store, &owner.id).await, before);
}

/// A credited payment has an event: with its plan, or without one when the operator assigns it.
pub async fn credited_payments_are_told(store: Arc<dyn FullStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    assert_eq!(newest(&*store, &customer.id).await, paid(&customer.id, SOLD, SOLD + BASE, tx(1), Some(PLAN)));
    let of = Some(PaymentRef { tx: tx(2), plan_id: None });
    let assigned = PaymentCredit {
        entry: NewLedgerEntry { payment: of, ..adjustment(5) },
        sold: None,
        quotes: QuotePrecedence::Account,
        ..credit(&customer.id, payment_by(2, tx(2)))
    };
    credited(&*store, assigned.clone()).await;
    assert_eq!(newest(&*store, &customer.id).await, paid(&customer.id, 5, SOLD + BASE + 5, tx(2), None));
    assert_eq!(reported(&*store, &customer.id).await, [PaymentCredited, PaymentCredited]);
    let repeated = store.credit_payment(assigned).await.unwrap();
    assert!(matches!(repeated, Outcome::Repeated(..)), "{repeated:?}");
    let nobody = store.credit_payment(credit(&new_id(), payment_by(3, tx(3)))).await.unwrap();
    assert_eq!(nobody, Outcome::NoSuchAccount);
    let beyond = PaymentCredit {
        entry: entry(metering_core::money::LedgerKind::PurchaseTopup, i64::MAX),
        ..credit(&customer.id, payment_by(4, tx(4)))
    };
    assert_eq!(store.credit_payment(beyond).await.unwrap(), Outcome::OutOfRange);
    assert_eq!(reported(&*store, &customer.id).await, [PaymentCredited, PaymentCredited]);
}

/// A reversal writes an event of the payment and then of the balance. Another one follows when it is credited again.
pub async fn a_reversal_is_told(store: Verified<dyn FullStore>) {
    let customer = customer(&*store, BASE).await;
    set_threshold(&*store, &customer.id, 2 * BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    let kinds = [PaymentCredited, PaymentReversed, BalanceLow, BalanceExhausted];
    assert_eq!(reported(&*store, &customer.id).await, kinds);
    let data: Vec<_> = later_events(&*store, &customer.id).await.into_iter().map(|event| event.data).collect();
    assert_eq!(data[1], paid(&customer.id, SOLD, 0, tx(1), Some(PLAN)), "what was taken back is above zero");
    assert_eq!(data[2], low(&customer.id, 0, 2 * BASE));
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::Exhausted);
    stepped(&*store, tx(1), SettlementStep::Restore(BLOCK)).await;
    assert_eq!(newest(&*store, &customer.id).await, paid(&customer.id, SOLD, SOLD, tx(1), Some(PLAN)));
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::None);
    let before = reported(&*store, &customer.id).await;
    stepped(&*store, tx(1), SettlementStep::Move(Block { number: 20, ..BLOCK })).await;
    stepped(&*store, tx(1), SettlementStep::Finalize).await;
    assert_eq!(step(&*store, tx(1), SettlementStep::Reverse).await, PaymentSettled::Stale);
    assert_eq!(reported(&*store, &customer.id).await, before, "a payment that moves or becomes final makes no event");
    assert_eq!(TARGET.chain_id, tx(1).chain_id);
}

/// Recurring credits lower the alert, and write no event.
pub async fn a_refill_lowers_the_alert(store: Verified<dyn FullStore>) {
    let customer = customer(&*store, 100).await;
    set_threshold(&*store, &customer.id, 50).await;
    accepted(&*store, charge(customer.key, 60), NOON).await;
    refused(&*store, super::hold_scene::hold(customer.key, 99), NOON).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceExhausted]);
    let refill = Refill { credits: atoms(100), every: BudgetReset::Daily, cap: atoms(60) };
    store.set_refill(Some(refill)).await.unwrap();
    let tomorrow = NOON.saturating_add(DAY);
    assert_eq!(store.refill_accounts(tomorrow, 10).await.unwrap().accounts, 1);
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::None);
    accepted(&*store, charge(customer.key, 11), tomorrow).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceExhausted, BalanceLow]);
}

/// Free credits for a verified address lower the alert, and write no event.
pub async fn a_verified_address_lowers_the_alert(store: Arc<dyn FullStore>) {
    let email_status = EmailStatus::Pending { free_credits: atoms(100) };
    let new = NewAccount { email: "a@example.com".parse().ok(), email_status, ..new_account() };
    let (id, key) = (new.id.clone(), new.key);
    create(&*store, new).await;
    refused(&*store, charge(key, 1), NOON).await;
    assert_eq!(raised(&*store, &id).await, AlertLevel::Exhausted);
    let (token, purpose) = (LinkToken::generate(&SystemRandomness).hash(), LinkPurpose::VerifyAddress);
    let link = EmailLink { token, purpose, account: id.clone(), expires_at: NOON.saturating_add(DAY) };
    assert!(store.open_email_link(link).await.unwrap());
    let EmailVerified::Account { account, .. } = store.verify_email(&token, NOON).await.unwrap() else {
        panic!("the link is live")
    };
    assert_eq!(account.alert.raised, AlertLevel::None);
    assert_eq!(raised(&*store, &id).await, AlertLevel::None);
    accepted(&*store, charge(key, 100), NOON).await;
    assert_eq!(reported(&*store, &id).await, [BalanceExhausted, BalanceExhausted]);
}
