//! Credits payments to existing accounts.

use super::entry::EntryChanges;
use super::{Decided, active};
use crate::access::account::Account;
use crate::chains::address::Address;
use crate::payments::payment::{PaymentRecord, PaymentUse};
use crate::payments::quote::{NonceHash, Quote, QuoteState};
use crate::store::{PaymentCredit, PaymentCredited, QuotePrecedence};

/// The rows read before a payment is credited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// The record of the transaction, if it was used.
    pub record: Option<PaymentRecord>,
    /// The quote that waits for the payment ([`Quote::waits`], [`Quote::is_paid_by`]).
    pub quote: Option<Quote>,
}

/// A payment to credit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditChanges<K> {
    /// The ledger entry, and the account after it.
    pub posted: EntryChanges<K>,
    /// The record of the payment to insert.
    pub record: PaymentRecord,
    /// The wallet to link to the account, unless it is linked already.
    pub link: Option<Address>,
    /// The account's own top-up quote that the payment pays, and its new state.
    pub quote: Option<(NonceHash, QuoteState)>,
}

/// Decides [`PaymentStore::credit_payment`](crate::PaymentStore::credit_payment).
///
/// Refused, in this order: [`PaymentCredited::NoSuchAccount`], also for a revoked one; [`PaymentCredited::Repeated`]
/// when it was already credited to this account, other than by a claim; [`PaymentCredited::TxUsed`] when the
/// transaction has any other record; [`PaymentCredited::BelongsToQuote`] when it pays a quote that waits and takes
/// precedence ([`QuotePrecedence`]), or does not pay the account's own one although it must;
/// [`PaymentCredited::OutOfRange`].
pub fn credit_payment<K>(credit: PaymentCredit, facts: CreditFacts<K>) -> Decided<CreditChanges<K>, PaymentCredited> {
    credit_even_if_revoked(credit, CreditFacts { account: active(facts.account), ..facts })
}

/// Decides like [`credit_payment`], but also credits a revoked account.
pub(super) fn credit_even_if_revoked<K>(
    credit: PaymentCredit,
    facts: CreditFacts<K>,
) -> Decided<CreditChanges<K>, PaymentCredited> {
    let Some((row, account)) = facts.account else { return Decided::Refused(PaymentCredited::NoSuchAccount) };
    if let Some(record) = facts.record {
        let repeated = record.account == account.id && record.used_as != PaymentUse::PaySignup;
        return Decided::Refused(if repeated {
            PaymentCredited::Repeated(account, Box::new(record))
        } else {
            PaymentCredited::TxUsed
        });
    }
    let (own, others) = match facts.quote {
        Some(quote) if quote.top_up.as_ref() == Some(&account.id) => (Some(quote.nonce), None),
        other => (None, other),
    };
    let refused = match credit.quotes {
        QuotePrecedence::Quote => others.is_some(),
        QuotePrecedence::TopUpQuote => others.is_some_and(|quote| quote.top_up.is_some()),
        QuotePrecedence::OwnQuote => own.is_none(),
        QuotePrecedence::Account => false,
    };
    if refused {
        return Decided::Refused(PaymentCredited::BelongsToQuote);
    }
    let PaymentCredit { account: id, payment, used_as, entry, sold, value, link_payer, quotes: _, now } = credit;
    let plan_id = entry.payment.as_ref().and_then(|paid| paid.plan_id.clone());
    let Some(posted) = EntryChanges::of((row, account), entry, now) else {
        return Decided::Refused(PaymentCredited::OutOfRange);
    };
    let link = link_payer.then_some(payment.payer);
    let quote = own.map(|nonce| (nonce, QuoteState::Claimed { account: id.clone(), tx: payment.tx }));
    let record = PaymentRecord { plan_id, sold, value, ..PaymentRecord::of(payment, id, used_as, now) };
    Decided::Accepted(CreditChanges { posted, record, link, quote })
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, payment, purchase, quote, record, revoked, sold, tx, value};
    use super::*;
    use crate::store::QuotePrecedence::{
        Account as TheAccount, OwnQuote, Quote as TheQuote, TopUpQuote as TheTopUpQuote,
    };

    const OTHER: &str = "org_yyyyyyyyyyyyyyyyyyyy";

    fn top_up_quote(account: &str) -> Option<Quote> {
        Some(Quote { payer: Quote::ANY_PAYER, top_up: Some(account.parse().unwrap()), ..quote() })
    }

    fn credit(amount: i64, quotes: QuotePrecedence) -> PaymentCredit {
        PaymentCredit {
            account: account().id,
            payment: payment(tx(1)),
            used_as: PaymentUse::Topup,
            entry: purchase(amount),
            sold: Some(sold()),
            value: Some(value()),
            link_payer: false,
            quotes,
            now: NOW,
        }
    }

    #[test]
    fn the_first_reason_refuses() {
        let known = || Some((1, account()));
        let other = PaymentRecord { account: OTHER.parse().unwrap(), ..record(PaymentUse::Topup) };
        let repeated = |used_as| PaymentCredited::Repeated(account(), Box::new(record(used_as)));
        let [topup, assigned, claimed] = [PaymentUse::Topup, PaymentUse::Assigned, PaymentUse::PaySignup];
        let max = i64::MAX;
        let (waits, own) = (|| Some(quote()), top_up_quote(account().id.as_str()));
        let others = || top_up_quote(OTHER);
        // account, record, the quote it pays, precedence, amount, refusal
        let table = [
            (None, Some(record(topup)), waits(), TheQuote, max, PaymentCredited::NoSuchAccount),
            (Some((1, revoked())), Some(record(topup)), waits(), TheQuote, max, PaymentCredited::NoSuchAccount),
            (known(), Some(record(topup)), waits(), TheQuote, max, repeated(topup)),
            (known(), Some(record(assigned)), waits(), TheQuote, max, repeated(assigned)),
            (known(), Some(record(claimed)), waits(), TheQuote, max, PaymentCredited::TxUsed),
            (known(), Some(other), waits(), TheQuote, max, PaymentCredited::TxUsed),
            (known(), None, waits(), TheQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, waits(), TheAccount, max, PaymentCredited::OutOfRange),
            (known(), None, None, TheQuote, max, PaymentCredited::OutOfRange),
            (known(), None, waits(), TheTopUpQuote, max, PaymentCredited::OutOfRange),
            (known(), None, waits(), OwnQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, None, OwnQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, others(), TheQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, others(), TheTopUpQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, others(), OwnQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, others(), TheAccount, max, PaymentCredited::OutOfRange),
            (known(), None, own, OwnQuote, max, PaymentCredited::OutOfRange),
        ];
        for (account, record, quote, quotes, amount, refusal) in table {
            let facts = CreditFacts { account, record, quote };
            let decided = credit_payment(credit(amount, quotes), facts.clone());
            assert_eq!(decided, Decided::Refused(refusal), "{facts:?} {quotes:?}");
        }
    }

    #[test]
    fn a_credit_writes_entry_record_and_link() {
        for (quotes, quote, link_payer) in [(TheQuote, None, true), (TheAccount, Some(quote()), false)] {
            let credit = PaymentCredit { link_payer, ..credit(5, quotes) };
            let facts = CreditFacts { account: Some((1, account())), record: None, quote };
            let Decided::Accepted(changes) = credit_payment(credit.clone(), facts) else {
                panic!("nothing refuses it")
            };
            let purchased = account().totals.purchased.atoms() + 5;
            assert_eq!(changes.posted.account.totals.purchased.atoms(), purchased);
            assert_eq!((changes.posted.entry, changes.posted.written_at), (credit.entry, NOW));
            assert_eq!(changes.record, record(PaymentUse::Topup));
            assert_eq!(changes.link, link_payer.then_some(credit.payment.payer));
            assert_eq!(changes.quote, None);
        }
    }

    #[test]
    fn the_accounts_own_quote_is_used_up_whatever_the_precedence() {
        let own = top_up_quote(account().id.as_str());
        for quotes in [TheQuote, TheTopUpQuote, OwnQuote, TheAccount] {
            let facts = CreditFacts { account: Some((1, account())), record: None, quote: own.clone() };
            let Decided::Accepted(changes) = credit_payment(credit(5, quotes), facts) else { panic!("{quotes:?}") };
            let state = QuoteState::Claimed { account: account().id, tx: tx(1) };
            assert_eq!(changes.quote, Some((quote().nonce, state)), "{quotes:?}");
        }
    }
}
