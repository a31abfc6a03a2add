//! Contracts for expiry: quotes and challenges are deleted once their time is up, and not before.

use std::sync::Arc;

use metering_core::clock::Timestamp;
use metering_core::payments::{Challenge, Quote, QuoteState};
use metering_core::store::{Claimed, PaymentStore};

use super::sale::{
    Books, MOMENT, buyer, challenge, claim, claimed, late_claim, open, payment_of, quote, state_of, tx, wallet,
};
use super::scene::{BASE, DAY, NOON, accepted, charge_named, customer, new_key};

/// The events of a claim: a key was created, and a payment credited.
const EVENTS: u64 = 2;

/// When an unpaid quote may be deleted.
fn unpaid_over(quote: &Quote) -> Timestamp {
    quote.honoured_until().saturating_add(Quote::UNPAID_RETENTION)
}

/// When a claimed quote may be deleted.
fn claimed_over(quote: &Quote) -> Timestamp {
    quote.honoured_until().saturating_add(Quote::RETENTION)
}

/// Unpaid quotes are deleted soon after their grace period, claimed ones much later. Their accounts and records stay.
pub async fn expired_quotes_are_deleted(store: Arc<dyn PaymentStore>) {
    let (first, second) = (open(&*store, quote(1)).await, open(&*store, quote(2)).await);
    let later = Quote { created_at: NOON.saturating_add(DAY), expires_at: NOON.saturating_add(DAY * 2), ..quote(3) };
    let later = open(&*store, later).await;
    let made = claimed(&*store, claim(&second, tx(2))).await;
    let before = Books::read(&*store).await;
    for early in [NOON, first.expires_at, first.honoured_until(), unpaid_over(&first).saturating_sub(MOMENT)] {
        assert_eq!(store.forget_expired(early).await.unwrap(), 0, "at {early}");
        assert_eq!(store.quote(&first.nonce).await.unwrap().as_ref(), Some(&first), "at {early}");
        let state = QuoteState::Claimed { account: made.id.clone(), tx: tx(2) };
        assert_eq!(state_of(&*store, &second).await, state, "at {early}");
    }
    assert_eq!(store.forget_expired(unpaid_over(&first)).await.unwrap(), 1);
    assert_eq!(store.quote(&first.nonce).await.unwrap(), None);
    let later_one = store.forget_expired(claimed_over(&second).saturating_sub(MOMENT)).await.unwrap();
    assert_eq!(later_one, 1 + EVENTS, "the later one");
    assert_eq!(state_of(&*store, &second).await, QuoteState::Claimed { account: made.id, tx: tx(2) });
    assert_eq!(store.forget_expired(claimed_over(&second)).await.unwrap(), 1);
    for forgotten in [&first, &second, &later] {
        assert_eq!(store.quote(&forgotten.nonce).await.unwrap(), None);
        assert_eq!(store.claim_quote(claim(forgotten, tx(9))).await.unwrap(), Claimed::NoSuchQuote);
        assert_eq!(store.quote_paid_by(&payment_of(forgotten, tx(9))).await.unwrap(), None);
    }
    assert_eq!(store.forget_expired(NOON).await.unwrap(), 0, "a lagging clock brings nothing back");
    assert_eq!(store.quote(&first.nonce).await.unwrap(), None);
    assert_eq!(Books::read(&*store).await, before);
}

/// A paid quote is kept until its key is given out, no matter how late; then it expires like any claimed quote.
pub async fn awaited_quotes_are_not_deleted(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, quote(1)).await;
    let made = claimed(&*store, late_claim(&quote, tx(1))).await;
    let state = QuoteState::Paid { account: made.id.clone(), tx: tx(1) };
    let much_later = claimed_over(&quote).saturating_add(DAY * 10_000);
    for (late, count) in [(unpaid_over(&quote), 0), (claimed_over(&quote), EVENTS), (much_later, 0)] {
        assert_eq!(store.forget_expired(late).await.unwrap(), count, "at {late}");
        assert_eq!(state_of(&*store, &quote).await, state, "at {late}");
    }
    assert_eq!(claimed(&*store, claim(&quote, tx(1))).await.id, made.id);
    assert_eq!(store.forget_expired(claimed_over(&quote).saturating_sub(MOMENT)).await.unwrap(), 0);
    assert_eq!(store.forget_expired(claimed_over(&quote)).await.unwrap(), 1);
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), None);
}

/// A challenge is deleted once its time is up, whether or not it was used.
pub async fn expired_challenges_are_deleted(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await.id;
    for nonce in ["asked", "answered", "failed"] {
        store.open_challenge(challenge(&owner, wallet(1), nonce)).await.unwrap();
    }
    let opened = challenge(&owner, wallet(1), "asked");
    let later =
        Challenge { expires_at: opened.expires_at.saturating_add(MOMENT), ..challenge(&owner, wallet(1), "later") };
    store.open_challenge(later.clone()).await.unwrap();
    store.rotate_key("answered", new_key(), NOON).await.unwrap().expect("the challenge is open");
    for _ in 0..Challenge::MAX_FAILURES {
        store.fail_challenge("failed").await.unwrap();
    }
    let over = opened.expires_at.saturating_add(Challenge::RETENTION);
    for early in [NOON, opened.expires_at, over.saturating_sub(MOMENT)] {
        assert_eq!(store.forget_expired(early).await.unwrap(), 0, "at {early}");
        assert_eq!(store.challenge("asked").await.unwrap().as_ref(), Some(&opened), "at {early}");
    }
    assert_eq!(store.forget_expired(over).await.unwrap(), 1);
    assert_eq!(store.challenge("asked").await.unwrap(), None);
    assert_eq!(store.challenge("later").await.unwrap(), Some(later));
    assert_eq!(store.forget_expired(over.saturating_add(MOMENT)).await.unwrap(), 1);
    // The nonce is free again.
    store.open_challenge(opened).await.unwrap();
}

/// The returned count includes every deleted item.
pub async fn deleted_rows_are_counted(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, 10 * BASE).await;
    for request_id in ["r1", "r2", "r3"] {
        accepted(&*store, charge_named(customer.key, BASE, request_id), NOON).await;
    }
    let quotes = [quote(1), quote(2), quote(3)];
    for quote in &quotes {
        open(&*store, quote.clone()).await;
    }
    claimed(&*store, late_claim(&quotes[2], tx(3))).await;
    for nonce in ["first", "second"] {
        store.open_challenge(challenge(&customer.id, wallet(1), nonce)).await.unwrap();
    }
    assert_eq!(store.forget_expired(unpaid_over(&quotes[0])).await.unwrap(), 3 + 2 + 2);
    assert_eq!(store.forget_expired(unpaid_over(&quotes[0])).await.unwrap(), 0);
}
