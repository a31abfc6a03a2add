//! Contracts for quotes: stored as given, refused to owners of an account, and found by the payment that matches them.

use std::collections::BTreeSet;
use std::sync::Arc;

use metering_core::access::Payer;
use metering_core::chains::{Address, TokenUnits};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::payments::{NonceHash, Payment, PaymentTarget, Quote, QuoteState};
use metering_core::store::{NewAccount, PaymentStore, QuoteOpened};

use super::sale::{
    MOMENT, TARGET, after, claim, claimed, late_claim, open, payment_of, quote, state_of, tx, tx_on, wallet,
};
use super::scene::{MINUTE, NOON, create, new_account, new_id};

/// All fields of a quote are stored exactly: the largest amounts, numbers and times, and the exact text of an email.
pub async fn quotes_are_stored_unchanged(store: Arc<dyn PaymentStore>) {
    let at = Timestamp::from_unix_millis;
    let quotes = [
        quote(1),
        Quote { email: Some("Jörg+1@Example.com".parse().unwrap()), amount: TokenUnits::MAX, ..quote(2) },
        Quote { amount: TokenUnits::new(u128::MAX - 1), credits: Credits::MAX, ..quote(3) },
        Quote { amount: TokenUnits::new(1 << 64), bonus_credits: Credits::from_atoms(7), ..quote(4) },
        Quote { amount: TokenUnits::new((1 << 64) - 1), agent_name: "My-agent_01".parse().unwrap(), ..quote(5) },
        Quote { amount: TokenUnits::new(1 << 127), plan_id: "größer — “x”'%".to_owned(), ..quote(6) },
        Quote { amount: TokenUnits::ZERO, target: PaymentTarget { chain_id: u64::MAX, ..TARGET }, ..quote(7) },
        Quote { target: PaymentTarget { token: Address::ZERO, ..TARGET }, payer: wallet(0xFF), ..quote(8) },
        Quote { created_at: at(-1), expires_at: at(253_402_300_799_999), ..quote(9) },
    ];
    for quote in &quotes {
        open(&*store, quote.clone()).await;
    }
    for quote in &quotes {
        let found = store.quote(&quote.nonce).await.unwrap().expect("the quote is stored");
        assert_eq!(&found, quote);
        // Emails are compared case-insensitively, but the store keeps the exact text.
        assert_eq!(found.email.map(|email| email.to_string()), quote.email.as_ref().map(ToString::to_string));
    }
}

/// An unknown nonce finds no quote.
pub async fn an_unknown_nonce_finds_no_quote(store: Arc<dyn PaymentStore>) {
    open(&*store, quote(1)).await;
    let mut near = [1; 32];
    near[31] = 2;
    for nonce in [[0; 32], [2; 32], near] {
        assert_eq!(store.quote(&NonceHash::from_bytes(nonce)).await.unwrap(), None);
    }
}

/// A new quote must be open and have an unused nonce.
pub async fn quote_that_is_not_new_is_an_error(store: Arc<dyn PaymentStore>) {
    let (first, second) = (open(&*store, quote(1)).await, open(&*store, quote(2)).await);
    claimed(&*store, claim(&second, tx(2))).await;
    let (account, tx) = (new_id(), tx(3));
    let table = [
        ("the nonce of an open quote", Quote { nonce: first.nonce, ..quote(3) }),
        ("the nonce of a claimed quote", Quote { nonce: second.nonce, ..quote(3) }),
        ("the very same quote", first.clone()),
        ("paid", Quote { state: QuoteState::Paid { account: account.clone(), tx }, ..quote(3) }),
        ("claimed", Quote { state: QuoteState::Claimed { account, tx }, ..quote(3) }),
    ];
    for (what, new) in table {
        assert!(store.open_quote(new).await.is_err(), "{what}");
        assert_eq!(store.quote(&quote(3).nonce).await.unwrap(), None, "{what}");
        assert_eq!(store.quote(&first.nonce).await.unwrap(), Some(first.clone()), "{what}");
        assert!(matches!(state_of(&*store, &second).await, QuoteState::Claimed { .. }), "{what}");
    }
    open(&*store, quote(3)).await;
}

/// The order of refusals is: taken email, payer with an account, amount in use. A refused quote is not stored.
pub async fn quote_refusals_have_a_fixed_order(store: Arc<dyn PaymentStore>) {
    let (email, free_email) = ("jörg@example.com".parse().unwrap(), "other@example.com".parse().unwrap());
    let payer = Some(Payer { address: wallet(9), chain_id: 1 });
    create(&*store, NewAccount { email: Some(email), payer, ..new_account() }).await;
    let amount = open(&*store, quote(1)).await.amount;
    let taken = Some("JÖRG@Example.com".parse().unwrap());
    let free = Some(free_email);
    // email, payer, amount, result
    let table = [
        (taken.clone(), wallet(9), amount, QuoteOpened::EmailTaken),
        (taken.clone(), wallet(9), quote(2).amount, QuoteOpened::EmailTaken),
        (taken, wallet(2), quote(2).amount, QuoteOpened::EmailTaken),
        (free.clone(), wallet(9), amount, QuoteOpened::PayerTaken),
        (None, wallet(9), quote(2).amount, QuoteOpened::PayerTaken),
        (free.clone(), wallet(1), amount, QuoteOpened::AmountTaken),
        (free, wallet(2), amount, QuoteOpened::Opened),
    ];
    for (email, payer, amount, result) in table {
        let new = Quote { email, payer, amount, ..quote(2) };
        assert_eq!(store.open_quote(new.clone()).await.unwrap(), result, "{new:?}");
        let kept = (result == QuoteOpened::Opened).then_some(new.clone());
        assert_eq!(store.quote(&new.nonce).await.unwrap(), kept, "{new:?}");
    }
}

/// Quotes do not reserve emails or wallets; only live accounts do.
pub async fn revoked_accounts_do_not_prevent_a_quote(store: Arc<dyn PaymentStore>) {
    let email = || Some("a@example.com".parse().unwrap());
    for round in 0..2 {
        let opened = |number: u8| Quote { email: email(), payer: wallet(9), ..quote(10 * round + number) };
        let first = open(&*store, opened(1)).await;
        let second = open(&*store, opened(2)).await;
        let made = claimed(&*store, claim(&first, tx(round))).await;
        assert_eq!(store.open_quote(opened(3)).await.unwrap(), QuoteOpened::EmailTaken);
        assert_eq!(store.open_quote(Quote { email: None, ..opened(3) }).await.unwrap(), QuoteOpened::PayerTaken);
        assert_eq!(store.quote(&second.nonce).await.unwrap(), Some(second), "an earlier open quote stays open");
        store.revoke_account(&made.id, NOON).await.unwrap();
        open(&*store, opened(3)).await;
    }
}

/// A payment matches a quote with exactly its target, payer and amount, within the quote's time to the millisecond.
pub async fn a_payment_finds_its_quote(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, Quote { amount: TokenUnits::new(u128::MAX - 5), ..quote(1) }).await;
    let fits = payment_of(&quote, tx(1));
    let at = |mined_at| Payment { mined_at, ..fits.clone() };
    let units = |amount| Payment { amount: TokenUnits::new(amount), ..fits.clone() };
    let (from, until) = (quote.honoured_from(), quote.honoured_until());
    let table = [
        ("as quoted", fits.clone(), true),
        ("by any transaction of its chain", Payment { tx: tx(200), block_number: u64::MAX, ..fits.clone() }, true),
        ("at the first moment", at(from), true),
        ("a moment too early", at(from.saturating_sub(MOMENT)), false),
        ("after the expiry", at(quote.expires_at.saturating_add(MINUTE)), true),
        ("at the last moment", at(until), true),
        ("a moment too late", at(until.saturating_add(MOMENT)), false),
        ("one unit more", units(u128::MAX - 4), false),
        ("one unit less", units(u128::MAX - 6), false),
        ("the same 64 low bits", units(u128::from(u64::MAX - 5)), false),
        ("from another wallet", Payment { payer: wallet(2), ..fits.clone() }, false),
        ("to another recipient", Payment { recipient: wallet(2), ..fits.clone() }, false),
        ("in another token", Payment { token: Address::ZERO, ..fits.clone() }, false),
        ("on another chain", Payment { tx: tx_on(1, 1), ..fits.clone() }, false),
    ];
    for (what, payment, pays) in table {
        let found = store.quote_paid_by(&payment).await.unwrap();
        assert_eq!(found, pays.then(|| quote.clone()), "{what}");
    }
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(quote), "the lookup changes nothing");
}

/// Among quotes that differ in one field, each payment finds its own.
pub async fn each_payment_finds_its_own_quote(store: Arc<dyn PaymentStore>) {
    let amount = quote(1).amount;
    let quotes = [
        quote(1),
        // The same amount, for another payer.
        Quote { amount, ..quote(2) },
        Quote { payer: wallet(1), ..quote(3) },
        Quote { amount, payer: wallet(1), target: PaymentTarget { chain_id: 1, ..TARGET }, ..quote(4) },
        Quote { amount, payer: wallet(1), target: PaymentTarget { token: Address::ZERO, ..TARGET }, ..quote(5) },
        Quote { amount, payer: wallet(1), target: PaymentTarget { recipient: wallet(1), ..TARGET }, ..quote(6) },
    ];
    for quote in &quotes {
        open(&*store, quote.clone()).await;
    }
    for quote in &quotes {
        let payment = payment_of(quote, tx_on(quote.target.chain_id, 1));
        assert_eq!(store.quote_paid_by(&payment).await.unwrap().as_ref(), Some(quote));
    }
}

/// A paid quote matches no further payment, whether or not its key was given out.
pub async fn paid_quote_awaits_no_payment(store: Arc<dyn PaymentStore>) {
    let (first, second) = (open(&*store, quote(1)).await, open(&*store, quote(2)).await);
    claimed(&*store, claim(&first, tx(1))).await;
    claimed(&*store, late_claim(&second, tx(2))).await;
    for quote in [&first, &second] {
        for payment in [payment_of(quote, tx(1)), payment_of(quote, tx(2)), payment_of(quote, tx(3))] {
            assert_eq!(store.quote_paid_by(&payment).await.unwrap(), None, "{payment:?}");
        }
    }
    let created_at = after(MINUTE);
    let third = open(&*store, Quote { payer: wallet(3), created_at, ..quote(3) }).await;
    assert_eq!(store.quote_paid_by(&payment_of(&third, tx(4))).await.unwrap(), Some(third));
}

/// The payment targets of quotes are listed as long as the quotes are stored, paid or not, per chain and without
/// duplicates.
pub async fn payment_targets_are_stored_with_quotes(store: Arc<dyn PaymentStore>) {
    let coin = PaymentTarget { token: Address::ZERO, ..TARGET };
    let elsewhere = PaymentTarget { recipient: wallet(1), ..TARGET };
    let other_chain = PaymentTarget { chain_id: u64::MAX, ..TARGET };
    assert_eq!(store.quoted_targets(TARGET.chain_id).await.unwrap(), []);
    for (number, target) in [(1, TARGET), (2, TARGET), (3, elsewhere), (4, coin), (5, other_chain)] {
        open(&*store, Quote { target, ..quote(number) }).await;
    }
    claimed(&*store, claim(&quote(1), tx(1))).await;
    let expected = BTreeSet::from([TARGET, elsewhere, coin]);
    assert_eq!(store.quoted_targets(TARGET.chain_id).await.unwrap(), Vec::from_iter(expected));
    assert_eq!(store.quoted_targets(u64::MAX).await.unwrap(), [other_chain]);
    assert_eq!(store.quoted_targets(1).await.unwrap(), []);
    // Unpaid quotes are deleted first, and their targets with them.
    let ended = quote(1).honoured_until();
    for (remembered, targets) in [(Quote::UNPAID_RETENTION, vec![TARGET]), (Quote::RETENTION, vec![])] {
        store.forget_expired(ended.saturating_add(remembered)).await.unwrap();
        assert_eq!(store.quoted_targets(TARGET.chain_id).await.unwrap(), targets);
    }
}
