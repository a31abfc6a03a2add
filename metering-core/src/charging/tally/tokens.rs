//! Tokens that a batch counts towards limits on tokens per minute.

use std::hash::Hash;

use super::Tally;
use super::touched::TouchedTokens;
use crate::access::key_id::KeyNumber;
use crate::charging::hold::{Hold, HoldUpdate};
use crate::charging::rate::{LimitWindow, RateStatus, TokenStatus, Window};
use crate::charging::refusal::Refusal;
use crate::charging::tokens::{HeldTokens, TokenScope};

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// Whether the account's limit must be loaded before a hold that uses tokens.
    #[must_use]
    pub(crate) fn lacks_token_limit(&self, account: K) -> bool {
        !self.token_limits.contains_key(&account)
    }

    /// Adds the limit of an account, once per batch; 0 for none.
    pub(crate) fn load_token_limit(&mut self, account: K, limit: u32) {
        self.token_limits.insert(account, limit);
    }

    /// The account, the key and its parent keys, as far as they have a limit. Their windows must be loaded before a hold
    /// that uses tokens.
    ///
    /// # Panics
    /// When a key was not loaded.
    #[must_use]
    pub(crate) fn token_scopes(&self, account: K, key: KeyNumber) -> Vec<TokenScope> {
        self.limited(account, key).map(|(scope, _)| scope).collect()
    }

    /// Whether a window must be loaded before a hold that counts in it is opened or settled.
    #[must_use]
    pub(crate) fn lacks_tokens(&self, account: K, scope: TokenScope) -> bool {
        !self.tokens.contains_key(&(account, scope))
    }

    /// Adds the stored window of an account or a key, once per batch.
    pub(crate) fn load_tokens(&mut self, account: K, scope: TokenScope, window: Window) {
        self.tokens.entry((account, scope)).or_insert(TouchedTokens { window, changed: false });
    }

    /// The usage of the key's limit, or else of the account's, by a request with this expected number of tokens.
    pub(super) fn token_status(&self, account: K, key: KeyNumber, requested: u32) -> TokenStatus {
        let own = [TokenScope::Account, TokenScope::Key(key)];
        match self.limited(account, key).filter(|(scope, _)| own.contains(scope)).last() {
            None => TokenStatus::default(),
            Some((scope, limit)) => {
                TokenStatus { limit, minute: self.token_window(account, scope).at_minute(self.now), requested }
            }
        }
    }

    /// The tokens that a hold counts, if no limit refuses it. Nothing has been counted yet.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(super) fn admit_tokens(
        &self,
        account: K,
        key: KeyNumber,
        requested: u32,
        rate: RateStatus,
    ) -> Result<Option<HeldTokens>, Refusal> {
        let limited = self.limited(account, key);
        let windows: Vec<_> = limited
            .map(|(scope, limit)| (scope, limit, self.token_window(account, scope).at_minute(self.now)))
            .collect();
        // One minute for all, so the measured tokens can replace this in each of them. They differ if a clock lags.
        let Some(minute) = windows.iter().map(|(_, _, window)| window.index).max() else { return Ok(None) };
        for (_, limit, window) in &windows {
            let count = if window.index == minute { window.count } else { 0 };
            let status = TokenStatus { limit: *limit, minute: Window { index: minute, count }, requested };
            if status.remaining() < Some(requested) {
                let rate = RateStatus { tokens: status, ..rate };
                return Err(Refusal::RateLimited { window: LimitWindow::Tokens, rate });
            }
        }
        let scopes = windows.into_iter().map(|(scope, ..)| scope).collect();
        Ok(Some(HeldTokens { count: requested, minute, scopes }))
    }

    /// Counts the tokens that [`Tally::admit_tokens`] admitted.
    pub(super) fn count_tokens(&mut self, account: K, held: &HeldTokens) {
        for scope in &held.scopes {
            let window = self.token_window(account, *scope);
            let before = if window.index == held.minute { window.count } else { 0 };
            let window = Window { index: held.minute, count: before.saturating_add(held.count) };
            self.tokens.insert((account, *scope), TouchedTokens { window, changed: true });
        }
    }

    /// Replaces the tokens that a hold counted by those that its request used, if known.
    pub(super) fn settle_tokens(&mut self, account: K, hold: &Hold, update: &HoldUpdate) {
        let Some((held, used)) = hold.tokens.as_ref().zip(update.used_tokens()) else { return };
        for scope in &held.scopes {
            let before = self.token_window(account, *scope);
            let window = held.settled_in(before, used, self.now);
            if window != before {
                self.tokens.insert((account, *scope), TouchedTokens { window, changed: true });
            }
        }
    }

    /// The account, then the keys from the first to this one, as far as they have a limit, and their limits.
    fn limited(&self, account: K, key: KeyNumber) -> impl Iterator<Item = (TokenScope, u32)> {
        let of_account = self.token_limits.get(&account).map(|limit| (TokenScope::Account, *limit));
        let mut keys: Vec<_> = self
            .chain(account, key)
            .map(|(number, touched)| (TokenScope::Key(number), touched.state.terms.tokens_per_minute))
            .collect();
        keys.reverse();
        of_account.into_iter().chain(keys).filter(|(_, limit)| *limit != 0)
    }

    fn token_window(&self, account: K, scope: TokenScope) -> Window {
        let touched = self.tokens.get(&(account, scope));
        touched.expect("windows are loaded before tokens are counted in them").window
    }
}
