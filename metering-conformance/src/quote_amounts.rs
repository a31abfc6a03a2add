//! Contracts for reserved amounts, which make a payment match exactly one quote.

use std::sync::Arc;

use metering_core::chains::TokenUnits;
use metering_core::clock::Timestamp;
use metering_core::payments::{NonceHash, PaymentTarget, Quote};
use metering_core::store::{PaymentStore, QuoteOpened};

use super::sale::{MOMENT, TARGET, after, claim, claimed, late_claim, open, payment_of, quote, tx, wallet};
use super::scene::{DAY, MINUTE, NOON};

/// A quote with the amount and payer of the first one, created at `created_at`.
fn same_amount(number: u8, created_at: Timestamp) -> Quote {
    let expires_at = created_at.saturating_add(MINUTE * 30);
    Quote { amount: quote(1).amount, payer: wallet(1), created_at, expires_at, ..quote(number) }
}

async fn assert_taken(store: &dyn PaymentStore, new: Quote) {
    let (created_at, nonce) = (new.created_at, new.nonce);
    assert_eq!(store.open_quote(new).await.unwrap(), QuoteOpened::AmountTaken, "at {created_at}");
    assert_eq!(store.quote(&nonce).await.unwrap(), None, "at {created_at}");
}

/// Quotes of other payers never block an amount, even if they use every amount: the sender already distinguishes each
/// payer's payments.
pub async fn other_payers_may_use_the_same_amount(store: Arc<dyn PaymentStore>) {
    const TAGS: u8 = 9;
    let of = |nonce: u8, payer: u8, tag: u8| Quote {
        nonce: NonceHash::from_bytes([nonce; 32]),
        payer: wallet(payer),
        amount: TokenUnits::new(5_000 + u128::from(tag)),
        ..quote(nonce)
    };
    let mut nonces = 1..;
    let mut next = || nonces.next().expect("there are enough nonces");
    for payer in 2..=20 {
        for tag in 1..=TAGS {
            open(&*store, of(next(), payer, tag)).await;
        }
    }
    // All of them are still open, and none of their amounts is taken for the new payer.
    let mine: Vec<Quote> = (1..=TAGS).map(|tag| of(next(), 1, tag)).collect();
    for quote in &mine {
        open(&*store, quote.clone()).await;
        let payment = payment_of(quote, tx(1));
        assert_eq!(store.quote_paid_by(&payment).await.unwrap().as_ref(), Some(quote), "its payment matches it");
    }
    for tag in 1..=TAGS {
        assert_taken(&*store, of(next(), 1, tag)).await;
    }
}

/// A payer gets the same amount again only when a payment of it can match only one quote.
pub async fn amount_is_reserved_for_its_payer_during_the_grace_period(store: Arc<dyn PaymentStore>) {
    let first = open(&*store, quote(1)).await;
    let again = |at| same_amount(2, at);
    let (expired, until) = (first.expires_at, first.reserved_until());
    // Including a lagging clock.
    for at in [
        NOON.saturating_sub(DAY),
        NOON,
        expired.saturating_sub(MOMENT),
        expired,
        after(DAY),
        until.saturating_sub(MOMENT),
        until,
    ] {
        assert_taken(&*store, again(at)).await;
    }
    open(&*store, again(until.saturating_add(MOMENT))).await;
}

/// An amount is reserved on one chain, in one token and for one recipient; other targets do not collide.
pub async fn amounts_at_other_targets_do_not_collide(store: Arc<dyn PaymentStore>) {
    open(&*store, quote(1)).await;
    let targets = [
        PaymentTarget { chain_id: 1, ..TARGET },
        PaymentTarget { token: wallet(0), ..TARGET },
        PaymentTarget { recipient: wallet(0), ..TARGET },
    ];
    for (target, number) in targets.into_iter().zip([2, 4, 6]) {
        open(&*store, Quote { target, ..same_amount(number, NOON) }).await;
        assert_taken(&*store, Quote { target, ..same_amount(number + 1, NOON) }).await;
    }
}

/// Amounts are compared to the last unit, even at the end of the range.
pub async fn amounts_that_differ_by_a_unit_do_not_collide(store: Arc<dyn PaymentStore>) {
    let high = 1_u128 << 64;
    let amounts = [0, 1, 2, high - 1, high, high + 1, u128::MAX - 1, u128::MAX];
    for (amount, number) in amounts.into_iter().zip(1..) {
        open(&*store, Quote { amount: TokenUnits::new(amount), payer: wallet(1), ..quote(number) }).await;
    }
    for (amount, number) in amounts.into_iter().zip(101..) {
        assert_taken(&*store, Quote { amount: TokenUnits::new(amount), payer: wallet(1), ..quote(number) }).await;
    }
}

/// A paid quote keeps its amount reserved for its payer, because the amount still identifies that payment.
pub async fn paid_amount_stays_reserved_for_its_payer(store: Arc<dyn PaymentStore>) {
    for (number, late) in [(1, false), (2, true)] {
        let first = open(&*store, quote(number)).await;
        let paid = if late { late_claim(&first, tx(number)) } else { claim(&first, tx(number)) };
        let made = claimed(&*store, paid).await;
        let own = |at| Quote { amount: first.amount, payer: first.payer, ..same_amount(number + 10, at) };
        assert_eq!(store.open_quote(own(NOON)).await.unwrap(), QuoteOpened::PayerTaken, "late: {late}");
        store.revoke_account(&made.id, NOON).await.unwrap();
        let until = first.reserved_until();
        for at in [after(DAY), until] {
            assert_taken(&*store, own(at)).await;
        }
        open(&*store, own(until.saturating_add(MOMENT))).await;
    }
}
