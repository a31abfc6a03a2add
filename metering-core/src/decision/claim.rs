//! Claims quotes: a paid quote becomes an account with a key.

use super::Decided;
use super::create::{CreateChanges, CreateFacts, OwnerFacts, create_account};
use super::key::{KeyChanges, KeyFacts, replace_key};
use crate::access::account::AccountId;
use crate::access::email_status::EmailStatus;
use crate::payments::payment::{PaymentRecord, PaymentUse};
use crate::payments::quote::{NonceHash, Quote, QuoteState};
use crate::store::{Claim, Claimed, Created, KeyDelivery, NewAccount, StoreError};

/// The next step of a claim, depending on its quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimStep {
    /// The claim is refused, with no further step.
    Refused(Claimed),
    /// The quote is open: [`claim_open`] decides whether its account is created.
    CreateAccount,
    /// The watcher has created this account already: [`claim_paid`] decides whether it gets the claim's key.
    ReplaceKey(AccountId),
}

/// An account to create for a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimChanges {
    /// The account to insert.
    pub account: CreateChanges,
    /// The record of the payment to insert.
    pub record: PaymentRecord,
    /// The nonce of the quote.
    pub nonce: NonceHash,
    /// The new state of the quote: paid, or claimed if the key is delivered now.
    pub quote: QuoteState,
}

/// Begins to decide [`PaymentStore::claim_quote`](crate::PaymentStore::claim_quote). `quote` has the claim's nonce.
///
/// Refused, in this order:
/// - no quote has that nonce, or it is a top-up quote: [`Claimed::NoSuchQuote`];
/// - the quote is claimed; or it is paid, and the claim is not [`KeyDelivery::Now`] or names another transaction:
///   [`Claimed::AlreadyClaimed`].
#[must_use]
pub fn claim_step(claim: &Claim, quote: Option<&Quote>) -> ClaimStep {
    match quote.filter(|quote| quote.top_up.is_none()).map(|quote| &quote.state) {
        None => ClaimStep::Refused(Claimed::NoSuchQuote),
        Some(QuoteState::Open) => ClaimStep::CreateAccount,
        Some(QuoteState::Paid { account, tx }) if claim.delivery == KeyDelivery::Now && *tx == claim.payment.tx => {
            ClaimStep::ReplaceKey(account.clone())
        }
        Some(QuoteState::Paid { .. } | QuoteState::Claimed { .. }) => ClaimStep::Refused(Claimed::AlreadyClaimed),
    }
}

/// Decides a claim of an open quote ([`ClaimStep::CreateAccount`]). `tx_used` is true if the transaction has a record.
///
/// Refused, in this order: [`Claimed::TxUsed`], [`Claimed::PayerTaken`], [`Claimed::OutOfRange`]. If the email address
/// is taken, the account is created without one, even if the address would still need verification: a paid claim is not
/// refused for a taken address.
///
/// # Errors
/// After [`Claimed::TxUsed`], when the id or the key is in use.
pub fn claim_open(
    claim: Claim,
    tx_used: bool,
    facts: CreateFacts,
) -> Result<Decided<ClaimChanges, Claimed>, StoreError> {
    if tx_used {
        return Ok(Decided::Refused(Claimed::TxUsed));
    }
    let Claim { nonce, payment, account: new, sold, value, delivery, now } = claim;
    let plan_id = new.entries.iter().find_map(|entry| entry.payment.clone()).and_then(|paid| paid.plan_id);
    let new = if facts.owner.email_taken {
        NewAccount { email: None, email_status: EmailStatus::Unchecked, ..new }
    } else {
        new
    };
    let facts = CreateFacts { owner: OwnerFacts { email_taken: false, ..facts.owner }, ..facts };
    let account = match create_account(new, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(Created::PayerTaken) => return Ok(Decided::Refused(Claimed::PayerTaken)),
        // `EmailTaken` is impossible here.
        Decided::Refused(_) => return Ok(Decided::Refused(Claimed::OutOfRange)),
    };
    let (id, tx) = (account.account.id.clone(), payment.tx);
    let record = PaymentRecord::of(payment, id.clone(), PaymentUse::PaySignup, now);
    let record = PaymentRecord { plan_id, sold, value, ..record };
    let quote = match delivery {
        KeyDelivery::Now => QuoteState::Claimed { account: id, tx },
        KeyDelivery::Later => QuoteState::Paid { account: id, tx },
    };
    Ok(Decided::Accepted(ClaimChanges { account, record, nonce, quote }))
}

/// Decides a claim of a paid quote ([`ClaimStep::ReplaceKey`]): its key replaces the account's, and the rest of
/// [`Claim::account`] is ignored.
///
/// Refused with [`Claimed::AlreadyClaimed`] when the account is revoked.
///
/// # Errors
/// See [`replace_key`].
pub fn claim_paid<K: Copy>(claim: &Claim, facts: KeyFacts<K>) -> Result<Decided<KeyChanges<K>, Claimed>, StoreError> {
    let changes = replace_key(facts, claim.account.key, claim.now)?;
    Ok(changes.map_or(Decided::Refused(Claimed::AlreadyClaimed), Decided::Accepted))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{
        NOW, account, entry, first_key, new_account, payment, purchase, quote, revoked, sold, tx, value,
    };
    use super::*;

    fn claim(delivery: KeyDelivery) -> Claim {
        let account = NewAccount {
            email: Some("a@example.com".parse().unwrap()),
            entries: vec![purchase(5), entry(1)],
            ..new_account()
        };
        let (payment, sold, value) = (payment(tx(1)), Some(sold()), Some(value()));
        Claim { nonce: quote().nonce, payment, account, sold, value, delivery, now: NOW }
    }

    #[test]
    fn the_state_of_the_quote_decides_the_step() {
        use KeyDelivery::{Later, Now};
        let paid = |number| QuoteState::Paid { account: account().id, tx: tx(number) };
        let already = || ClaimStep::Refused(Claimed::AlreadyClaimed);
        // state of the quote, delivery, step
        let table = [
            (None, Now, ClaimStep::Refused(Claimed::NoSuchQuote)),
            (None, Later, ClaimStep::Refused(Claimed::NoSuchQuote)),
            (Some(QuoteState::Open), Now, ClaimStep::CreateAccount),
            (Some(QuoteState::Open), Later, ClaimStep::CreateAccount),
            (Some(paid(1)), Now, ClaimStep::ReplaceKey(account().id)),
            (Some(paid(1)), Later, already()),
            (Some(paid(2)), Now, already()),
            (Some(QuoteState::Claimed { account: account().id, tx: tx(1) }), Now, already()),
            (Some(QuoteState::Claimed { account: account().id, tx: tx(1) }), Later, already()),
        ];
        for (state, delivery, step) in table {
            let quote = state.map(|state| Quote { state, ..quote() });
            assert_eq!(claim_step(&claim(delivery), quote.as_ref()), step, "{quote:?} {delivery:?}");
        }
    }

    #[test]
    fn the_first_reason_refuses_an_open_quote() {
        let max = i64::MAX;
        // transaction used, id or key in use, payer taken, amount of an entry, refusal (`None`: an error)
        let table = [
            (true, true, true, max, Some(Claimed::TxUsed)),
            (false, true, true, max, None),
            (false, false, true, max, Some(Claimed::PayerTaken)),
            (false, false, false, max, Some(Claimed::OutOfRange)),
        ];
        for (tx_used, id_or_key_in_use, payer_taken, amount, refusal) in table {
            for email_taken in [false, true] {
                let facts = CreateFacts { id_or_key_in_use, owner: OwnerFacts { email_taken, payer_taken } };
                let mut claim = claim(KeyDelivery::Now);
                claim.account.entries.push(entry(amount));
                let decided = claim_open(claim, tx_used, facts).ok();
                assert_eq!(decided, refusal.clone().map(Decided::Refused), "{tx_used} {facts:?}");
            }
        }
    }

    #[test]
    fn an_open_quote_becomes_an_account() {
        for (delivery, email_taken) in [(KeyDelivery::Now, false), (KeyDelivery::Later, true)] {
            let owner = OwnerFacts { email_taken, payer_taken: false };
            let facts = CreateFacts { owner, ..CreateFacts::default() };
            let Ok(Decided::Accepted(changes)) = claim_open(claim(delivery), false, facts) else {
                panic!("nothing refuses it")
            };
            let ClaimChanges { account: CreateChanges { account, .. }, record, nonce, quote: state } = changes;
            assert_eq!((account.email.is_none(), account.totals.balance.atoms()), (email_taken, 6));
            assert_eq!((&record.account, record.used_as), (&account.id, PaymentUse::PaySignup));
            assert_eq!(record.plan_id.as_deref(), Some("starter"), "the plan of the first entry with a payment");
            assert_eq!((record.sold, record.value), (Some(sold()), Some(value())));
            let id = account.id;
            let expected = match delivery {
                KeyDelivery::Now => QuoteState::Claimed { account: id, tx: tx(1) },
                KeyDelivery::Later => QuoteState::Paid { account: id, tx: tx(1) },
            };
            assert_eq!((nonce, state), (quote().nonce, expected));
        }
    }

    #[test]
    fn a_paid_quote_gives_its_account_the_new_key() {
        let claim = claim(KeyDelivery::Now);
        let decide =
            |account, key_in_use| claim_paid(&claim, KeyFacts { account, key_in_use, keys: vec![first_key()] });
        assert_eq!(decide(Some((1, revoked())), true).unwrap(), Decided::Refused(Claimed::AlreadyClaimed));
        decide(Some((1, account())), true).unwrap_err();
        let Decided::Accepted(changes) = decide(Some((1, account())), false).unwrap() else {
            panic!("nothing refuses it")
        };
        let secrets: Vec<_> = changes.keys.iter().map(|write| write.secret).collect();
        assert_eq!((changes.account, secrets), (account(), vec![Some(claim.account.key)]));
    }
}
