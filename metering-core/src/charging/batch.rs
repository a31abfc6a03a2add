//! Decides a batch: reads the rows that each posting depends on, once, and applies the posting.

use std::hash::Hash;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::charging::charge::{Charge, Decision, MeterState, Refund};
use crate::charging::hold::{Hold, HoldId, HoldUpdate};
use crate::charging::key_meter::KeyState;
use crate::charging::posting::{Outcome, Posting, Remembered};
use crate::charging::rate::Window;
use crate::charging::refusal::Refusal;
use crate::charging::request_id::RequestId;
use crate::charging::tally::{Changes, Tally};
use crate::charging::tokens::TokenScope;
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::Timestamp;
use crate::usage::UsageLine;

/// The rows that a backend has stored. [`decide`] reads only the rows that the batch depends on; for each account, key,
/// hold and count of a route once.
///
/// Everything must be as of the transaction that writes the batch.
pub trait Facts {
    /// The backend's own number for an account, which clients cannot choose.
    type Account: Copy + Ord + Hash;
    /// The backend's own number for a usage line.
    type Line: Clone + Ord + Hash;
    /// Why something cannot be read. It ends the whole batch.
    type Error;

    /// The account and the key of a charge's secret; `None` if no such secret works now.
    ///
    /// # Errors
    /// When it cannot be read.
    fn charged(&mut self, charge: &Charge) -> Result<Option<(Self::Account, KeyNumber)>, Self::Error>;

    /// The account with this id.
    ///
    /// # Errors
    /// When it cannot be read.
    fn account(&mut self, id: &AccountId) -> Result<Option<Self::Account>, Self::Error>;

    /// The id and the meter of an account.
    ///
    /// # Errors
    /// When it cannot be read.
    fn meter(&mut self, account: Self::Account) -> Result<Option<(AccountId, MeterState)>, Self::Error>;

    /// A key of an account whose meter was read; `None` if it was deleted.
    ///
    /// # Errors
    /// When it cannot be read.
    fn key(&mut self, account: Self::Account, key: KeyNumber) -> Result<Option<KeyState>, Self::Error>;

    /// The number of a usage line, which may be new.
    ///
    /// # Errors
    /// When it cannot be read or written.
    fn line(&mut self, line: &UsageLine) -> Result<Self::Line, Self::Error>;

    /// The stored result of a request, unless it has expired.
    ///
    /// # Errors
    /// When it cannot be read.
    fn remembered(&mut self, account: Self::Account, request: &RequestId) -> Result<Option<Remembered>, Self::Error>;

    /// A hold, with its account and usage line.
    ///
    /// # Errors
    /// When it cannot be read.
    fn hold(&mut self, id: &HoldId) -> Result<Option<StoredHoldOf<Self>>, Self::Error>;

    /// The requests to a route with volume tiers; the default if there were none.
    ///
    /// # Errors
    /// When it cannot be read.
    fn volume(&mut self, account: Self::Account, route: &CountedRoute) -> Result<Volume, Self::Error>;

    /// The limit on tokens per minute of an account whose meter was read; 0 for none. Asked for holds that use tokens.
    ///
    /// # Errors
    /// When it cannot be read.
    fn token_limit(&mut self, account: Self::Account) -> Result<u32, Self::Error>;

    /// The tokens of the newest minute in which any were counted, for an account or a key with a limit on them; the
    /// default if there were none.
    ///
    /// # Errors
    /// When it cannot be read.
    fn token_window(&mut self, account: Self::Account, scope: TokenScope) -> Result<Window, Self::Error>;
}

/// A hold, with a backend's numbers of its account and usage line.
#[derive(Debug, Clone)]
pub struct StoredHold<K, L> {
    /// The number of its account.
    pub account: K,
    /// The number of its usage line.
    pub line: L,
    /// The hold.
    pub hold: Hold,
}

/// A hold with the numbers of a backend.
pub type StoredHoldOf<F> = StoredHold<<F as Facts>::Account, <F as Facts>::Line>;

/// What a batch decided: an outcome for each posting, in order, and the rows to write.
pub type Decided<K, L> = (Vec<Outcome>, Changes<K, L>);

/// Decides the postings of a batch, in order, at `now`.
///
/// # Errors
/// When a fact cannot be read. The batch must then be abandoned as a whole.
pub fn decide<F: Facts>(
    facts: &mut F,
    postings: impl IntoIterator<Item = Posting>,
    now: Timestamp,
) -> Result<Decided<F::Account, F::Line>, F::Error> {
    let postings = postings.into_iter();
    let (count, _) = postings.size_hint();
    let mut batch = Batch { facts, tally: Tally::new(now, count) };
    let mut outcomes = Vec::with_capacity(count);
    for posting in postings {
        outcomes.push(batch.post(posting)?);
    }
    Ok((outcomes, batch.tally.finish()))
}

struct Batch<'f, F: Facts> {
    facts: &'f mut F,
    tally: Tally<F::Account, F::Line>,
}

impl<F: Facts> Batch<'_, F> {
    fn post(&mut self, posting: Posting) -> Result<Outcome, F::Error> {
        match posting {
            Posting::Charge(charge) => self.charge(charge),
            Posting::Refund(refund) => self.refund(refund),
            Posting::Settle(settlement) => {
                if let Some(account) = self.facts.account(&settlement.account)? {
                    let remembered = self.facts.remembered(account, &settlement.request)?;
                    self.tally.settle(account, &settlement, remembered);
                }
                Ok(Outcome::Settled)
            }
            Posting::Hold(update) => self.update_hold(&update),
        }
    }

    fn charge(&mut self, charge: Charge) -> Result<Outcome, F::Error> {
        let unknown = Outcome::Decided(Decision::Refused(Refusal::UnknownKey));
        let Some((account, key)) = self.facts.charged(&charge)? else { return Ok(unknown) };
        if !self.load_account(account)? {
            return Ok(unknown);
        }
        if !self.load_keys(account, key)? {
            return Ok(missing(key));
        }
        let line = self.facts.line(&charge.line)?;
        let request = charge.request_id.as_ref().map(|id| id.of_key_number(key));
        let remembered = self.remembered(account, request.as_ref())?;
        if let Some(hold) = self.tally.missing_hold(remembered.as_ref()) {
            self.load_hold(&hold)?;
        }
        self.load_volume(account, charge.counted_route())?;
        if charge.counted_tokens().is_some() {
            self.load_token_limits(account, key)?;
        }
        Ok(Outcome::Decided(self.tally.charge(account, key, line, charge, remembered)))
    }

    fn refund(&mut self, mut refund: Refund) -> Result<Outcome, F::Error> {
        let Some(account) = self.facts.account(&refund.account)? else { return Ok(Outcome::Refunded(None)) };
        if !self.load_account(account)? {
            return Ok(Outcome::Refunded(None));
        }
        if !self.load_keys(account, refund.key)? {
            // The key was deleted since.
            refund = refund.of_first_key();
            if !self.load_keys(account, refund.key)? {
                return Ok(missing(refund.key));
            }
        }
        let line = self.facts.line(&refund.line)?;
        self.load_volume(account, refund.counted_route())?;
        let remembered = self.remembered(account, refund.delivery.as_ref().map(|failed| &failed.request))?;
        Ok(Outcome::Refunded(self.tally.refund(account, line, &refund, remembered)))
    }

    fn update_hold(&mut self, update: &HoldUpdate) -> Result<Outcome, F::Error> {
        if self.tally.hold(&update.id).is_none() {
            self.load_hold(&update.id)?;
        }
        let of_account = self.tally.hold(&update.id).filter(|(_, hold)| hold.account == update.account);
        let scopes = |hold: &Hold| hold.tokens.as_ref().map(|tokens| tokens.scopes.clone()).unwrap_or_default();
        let known = of_account.map(|(account, hold)| (account, hold.key, update.counted_route(hold), scopes(hold)));
        let Some((account, key, counted, scopes)) = known else { return Ok(Outcome::Hold(None)) };
        if !self.load_account(account)? {
            return Ok(Outcome::Hold(None));
        }
        if !self.load_keys(account, key)? {
            return Ok(missing(key));
        }
        self.load_volume(account, counted)?;
        for scope in scopes {
            self.load_tokens(account, scope)?;
        }
        let remembered = self.remembered(account, update.delivery.as_ref().map(|failed| &failed.request))?;
        Ok(Outcome::Hold(Some(self.tally.update_hold(update, remembered))))
    }

    fn remembered(&mut self, account: F::Account, request: Option<&RequestId>) -> Result<Option<Remembered>, F::Error> {
        match request {
            Some(request) => self.facts.remembered(account, request),
            None => Ok(None),
        }
    }

    /// `false` if there is no such account.
    fn load_account(&mut self, account: F::Account) -> Result<bool, F::Error> {
        if !self.tally.is_loaded(account) {
            let Some((id, state)) = self.facts.meter(account)? else { return Ok(false) };
            self.tally.load(account, id, state);
        }
        Ok(true)
    }

    /// Loads a key and its parents. `false` if one of them is missing.
    fn load_keys(&mut self, account: F::Account, key: KeyNumber) -> Result<bool, F::Error> {
        while let Some(number) = self.tally.missing_key(account, key) {
            let Some(state) = self.facts.key(account, number)? else { return Ok(false) };
            self.tally.load_key(account, number, state);
        }
        Ok(true)
    }

    fn load_hold(&mut self, id: &HoldId) -> Result<(), F::Error> {
        if let Some(StoredHold { account, line, hold }) = self.facts.hold(id)? {
            self.tally.load_hold(account, line, hold);
        }
        Ok(())
    }

    fn load_volume(&mut self, account: F::Account, counted: Option<CountedRoute>) -> Result<(), F::Error> {
        if let Some(route) = counted.filter(|route| self.tally.lacks_volume(account, route)) {
            let volume = self.facts.volume(account, &route)?;
            self.tally.load_volume(account, route, volume);
        }
        Ok(())
    }

    /// Loads the limits on tokens of an account, a key and its parent keys. An account or key without a limit counts no
    /// tokens.
    fn load_token_limits(&mut self, account: F::Account, key: KeyNumber) -> Result<(), F::Error> {
        if self.tally.lacks_token_limit(account) {
            let limit = self.facts.token_limit(account)?;
            self.tally.load_token_limit(account, limit);
        }
        for scope in self.tally.token_scopes(account, key) {
            self.load_tokens(account, scope)?;
        }
        Ok(())
    }

    fn load_tokens(&mut self, account: F::Account, scope: TokenScope) -> Result<(), F::Error> {
        if self.tally.lacks_tokens(account, scope) {
            let window = self.facts.token_window(account, scope)?;
            self.tally.load_tokens(account, scope, window);
        }
        Ok(())
    }
}

fn missing(key: KeyNumber) -> Outcome {
    Outcome::Failed(format!("key {} of an account, or a parent of it, is missing", key.get()))
}
