//! The stored data that [`decide`](metering_core::charging::decide) needs for a batch. All was read beforehand.

use metering_core::access::KeyNumber;
use metering_core::charging::{
    CountedRoute, HoldId, KeyState, MeterState, Remembered, StoredHold, TokenScope, Volume, Window,
};
use metering_core::{AccountId, Charge, RequestId, Timestamp, UsageLine};

use super::batch::Batch;
use super::facts::Facts;
use crate::error::{Failure, Result, corrupt};

/// A batch and its facts.
pub(super) struct Stored<'s> {
    pub(super) batch: &'s Batch<'s>,
    pub(super) facts: &'s Facts<'s>,
    pub(super) now: Timestamp,
}

impl metering_core::charging::Facts for Stored<'_> {
    type Account = i64;
    type Line = i64;
    type Error = Failure;

    /// Only as of the account's locked meter.
    fn charged(&mut self, charge: &Charge) -> Result<Option<(i64, KeyNumber)>> {
        let Some(secret) = self.facts.access.secrets.get(&charge.key) else { return Ok(None) };
        let meter = self.facts.meters.get(&secret.account);
        let works = meter.is_some_and(|meter| secret.is_of(meter.access)) && secret.works(self.now);
        Ok(works.then_some((secret.account, secret.key)))
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<i64>> {
        Ok(self.batch.ids.get(id).copied())
    }

    fn meter(&mut self, account: i64) -> Result<Option<(AccountId, MeterState)>> {
        let id = self.batch.accounts.get(&account).cloned();
        Ok(id.zip(self.facts.meters.get(&account).map(|meter| meter.state)))
    }

    /// Only as of the account's locked meter.
    fn key(&mut self, account: i64, key: KeyNumber) -> Result<Option<KeyState>> {
        let Some(meter) = self.facts.meters.get(&account) else { return Ok(None) };
        let known = self.facts.access.key(account, key).filter(|known| known.is_of(meter.access));
        Ok(known.map(|known| known.state(meter.keys.get(&key).copied().unwrap_or_default())))
    }

    fn line(&mut self, line: &UsageLine) -> Result<i64> {
        self.batch.lines.get(line).copied().ok_or_else(|| corrupt("a usage line of a batch has no number"))
    }

    fn remembered(&mut self, account: i64, request: &RequestId) -> Result<Option<Remembered>> {
        Ok(self.facts.remembered.get(&(account, request.as_str().to_owned())).copied())
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<StoredHold<i64, i64>>> {
        Ok(self.facts.holds.get(id).cloned())
    }

    fn volume(&mut self, account: i64, route: &CountedRoute) -> Result<Volume> {
        Ok(self.facts.volumes.get(&(account, route.clone())).cloned().unwrap_or_default())
    }

    fn token_limit(&mut self, account: i64) -> Result<u32> {
        Ok(self.facts.token_limits.get(&account).copied().unwrap_or_default())
    }

    fn token_window(&mut self, account: i64, scope: TokenScope) -> Result<Window> {
        Ok(self.facts.token_windows.get(&(account, scope)).copied().unwrap_or_default())
    }
}
