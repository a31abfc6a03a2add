//! Contracts for top-up quotes: any wallet may pay one, no other quote has its amount, and its account gets the credits.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::chains::Block;
use metering_core::clock::Timestamp;
use metering_core::payments::{Payment, Quote, QuoteState, SettlementStep};
use metering_core::store::{
    Claimed, PaymentCredit, PaymentCredited, PaymentSettled, PaymentStore, QuoteOpened, QuotePrecedence,
    SettlementChange,
};

use super::sale::{MOMENT, claim, credit, late_claim, open, payment_of, quote, tx, wallet};
use super::scene::{BASE, DAY, MINUTE, NOON, customer};

fn top_up_quote(number: u8, account: &AccountId) -> Quote {
    Quote { payer: Quote::ANY_PAYER, top_up: Some(account.clone()), ..quote(number) }
}

/// The payment of a top-up quote by wallet `number`.
fn paid_by(number: u8, quote: &Quote) -> Payment {
    Payment { payer: wallet(number), ..payment_of(quote, tx(number)) }
}

fn own_credit(quote: &Quote, payment: Payment) -> PaymentCredit {
    let account = quote.top_up.as_ref().unwrap();
    PaymentCredit { quotes: QuotePrecedence::OwnQuote, ..credit(account, payment) }
}

/// Top-up quotes are stored unchanged, and listed for their account by creation time.
pub async fn top_up_quotes_are_listed_for_their_account(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let later = top_up_quote(1, &own.id);
    let later = Quote { created_at: later.created_at.saturating_add(MINUTE), ..later };
    let first = top_up_quote(2, &own.id);
    open(&*store, quote(3)).await;
    for quote in [&later, &first, &top_up_quote(4, &other.id)] {
        open(&*store, quote.clone()).await;
        assert_eq!(store.quote(&quote.nonce).await.unwrap().as_ref(), Some(quote));
    }
    assert_eq!(store.top_up_quotes(&own.id).await.unwrap(), [first, later]);
    let unknown = "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap();
    assert_eq!(store.top_up_quotes(&unknown).await.unwrap(), []);
}

/// A payment with the quote's amount from any wallet pays it, until a day after the expiry.
pub async fn any_wallet_pays_a_top_up_quote(store: Arc<dyn PaymentStore>) {
    let own = customer(&*store, BASE).await;
    let quote = open(&*store, top_up_quote(1, &own.id)).await;
    let at = |mined_at| Payment { mined_at, ..paid_by(7, &quote) };
    let until = quote.expires_at.saturating_add(Quote::TOP_UP_GRACE);
    let table = [
        ("by one wallet", paid_by(7, &quote), true),
        ("by another", paid_by(8, &quote), true),
        ("at the last moment", at(until), true),
        ("a moment too late", at(until.saturating_add(MOMENT)), false),
        ("a moment too early", at(quote.honoured_from().saturating_sub(MOMENT)), false),
        ("another amount", payment_of(&super::sale::quote(2), tx(1)), false),
    ];
    for (what, payment, pays) in table {
        let found = store.quote_paid_by(&payment).await.unwrap();
        assert_eq!(found, pays.then(|| quote.clone()), "{what}");
    }
}

/// Two minutes longer than its payment is honoured, no quote of either kind gets the amount of a top-up quote: a quote
/// honours payments from two minutes before it. Then its own account may have the amount again, and other accounts a
/// month later, so a late payment is credited to no other account.
pub async fn amount_of_a_top_up_quote_is_reserved_from_everybody(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let first = open(&*store, top_up_quote(1, &own.id)).await;
    let signup = open(&*store, quote(9)).await;
    let at = |quote: Quote, amount, created_at| Quote { amount, created_at, ..quote };
    let until = first.honoured_until().saturating_add(MINUTE * 2);
    let rested = until.saturating_add(DAY * 30);
    let taken = |new: Quote, created_at| {
        let (store, new) = (Arc::clone(&store), at(new, first.amount, created_at));
        async move { assert_eq!(store.open_quote(new).await.unwrap(), QuoteOpened::AmountTaken, "at {created_at}") }
    };
    for created_at in [first.created_at, until] {
        taken(top_up_quote(2, &own.id), created_at).await;
        let over_signup = store.open_quote(at(top_up_quote(5, &own.id), signup.amount, created_at)).await.unwrap();
        assert_eq!(over_signup, QuoteOpened::AmountTaken, "a signup quote has it, for any payer");
    }
    for created_at in [first.created_at, until, until.saturating_add(MOMENT), until.saturating_add(DAY * 15), rested] {
        taken(top_up_quote(3, &other.id), created_at).await;
        taken(quote(4), created_at).await;
    }
    let moment_after = |time: Timestamp| time.saturating_add(MOMENT);
    // Quotes that must be kept that long are not deleted earlier.
    assert_eq!(store.forget_expired(first.reserved_until()).await.unwrap(), 0);
    open(&*store, at(top_up_quote(6, &other.id), first.amount, moment_after(rested))).await;
}

/// Once a payment of its old quote can no longer be credited, an account may have the amount again, and others still not.
pub async fn amount_of_a_top_up_quote_returns_to_its_account(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    for (number, is_paid) in [(1, false), (2, true)] {
        let first = open(&*store, top_up_quote(number, &own.id)).await;
        if is_paid {
            store.credit_payment(own_credit(&first, paid_by(7, &first))).await.unwrap();
        }
        let at = |new: Quote, created_at: Timestamp| {
            let expires_at = created_at.saturating_add(MINUTE * 30);
            Quote { amount: first.amount, created_at, expires_at, ..new }
        };
        let free = first.reserved_until().saturating_add(MOMENT);
        let early = store.open_quote(at(top_up_quote(number + 10, &own.id), first.reserved_until())).await.unwrap();
        assert_eq!(early, QuoteOpened::AmountTaken, "paid: {is_paid}");
        let again = open(&*store, at(top_up_quote(number + 20, &own.id), free)).await;
        let later = again.reserved_until().saturating_add(MOMENT);
        let theirs = store.open_quote(at(top_up_quote(number + 30, &other.id), later)).await.unwrap();
        assert_eq!(theirs, QuoteOpened::AmountTaken, "paid: {is_paid}");
        let payment = Payment { mined_at: free, ..paid_by(number + 40, &again) };
        assert_eq!(store.quote_paid_by(&payment).await.unwrap(), Some(again), "paid: {is_paid}");
    }
}

/// A quote whose payment was reversed waits for another payment, still for the same account. The reversed payment, once
/// it is back, is credited again, and the quote stays used.
pub async fn a_top_up_quote_waits_again_when_its_payment_is_reversed(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let quote = open(&*store, top_up_quote(1, &own.id)).await;
    let (first, second) = (paid_by(7, &quote), paid_by(8, &quote));
    store.credit_payment(own_credit(&quote, first.clone())).await.unwrap();
    let settle = async |step| {
        let seen = store.payment(&first.tx).await.unwrap().expect("the payment is recorded");
        let settled = store.settle_payment(SettlementChange { seen, step, now: NOON }).await.unwrap();
        assert!(matches!(settled, PaymentSettled::Changed(_)), "{settled:?}");
    };
    assert_eq!(store.quote_paid_by(&second).await.unwrap(), None);
    settle(SettlementStep::Reverse).await;
    let used = |tx| Quote { state: QuoteState::Claimed { account: own.id.clone(), tx }, ..quote.clone() };
    assert_eq!(store.quote_paid_by(&second).await.unwrap(), Some(used(first.tx)));
    for quotes in [QuotePrecedence::Quote, QuotePrecedence::TopUpQuote, QuotePrecedence::OwnQuote] {
        let theirs = PaymentCredit { quotes, ..credit(&other.id, second.clone()) };
        assert_eq!(store.credit_payment(theirs).await.unwrap(), PaymentCredited::BelongsToQuote, "{quotes:?}");
    }
    let again = store.credit_payment(own_credit(&quote, first.clone())).await.unwrap();
    assert!(matches!(again, PaymentCredited::Repeated(..)), "the reversed payment is not credited again: {again:?}");
    let credited = store.credit_payment(own_credit(&quote, second.clone())).await.unwrap();
    assert!(matches!(&credited, PaymentCredited::Account(after) if after.id == own.id), "{credited:?}");
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(used(second.tx)));
    let third = paid_by(9, &quote);
    assert_eq!(store.quote_paid_by(&third).await.unwrap(), None, "it was paid again, and waits no longer");
    assert_eq!(store.credit_payment(own_credit(&quote, third)).await.unwrap(), PaymentCredited::BelongsToQuote);
    settle(SettlementStep::Restore(Block { number: 19, hash: [19; 32], time: NOON })).await;
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(used(second.tx)));
}

/// An account's unpaid top-up quotes are limited while they reserve their amounts. Paid ones, and those of others, do not
/// count.
pub async fn unpaid_top_up_quotes_are_limited(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let most = u8::try_from(Quote::MAX_TOP_UPS).unwrap();
    let first = open(&*store, top_up_quote(1, &own.id)).await;
    for number in 2..=most {
        open(&*store, top_up_quote(number, &own.id)).await;
    }
    let refused = |new| async { assert_eq!(store.open_quote(new).await.unwrap(), QuoteOpened::TooManyTopUps) };
    let until = first.reserved_until();
    for created_at in [first.created_at, until] {
        refused(Quote { created_at, ..top_up_quote(101, &own.id) }).await;
    }
    open(&*store, top_up_quote(102, &other.id)).await;
    open(&*store, quote(103)).await;
    let credited = store.credit_payment(own_credit(&first, paid_by(7, &first))).await.unwrap();
    assert!(matches!(credited, PaymentCredited::Account(_)), "{credited:?}");
    open(&*store, top_up_quote(104, &own.id)).await;
    refused(top_up_quote(105, &own.id)).await;
    open(&*store, Quote { created_at: until.saturating_add(MOMENT), ..top_up_quote(106, &own.id) }).await;
}

/// Of quotes opened at the same time, no more are stored than allowed.
pub async fn unpaid_top_up_quotes_are_limited_in_a_race(store: Arc<dyn PaymentStore>) {
    let own = customer(&*store, BASE).await;
    let opening = (1..=40).map(|number| {
        let (store, new) = (Arc::clone(&store), top_up_quote(number, &own.id));
        tokio::spawn(async move { store.open_quote(new).await.unwrap() })
    });
    let mut opened = Vec::new();
    for task in opening.collect::<Vec<_>>() {
        opened.push(task.await.unwrap());
    }
    opened.retain(|opened| *opened == QuoteOpened::Opened);
    assert_eq!(opened.len(), Quote::MAX_TOP_UPS);
    assert_eq!(store.top_up_quotes(&own.id).await.unwrap().len(), Quote::MAX_TOP_UPS);
}

/// An unpaid top-up quote is found for a payment that is read up to 32 days after the expiry, and reserves its amount from
/// others until it is deleted.
pub async fn unpaid_top_up_quotes_are_kept_for_a_month(store: Arc<dyn PaymentStore>) {
    let own = customer(&*store, BASE).await;
    let quote = open(&*store, top_up_quote(1, &own.id)).await;
    let over = quote.expires_at.saturating_add(DAY * 32);
    let events = store.forget_expired(over.saturating_sub(MOMENT)).await.unwrap();
    assert_eq!(events, 1, "the event of the account's first key");
    assert_eq!(store.quote_paid_by(&paid_by(7, &quote)).await.unwrap().as_ref(), Some(&quote));
    assert_eq!(store.forget_expired(over).await.unwrap(), 1);
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), None);
}

/// The payment is credited to the quote's account once, and to no other account.
pub async fn a_top_up_quote_is_used_once_by_its_account(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let quote = open(&*store, top_up_quote(1, &own.id)).await;
    let payment = paid_by(7, &quote);
    for quotes in [QuotePrecedence::Quote, QuotePrecedence::TopUpQuote, QuotePrecedence::OwnQuote] {
        let theirs = PaymentCredit { quotes, ..credit(&other.id, payment.clone()) };
        assert_eq!(store.credit_payment(theirs).await.unwrap(), PaymentCredited::BelongsToQuote, "{quotes:?}");
    }
    let credited = store.credit_payment(own_credit(&quote, payment.clone())).await.unwrap();
    assert!(matches!(&credited, PaymentCredited::Account(after) if after.id == own.id), "{credited:?}");
    let state = QuoteState::Claimed { account: own.id.clone(), tx: payment.tx };
    let used = Quote { state, ..quote.clone() };
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(used.clone()));
    assert_eq!(store.top_up_quotes(&own.id).await.unwrap(), [used]);
    let again = store.credit_payment(own_credit(&quote, payment)).await.unwrap();
    assert!(matches!(again, PaymentCredited::Repeated(..)), "{again:?}");
    // A second payment of the same amount belongs to no account: the account has to prove its ownership, or the
    // operator has to assign it.
    let second = paid_by(8, &quote);
    assert_eq!(store.quote_paid_by(&second).await.unwrap(), None);
    assert_eq!(store.credit_payment(own_credit(&quote, second)).await.unwrap(), PaymentCredited::BelongsToQuote);
}

/// No claim turns a top-up quote into an account.
pub async fn a_top_up_quote_cannot_be_claimed(store: Arc<dyn PaymentStore>) {
    let own = customer(&*store, BASE).await;
    let quote = open(&*store, top_up_quote(1, &own.id)).await;
    for claim in [claim(&quote, tx(1)), late_claim(&quote, tx(1))] {
        assert_eq!(store.claim_quote(claim).await.unwrap(), Claimed::NoSuchQuote);
    }
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(quote));
}
