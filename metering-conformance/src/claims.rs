//! Contracts for claims: a quote and its payment become an account with a key, once and atomically.

use std::sync::Arc;

use metering_core::access::{Account, EmailStatus, Payer, RateLimits, Totals};
use metering_core::money::{Credits, LedgerKind, PaymentRef};
use metering_core::payments::{PaymentRecord, PaymentTarget, PaymentUse, Quote, QuoteState};
use metering_core::store::{Claim, Claimed, NewAccount, PaymentStore};
use metering_core::usage::ActivityKind;

use super::sale::{
    BONUS, Books, PLAN, SOLD, TARGET, after, buyer, claim, claimed, credit, credited, late_claim, open, payment_by,
    quote, state_of, tx, tx_on, wallet,
};
use super::scene::{
    BASE, DAY, MINUTE, NOON, Verified, accepted, account, atoms, charge, create, customer, new_account,
};

/// A claim creates everything together: the requested account, its live key, its credits, and the payment's record.
pub async fn claim_creates_the_account(store: Verified<dyn PaymentStore>) {
    let quote = open(&*store, Quote { email: Some("Jörg@Example.com".parse().unwrap()), ..quote(1) }).await;
    let mut claim = Claim { now: after(MINUTE * 2), ..claim(&quote, tx(1)) };
    claim.account.created_at = after(MINUTE);
    claim.account.limits = RateLimits::per_minute(7).and_per_day(70);
    let new = claim.account.clone();
    let made = claimed(&*store, claim.clone()).await;
    let mut expected = Account::new(new.id.clone(), new.agent_name, after(MINUTE));
    expected.email = quote.email.clone();
    expected.payer = Some(Payer { address: wallet(1), chain_id: TARGET.chain_id });
    expected.limits = new.limits;
    expected.totals = Totals {
        balance: atoms(SOLD + BONUS),
        purchased: atoms(SOLD),
        granted: atoms(BONUS),
        used: Credits::ZERO,
        held: Credits::ZERO,
    };
    assert_eq!(made, expected);
    assert_eq!(account(&*store, &made.id).await, expected);
    assert_eq!(made.email.map(|email| email.to_string()).as_deref(), Some("Jörg@Example.com"));
    assert_eq!(store.account_by_key(&new.key).await.unwrap(), Some(expected.clone()));
    assert_eq!(store.account_by_payer(&wallet(1)).await.unwrap(), Some(expected));
    let record = PaymentRecord {
        plan_id: Some(PLAN.to_owned()),
        sold: claim.sold,
        value: claim.value,
        ..PaymentRecord::of(claim.payment, new.id.clone(), PaymentUse::PaySignup, after(MINUTE * 2))
    };
    assert_eq!(store.payment(&tx(1)).await.unwrap(), Some(record));
    assert_eq!(state_of(&*store, &quote).await, QuoteState::Claimed { account: new.id.clone(), tx: tx(1) });
    assert_eq!(accepted(&*store, charge(new.key, BASE), NOON).await.account, new.id);
}

/// The first entries of a claimed account name their payment, in the ledger and in the account's activity.
pub async fn a_claims_entries_name_its_payment(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, quote(1)).await;
    let made = claimed(&*store, claim(&quote, tx(1))).await;
    let paid = PaymentRef { tx: tx(1), plan_id: Some(PLAN.to_owned()) };
    let expected = [
        (LedgerKind::PurchasePaySignup, atoms(SOLD), Some(paid.clone())),
        (LedgerKind::SignupBonus, atoms(BONUS), None),
    ];
    let ledger = store.ledger(None, 10).await.unwrap().items;
    assert!(ledger.iter().all(|entry| entry.account == made.id));
    assert!(ledger.into_iter().map(|entry| (entry.kind, entry.amount, entry.payment)).eq(expected.clone()));
    let mut activity = store.activity(&made.id, 10).await.unwrap();
    activity.reverse();
    let expected = expected.map(|(kind, amount, payment)| (ActivityKind::Ledger(kind), amount, payment));
    assert!(activity.into_iter().map(|entry| (entry.kind, entry.amount, entry.payment)).eq(expected));
}

/// A second claim of a quote changes nothing, with any transaction, by its owner or the watcher.
pub async fn a_quote_is_claimed_once(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, quote(1)).await;
    let first = claim(&quote, tx(1));
    claimed(&*store, first.clone()).await;
    let before = Books::read(&*store).await;
    let free_payer = |mut claim: Claim| {
        claim.account.payer = Some(Payer { address: wallet(2), chain_id: 1 });
        claim
    };
    let again = [
        first.clone(),
        claim(&quote, tx(1)),
        claim(&quote, tx(2)),
        late_claim(&quote, tx(1)),
        late_claim(&quote, tx(2)),
        free_payer(claim(&quote, tx(1))),
        free_payer(claim(&quote, tx(2))),
    ];
    for claim in again {
        assert_eq!(store.claim_quote(claim.clone()).await.unwrap(), Claimed::AlreadyClaimed, "{claim:?}");
        assert_eq!(Books::read(&*store).await, before, "{claim:?}");
    }
    assert_eq!(store.live_keys(&[first.account.key], NOON).await.unwrap(), [true]);
    assert_eq!(store.payment(&tx(2)).await.unwrap(), None);
}

/// A payment without a quote cannot be claimed.
pub async fn claim_without_quote_creates_nothing(store: Arc<dyn PaymentStore>) {
    open(&*store, quote(1)).await;
    for unknown in [claim(&quote(2), tx(1)), late_claim(&quote(2), tx(1))] {
        assert_eq!(store.claim_quote(unknown).await.unwrap(), Claimed::NoSuchQuote);
        assert_eq!(Books::read(&*store).await.counts(), (0, 0, 0));
    }
    buyer(&*store, 2).await;
}

/// The store does not check deadlines: a claim succeeds at any time while its quote is stored.
pub async fn claim_after_quote_expiry_is_accepted(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, quote(1)).await;
    let now = quote.honoured_until().saturating_add(DAY);
    let made = claimed(&*store, Claim { now, ..claim(&quote, tx(1)) }).await;
    assert_eq!(store.payment(&tx(1)).await.unwrap().map(|record| record.recorded_at), Some(now));
    assert_eq!(state_of(&*store, &quote).await, QuoteState::Claimed { account: made.id, tx: tx(1) });
}

/// A hash identifies a transaction on one chain; the same hash on another chain is another transaction.
pub async fn same_hash_can_be_used_once_per_chain(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    for (chain_id, number) in [(1, 1), (8453, 2), (u64::MAX, 3)] {
        let target = PaymentTarget { chain_id, ..TARGET };
        let quote = open(&*store, Quote { target, ..quote(number) }).await;
        let made = claimed(&*store, claim(&quote, tx_on(chain_id, 7))).await;
        assert_eq!(made.payer, Some(Payer { address: wallet(number), chain_id }));
    }
    credited(&*store, credit(&customer.id, payment_by(9, tx_on(10, 7)))).await;
    assert_eq!(Books::read(&*store).await.payments.len(), 4);
}

/// If the quote's email address was taken since, the paid account is created without it.
pub async fn claim_omits_email_taken_since_the_quote(store: Arc<dyn PaymentStore>) {
    let email = |text: &str| Some(text.parse().unwrap());
    let first = open(&*store, Quote { email: email("jörg@example.com"), ..quote(1) }).await;
    let second = open(&*store, Quote { email: email("jörg@example.com"), ..quote(2) }).await;
    let third = open(&*store, Quote { email: email("jörg@example.com"), ..quote(3) }).await;
    let owner = create(&*store, NewAccount { email: email("JÖRG@Example.com"), ..new_account() }).await;
    let made = claimed(&*store, claim(&first, tx(1))).await;
    assert_eq!(made.email, None);
    assert_eq!(account(&*store, &made.id).await, made);
    assert_eq!(made.totals.balance, atoms(SOLD + BONUS));
    assert_eq!(
        store.quote(&first.nonce).await.unwrap().and_then(|quote| quote.email),
        first.email,
        "the quote keeps it"
    );
    let mut waiting = claim(&third, tx(3));
    waiting.account.email_status = EmailStatus::Pending { free_credits: Credits::ZERO };
    let made = claimed(&*store, waiting).await;
    assert_eq!((made.email, made.email_status), (None, EmailStatus::Unchecked), "nor does it wait for the address");
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert_eq!(claimed(&*store, late_claim(&second, tx(2))).await.email, second.email, "it is free again");
}
