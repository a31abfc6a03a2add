//! Commits a batch of charges and refunds. Writing cannot fail. Events are not kept.

use std::convert::Infallible;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::charging::batch::{Facts, StoredHold, decide};
use crate::charging::charge::{Charge, MeterState};
use crate::charging::hold::HoldId;
use crate::charging::key_meter::KeyState;
use crate::charging::posting::{Outcome, Posting, Remembered};
use crate::charging::rate::Window;
use crate::charging::request_id::RequestId;
use crate::charging::tally::{Changes, UsageChange};
use crate::charging::tokens::TokenScope;
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::Timestamp;
use crate::usage::{ACTIVITY_KEPT, Activity, UsageLine};

use super::state::State;

impl State {
    pub(super) fn commit(&mut self, postings: Vec<Posting>, now: Timestamp) -> Vec<Outcome> {
        let Ok((outcomes, changes)) = decide(&mut Stored { state: self, now }, postings, now);
        self.write(changes, now);
        outcomes
    }

    fn write(&mut self, changes: Changes<usize, UsageLine>, now: Timestamp) {
        for (account, state) in changes.accounts {
            let record = &mut self.accounts[account];
            (record.account.totals, record.account.alert) = (state.totals, state.alert);
            (record.minute, record.day) = (state.minute, state.day);
        }
        for (account, number, meter) in changes.keys {
            let stored = self.accounts[account].keys.iter_mut().find(|stored| stored.key.number == number);
            stored.expect("a key in use is not removed").meter = Some(meter);
        }
        for change in changes.usage {
            self.write_usage(change, now);
        }
        for (account, route, volume) in changes.volumes {
            self.accounts[account].volumes.insert(route, volume);
        }
        for (account, scope, window) in changes.tokens {
            self.accounts[account].tokens.insert(scope, window);
        }
        for change in changes.holds {
            self.accounts[change.account].holds.insert(change.hold.id, change.hold);
        }
        for (account, request, remembered) in changes.results {
            self.accounts[account].results.insert(request, remembered);
        }
    }

    fn write_usage(&mut self, change: UsageChange<usize, UsageLine>, now: Timestamp) {
        let number = self.next_number();
        let record = &mut self.accounts[change.account];
        let total = record.usage.entry((change.day, change.line.clone(), change.key)).or_default();
        total.calls += change.added_calls();
        total.atoms += i128::from(change.added_credits().atoms());
        let amount =
            change.added_credits().checked_neg().expect("amounts are not negative, so negating cannot overflow");
        let kind = change.kind.into();
        let entry = Activity {
            id: format!("use_{number}"),
            kind,
            amount,
            description: None,
            line: Some(change.line),
            request_path: change.request_path,
            calls: change.calls,
            payment: None,
            key: Some(change.key),
            created_at: now,
        };
        record.recent.insert(number, entry);
        // Trim only at twice the limit, so the cost per entry is negligible.
        let bound = ACTIVITY_KEPT as usize;
        if record.recent.len() > 2 * bound {
            while record.recent.len() > bound {
                record.recent.pop_first();
            }
        }
    }
}

/// The state that a batch is decided with. Reading it cannot fail.
struct Stored<'s> {
    state: &'s State,
    now: Timestamp,
}

impl Facts for Stored<'_> {
    type Account = usize;
    type Line = UsageLine;
    type Error = Infallible;

    fn charged(&mut self, charge: &Charge) -> Result<Option<(usize, KeyNumber)>, Infallible> {
        Ok(self.state.working_secret(&charge.key, self.now))
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<usize>, Infallible> {
        Ok(self.state.ids.get(id).copied())
    }

    fn meter(&mut self, account: usize) -> Result<Option<(AccountId, MeterState)>, Infallible> {
        let record = &self.state.accounts[account];
        Ok(Some((record.account.id.clone(), record.meter_state())))
    }

    fn key(&mut self, account: usize, key: KeyNumber) -> Result<Option<KeyState>, Infallible> {
        let stored = self.state.accounts[account].stored(key);
        Ok(stored.map(|stored| KeyState::of(&stored.key, stored.meter.unwrap_or_default())))
    }

    fn line(&mut self, line: &UsageLine) -> Result<UsageLine, Infallible> {
        Ok(line.clone())
    }

    fn remembered(&mut self, account: usize, request: &RequestId) -> Result<Option<Remembered>, Infallible> {
        let stored = self.state.accounts[account].results.get(request).copied();
        Ok(stored.filter(|remembered| self.now < remembered.expires_at))
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<StoredHold<usize, UsageLine>>, Infallible> {
        let stored = self.state.hold(id);
        Ok(stored.map(|(account, hold)| StoredHold { account, line: hold.line.clone(), hold: hold.clone() }))
    }

    fn volume(&mut self, account: usize, route: &CountedRoute) -> Result<Volume, Infallible> {
        Ok(self.state.accounts[account].volumes.get(route).cloned().unwrap_or_default())
    }

    fn token_limit(&mut self, account: usize) -> Result<u32, Infallible> {
        Ok(self.state.accounts[account].account.tokens_per_minute)
    }

    fn token_window(&mut self, account: usize, scope: TokenScope) -> Result<Window, Infallible> {
        Ok(self.state.accounts[account].tokens.get(&scope).copied().unwrap_or_default())
    }
}
