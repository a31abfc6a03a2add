//! Opens quotes.

use super::Decided;
use super::create::OwnerFacts;
use crate::payments::quote::{Quote, QuoteState};
use crate::store::{QuoteOpened, StoreError};

/// The rows read before a quote is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuoteFacts {
    /// A stored quote has its nonce.
    pub nonce_in_use: bool,
    /// Whether its email address and payer are free.
    pub owner: OwnerFacts,
    /// A stored quote reserves its amount ([`Quote::reserves_amount_of`]).
    pub amount_taken: bool,
    /// How many stored quotes count against it ([`Quote::counts_against`]).
    pub unpaid_top_ups: usize,
}

/// Decides [`PaymentStore::open_quote`](crate::PaymentStore::open_quote), and returns the quote to insert.
///
/// Refused, in this order: [`QuoteOpened::EmailTaken`], [`QuoteOpened::PayerTaken`],
/// [`QuoteOpened::TooManyTopUps`], [`QuoteOpened::AmountTaken`].
///
/// # Errors
/// Before any refusal, when the quote is not open, its nonce is in use, or it is neither for one payer nor for one
/// account.
pub fn open_quote(new: Quote, facts: QuoteFacts) -> Result<Decided<Quote, QuoteOpened>, StoreError> {
    if new.state != QuoteState::Open || facts.nonce_in_use {
        return Err(StoreError::Corrupt("a new quote is not open, or its nonce is already in use".to_owned()));
    }
    if new.top_up.is_some() != (new.payer == Quote::ANY_PAYER) {
        return Err(StoreError::Corrupt("a new quote is neither for one payer nor for one account".to_owned()));
    }
    let OwnerFacts { email_taken, payer_taken } = facts.owner;
    let reasons = [
        (email_taken, QuoteOpened::EmailTaken),
        (payer_taken, QuoteOpened::PayerTaken),
        (facts.unpaid_top_ups >= Quote::MAX_TOP_UPS, QuoteOpened::TooManyTopUps),
        (facts.amount_taken, QuoteOpened::AmountTaken),
    ];
    let refusal = reasons.into_iter().find(|(refused, _)| *refused);
    Ok(refusal.map_or(Decided::Accepted(new), |(_, reason)| Decided::Refused(reason)))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{account, quote, tx};
    use super::*;

    #[test]
    fn the_first_reason_refuses() {
        let refused = |reason| Some(Decided::Refused(reason));
        // nonce in use, email taken, payer taken, unpaid top-ups, amount taken, decision (`None`: an error)
        let table = [
            (true, true, true, 16, true, None),
            (false, true, true, 16, true, refused(QuoteOpened::EmailTaken)),
            (false, false, true, 16, true, refused(QuoteOpened::PayerTaken)),
            (false, false, false, 17, true, refused(QuoteOpened::TooManyTopUps)),
            (false, false, false, 16, true, refused(QuoteOpened::TooManyTopUps)),
            (false, false, false, 15, true, refused(QuoteOpened::AmountTaken)),
            (false, false, false, 15, false, Some(Decided::Accepted(quote()))),
        ];
        for (nonce_in_use, email_taken, payer_taken, unpaid_top_ups, amount_taken, decided) in table {
            let owner = OwnerFacts { email_taken, payer_taken };
            let facts = QuoteFacts { nonce_in_use, owner, amount_taken, unpaid_top_ups };
            assert_eq!(open_quote(quote(), facts).ok(), decided, "{facts:?}");
        }
    }

    #[test]
    fn a_quote_that_is_not_open_is_an_error() {
        for state in [
            QuoteState::Paid { account: account().id, tx: tx(1) },
            QuoteState::Claimed { account: account().id, tx: tx(1) },
        ] {
            open_quote(Quote { state, ..quote() }, QuoteFacts::default()).unwrap_err();
        }
    }

    #[test]
    fn a_quote_is_for_one_payer_or_for_one_account() {
        let (payer, account) = (quote().payer, Some(account().id));
        // payer, account, whether it is opened
        let table = [
            (payer, None, true),
            (Quote::ANY_PAYER, account.clone(), true),
            (payer, account, false),
            (Quote::ANY_PAYER, None, false),
        ];
        for (payer, top_up, opened) in table {
            let new = Quote { payer, top_up, ..quote() };
            assert_eq!(open_quote(new.clone(), QuoteFacts::default()).is_ok(), opened, "{new:?}");
        }
    }
}
