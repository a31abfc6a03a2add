//! Credits payments to existing accounts.

use super::entry::EntryChanges;
use super::{Decided, active};
use crate::access::account::Account;
use crate::chains::address::Address;
use crate::payments::payment::{PaymentRecord, PaymentUse};
use crate::store::{PaymentCredit, PaymentCredited, QuotePrecedence};

/// What is read before a payment is credited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// The record of the transaction, if it was used.
    pub record: Option<PaymentRecord>,
    /// The payment pays an open quote ([`Quote::is_paid_by`](crate::payments::Quote::is_paid_by)).
    pub pays_quote: bool,
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
}

/// Decides [`PaymentStore::credit_payment`](crate::PaymentStore::credit_payment).
///
/// Refused, in this order: [`PaymentCredited::NoSuchAccount`], also for a revoked one; [`PaymentCredited::Repeated`]
/// when it was already credited to this account, other than by a claim; [`PaymentCredited::TxUsed`] when the
/// transaction has any other record; [`PaymentCredited::BelongsToQuote`] when it pays an open quote and quotes take
/// precedence; [`PaymentCredited::OutOfRange`].
pub fn credit_payment<K>(credit: PaymentCredit, facts: CreditFacts<K>) -> Decided<CreditChanges<K>, PaymentCredited> {
    let Some((row, account)) = active(facts.account) else { return Decided::Refused(PaymentCredited::NoSuchAccount) };
    if let Some(record) = facts.record {
        let repeated = record.account == account.id && record.used_as != PaymentUse::PaySignup;
        return Decided::Refused(if repeated {
            PaymentCredited::Repeated(account, Box::new(record))
        } else {
            PaymentCredited::TxUsed
        });
    }
    if credit.quotes == QuotePrecedence::Quote && facts.pays_quote {
        return Decided::Refused(PaymentCredited::BelongsToQuote);
    }
    let PaymentCredit { account: id, payment, used_as, entry, sold, link_payer, quotes: _, now } = credit;
    let plan_id = entry.payment.as_ref().and_then(|paid| paid.plan_id.clone());
    let Some(posted) = EntryChanges::of((row, account), entry, now) else {
        return Decided::Refused(PaymentCredited::OutOfRange);
    };
    let link = link_payer.then_some(payment.payer);
    let record = PaymentRecord::of_new(payment, id, used_as, (plan_id, sold), now);
    Decided::Accepted(CreditChanges { posted, record, link })
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, payment, purchase, record, revoked, sold, tx};
    use super::*;
    use crate::store::QuotePrecedence::{Account as TheAccount, Quote as TheQuote};

    fn credit(amount: i64, quotes: QuotePrecedence) -> PaymentCredit {
        PaymentCredit {
            account: account().id,
            payment: payment(tx(1)),
            used_as: PaymentUse::Topup,
            entry: purchase(amount),
            sold: Some(sold()),
            link_payer: false,
            quotes,
            now: NOW,
        }
    }

    #[test]
    fn the_first_reason_refuses() {
        let known = || Some((1, account()));
        let other = PaymentRecord { account: "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap(), ..record(PaymentUse::Topup) };
        let repeated = |used_as| PaymentCredited::Repeated(account(), Box::new(record(used_as)));
        let [topup, assigned, claimed] = [PaymentUse::Topup, PaymentUse::Assigned, PaymentUse::PaySignup];
        let max = i64::MAX;
        // account, record, pays a quote, precedence, amount, refusal
        let table = [
            (None, Some(record(topup)), true, TheQuote, max, PaymentCredited::NoSuchAccount),
            (Some((1, revoked())), Some(record(topup)), true, TheQuote, max, PaymentCredited::NoSuchAccount),
            (known(), Some(record(topup)), true, TheQuote, max, repeated(topup)),
            (known(), Some(record(assigned)), true, TheQuote, max, repeated(assigned)),
            (known(), Some(record(claimed)), true, TheQuote, max, PaymentCredited::TxUsed),
            (known(), Some(other), true, TheQuote, max, PaymentCredited::TxUsed),
            (known(), None, true, TheQuote, max, PaymentCredited::BelongsToQuote),
            (known(), None, true, TheAccount, max, PaymentCredited::OutOfRange),
            (known(), None, false, TheQuote, max, PaymentCredited::OutOfRange),
        ];
        for (account, record, pays_quote, quotes, amount, refusal) in table {
            let facts = CreditFacts { account, record, pays_quote };
            let decided = credit_payment(credit(amount, quotes), facts.clone());
            assert_eq!(decided, Decided::Refused(refusal), "{facts:?} {quotes:?}");
        }
    }

    #[test]
    fn a_credit_writes_entry_record_and_link() {
        for (quotes, pays_quote, link_payer) in [(TheQuote, false, true), (TheAccount, true, false)] {
            let credit = PaymentCredit { link_payer, ..credit(5, quotes) };
            let facts = CreditFacts { account: Some((1, account())), record: None, pays_quote };
            let Decided::Accepted(changes) = credit_payment(credit.clone(), facts) else {
                panic!("nothing refuses it")
            };
            let purchased = account().totals.purchased.atoms() + 5;
            assert_eq!(changes.posted.account.totals.purchased.atoms(), purchased);
            assert_eq!((changes.posted.entry, changes.posted.written_at), (credit.entry, NOW));
            assert_eq!(changes.record, record(PaymentUse::Topup));
            assert_eq!(changes.link, link_payer.then_some(credit.payment.payer));
        }
    }
}
