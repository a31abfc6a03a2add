//! Contracts for top-up quotes: any wallet may pay one, no other quote has its amount, and its account gets the credits.

use std::sync::Arc;

use crate::access::account::AccountId;
use crate::payments::payment::Payment;
use crate::payments::quote::{Quote, QuoteState};
use crate::store::{Claimed, PaymentCredit, PaymentCredited, PaymentStore, QuoteOpened, QuotePrecedence};

use super::sale::{MOMENT, claim, credit, late_claim, open, payment_of, quote, tx, wallet};
use super::scene::{BASE, DAY, MINUTE, customer};

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

/// A payment with the quote's amount pays it, whichever wallet sent it, until a day after the expiry.
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
/// honours payments from two minutes before it.
pub async fn amount_of_a_top_up_quote_is_reserved_from_everybody(store: Arc<dyn PaymentStore>) {
    let (own, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let first = open(&*store, top_up_quote(1, &own.id)).await;
    let signup = open(&*store, quote(9)).await;
    let at = |quote: Quote, amount, created_at| Quote { amount, created_at, ..quote };
    let until = first.honoured_until().saturating_add(MINUTE * 2);
    for (created_at, opened) in [
        (first.created_at, QuoteOpened::AmountTaken),
        (until, QuoteOpened::AmountTaken),
        (until.saturating_add(MOMENT), QuoteOpened::Opened),
    ] {
        for (number, new) in [(2, top_up_quote(2, &own.id)), (3, top_up_quote(3, &other.id)), (4, quote(4))] {
            let refused = store.open_quote(at(new, first.amount, created_at)).await.unwrap();
            assert_eq!(refused, opened, "{number} at {created_at}");
            if opened == QuoteOpened::Opened {
                return;
            }
        }
        let over_signup = store.open_quote(at(top_up_quote(5, &own.id), signup.amount, created_at)).await.unwrap();
        assert_eq!(over_signup, QuoteOpened::AmountTaken, "a signup quote has it, whoever its payer is");
    }
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

/// An unpaid top-up quote is found for a payment that is read up to eight days after the expiry.
pub async fn unpaid_top_up_quotes_are_kept_for_a_week(store: Arc<dyn PaymentStore>) {
    let own = customer(&*store, BASE).await;
    let quote = open(&*store, top_up_quote(1, &own.id)).await;
    let over = quote.expires_at.saturating_add(DAY * 8);
    assert_eq!(store.forget_expired(over.saturating_sub(MOMENT)).await.unwrap(), 0);
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
    // A second payment of the same amount is nobody's: the account, or the operator, has to prove whose it is.
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
