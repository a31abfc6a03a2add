//! Challenges in the model.

use metering_core::access::{Account, KeyHash};
use metering_core::clock::Timestamp;
use metering_core::payments::Challenge;

use super::{InUse, Model};

const DAY: i64 = 24 * 60 * 60_000;

impl Model {
    pub(crate) fn challenge(&self, nonce: &str) -> Option<&Challenge> {
        self.challenges.iter().find(|challenge| challenge.nonce == nonce)
    }

    pub(crate) fn open_challenge(&mut self, new: &Challenge) -> Result<(), InUse> {
        if self.challenge(&new.nonce).is_some() {
            return Err(InUse);
        }
        self.challenges.push(new.clone());
        Ok(())
    }

    pub(crate) fn fail_challenge(&mut self, nonce: &str) {
        for challenge in self.challenges.iter_mut().filter(|challenge| challenge.nonce == nonce) {
            challenge.failures += 1;
        }
        self.challenges.retain(|challenge| challenge.failures < 5);
    }

    pub(crate) fn rotate_key(&mut self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>, InUse> {
        let Some(challenge) = self.challenge(nonce) else { return Ok(None) };
        let payer = Some(challenge.address);
        let opened = |number: &usize| {
            let made = &self.owners[*number].made;
            made.id == challenge.account && made.payer.map(|payer| payer.address) == payer
        };
        let Some(number) = (0..self.owners.len()).find(opened) else { return Ok(None) };
        if now > challenge.expires_at {
            return Ok(None);
        }
        let rotated = self.replace_key(number, key, now)?;
        if rotated.is_some() {
            self.challenges.retain(|challenge| challenge.nonce != nonce);
        }
        Ok(rotated)
    }

    /// Deletes challenges a day after their expiry and returns how many.
    pub(super) fn forget_challenges(&mut self, now: Timestamp) -> usize {
        let before = self.challenges.len();
        self.challenges.retain(|challenge| now.unix_millis() < challenge.expires_at.unix_millis() + DAY);
        before - self.challenges.len()
    }
}
