//! Amounts in use: what makes a payment name one quote.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::payment::PaymentTarget;
use crate::quote::Quote;
use crate::store::{QuoteOpened, Store};
use crate::units::TokenUnits;

use super::sale::{MOMENT, TARGET, after, claim, claimed, late_claim, open, quote, tx, wallet};
use super::scene::{DAY, MINUTE, NOON};

/// A quote of the first one's amount, made at `created_at`.
fn same_amount(number: u8, created_at: Timestamp) -> Quote {
    let expires_at = created_at.saturating_add(MINUTE * 30);
    Quote { amount: quote(1).amount, created_at, expires_at, ..quote(number) }
}

async fn assert_taken(store: &dyn Store, new: Quote) {
    let (created_at, nonce) = (new.created_at, new.nonce);
    assert_eq!(store.open_quote(new).await.unwrap(), QuoteOpened::AmountTaken, "at {created_at}");
    assert_eq!(store.quote(&nonce).await.unwrap(), None, "at {created_at}");
}

/// While a promise runs, nobody else gets its amount; when it is over, the next one does.
pub async fn a_promised_amount_is_free_for_others_after_its_expiry(store: Arc<dyn Store>) {
    let first = open(&*store, quote(1)).await;
    let expired = first.expires_at;
    // A clock that lags asks too.
    for at in [NOON.saturating_sub(DAY), NOON, after(MINUTE * 29), expired.saturating_sub(MOMENT)] {
        assert_taken(&*store, same_amount(2, at)).await;
    }
    let second = open(&*store, same_amount(2, expired)).await;
    // Now it is the second one's.
    assert_taken(&*store, same_amount(3, expired)).await;
    assert_taken(&*store, same_amount(3, second.expires_at.saturating_sub(MOMENT))).await;
    open(&*store, same_amount(3, second.expires_at)).await;
}

/// A payer gets the same amount again only when a payment of it can mean one quote alone.
pub async fn an_amount_is_kept_for_its_payer_through_the_grace(store: Arc<dyn Store>) {
    let first = open(&*store, quote(1)).await;
    let again = |at| Quote { payer: wallet(1), ..same_amount(2, at) };
    let (expired, until) = (first.expires_at, first.honoured_until());
    for at in [NOON, expired.saturating_sub(MOMENT), expired, after(DAY), until.saturating_sub(MOMENT), until] {
        assert_taken(&*store, again(at)).await;
    }
    open(&*store, again(until.saturating_add(MOMENT))).await;
}

/// An amount is in use at one chain, in one token, to one recipient; elsewhere it is another payment.
pub async fn amounts_at_other_targets_do_not_collide(store: Arc<dyn Store>) {
    open(&*store, quote(1)).await;
    let targets = [
        PaymentTarget { chain_id: 1, ..TARGET },
        PaymentTarget { token: wallet(0), ..TARGET },
        PaymentTarget { recipient: wallet(0), ..TARGET },
    ];
    for (target, number) in targets.into_iter().zip([2, 4, 6]) {
        open(&*store, Quote { target, payer: wallet(1), ..same_amount(number, NOON) }).await;
        assert_taken(&*store, Quote { target, ..same_amount(number + 1, NOON) }).await;
    }
}

/// Amounts are compared to the last unit, at the end of the range too.
pub async fn amounts_that_differ_by_a_unit_do_not_collide(store: Arc<dyn Store>) {
    let high = 1_u128 << 64;
    let amounts = [0, 1, 2, high - 1, high, high + 1, u128::MAX - 1, u128::MAX];
    for (amount, number) in amounts.into_iter().zip(1..) {
        open(&*store, Quote { amount: TokenUnits::new(amount), ..quote(number) }).await;
    }
    for (amount, number) in amounts.into_iter().zip(101..) {
        assert_taken(&*store, Quote { amount: TokenUnits::new(amount), ..quote(number) }).await;
    }
}

/// Once a quote was paid, its amount is free for others at once, but still means that payment where it is its payer's.
pub async fn a_paid_amount_is_free_for_others_only(store: Arc<dyn Store>) {
    for (number, late) in [(1, false), (2, true)] {
        let first = open(&*store, quote(number)).await;
        let paid = if late { late_claim(&first, tx(number)) } else { claim(&first, tx(number)) };
        let made = claimed(&*store, paid).await;
        let again = |at| Quote { amount: first.amount, ..same_amount(number + 10, at) };
        open(&*store, again(NOON)).await;
        let own = |at| Quote { payer: first.payer, nonce: quote(number + 20).nonce, ..again(at) };
        assert_eq!(store.open_quote(own(NOON)).await.unwrap(), QuoteOpened::PayerTaken, "late: {late}");
        store.revoke_account(&made.id, NOON).await.unwrap();
        let until = first.honoured_until();
        for at in [after(DAY), until] {
            assert_taken(&*store, own(at)).await;
        }
        open(&*store, own(until.saturating_add(MOMENT))).await;
    }
}
