//! Applies operations on keys to the store and the model.

use metering_core::access::{Budget, KeyHash, KeyId, KeyTerms, Scopes};
use metering_core::clock::Timestamp;
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, NewKey, TermsChange};

use super::super::operation::KeyOperation;
use super::super::scene::{MINUTE, atoms};
use super::Pair;

/// How many keys an account may have.
const MAX_KEYS: u32 = 7;

impl Pair {
    pub(super) async fn change_keys(&mut self, operation: KeyOperation) {
        match operation {
            KeyOperation::Create { account, parent, manages, narrow, budget, alert, limits, minutes, secret } => {
                let Some(number) = self.number(account) else { return };
                let scopes = if manages { Scopes::ALL } else { Scopes::default() };
                let routes = if narrow { "/a".parse().unwrap() } else { Default::default() };
                let budget = budget.map(|(limit, reset)| Budget { limit: atoms(limit), reset });
                let name = format!("key-{}", self.made_keys).parse().unwrap();
                let expires_at = self.in_minutes(minutes);
                let alert_below = alert.filter(|_| budget.is_some()).map(atoms);
                let terms = KeyTerms { routes, budget, alert_below, limits, expires_at, ..KeyTerms::new(name, scopes) };
                let new = NewKey {
                    account: self.model.id(number),
                    parent: parent.map(|parent| self.key_id(number, parent)),
                    secret: self.key(secret),
                    terms,
                    max_keys: MAX_KEYS,
                    created_at: self.now,
                };
                let expected = self.model.create_key(number, &new);
                if matches!(expected, KeyCreated::Key(_)) && !self.keys.contains(&new.secret) {
                    self.keys.push(new.secret);
                }
                assert_eq!(self.store.create_key(new).await.unwrap(), expected, "whether the key was created");
            }
            KeyOperation::Change { account, key, actor, disabled, limit, reset, alert, requests_per_day } => {
                let Some(number) = self.number(account) else { return };
                let limit = limit.map(|limit| limit.map(atoms));
                let alert_below = alert.map(|alert| alert.map(atoms));
                let limits = TermsChange { limit, limit_reset: reset, alert_below, ..TermsChange::default() };
                let change = TermsChange { disabled, requests_per_day, ..limits };
                let (id, actor) = (self.key_id(number, key), actor.map(|actor| self.key_id(number, actor)));
                let expected = self.model.change_terms(number, &id, actor.as_ref(), &change, self.now);
                let change = KeyChange::Terms(Box::new(change));
                let account = self.model.id(number);
                let result = self.store.change_key(&account, &id, actor.as_ref(), change, self.now).await.unwrap();
                assert_eq!(result, expected, "whether the terms were changed");
            }
            KeyOperation::Rotate { account, key, minutes, secret } => {
                let Some(number) = self.number(account) else { return };
                let (id, secret, old_until) = (self.key_id(number, key), self.key(secret), self.in_minutes(minutes));
                self.rotate(number, id, secret, old_until).await;
            }
            KeyOperation::Revoke { account, key } => {
                let Some(number) = self.number(account) else { return };
                let id = self.key_id(number, key);
                let expected = self.model.revoke_key(number, &id, self.now);
                let (account, revoke) = (self.model.id(number), KeyChange::Revoke);
                let result = self.store.change_key(&account, &id, None, revoke, self.now).await.unwrap();
                assert_eq!(result, expected, "whether the key was revoked");
            }
            KeyOperation::Leak { secret } => {
                let secret = self.key(Some(secret));
                let expected = self.model.report_leaked(secret, self.now);
                assert_eq!(self.store.report_leaked(&secret, self.now).await.unwrap(), expected, "the leaked key");
            }
            KeyOperation::ReplaceLive { old, secret } => {
                let (old, secret) = (self.key(Some(old)), self.key(secret));
                let expected = self.model.replace_live_key(old, secret, self.now);
                if expected.is_some() {
                    self.keys.push(secret);
                }
                let result = self.store.replace_live_key(&old, secret, self.now).await.unwrap();
                assert_eq!(result, expected, "whether the secret was replaced");
            }
        }
    }

    async fn rotate(&mut self, number: usize, id: KeyId, secret: KeyHash, old_until: Option<Timestamp>) {
        let expected = self.model.rotate(number, &id, secret, old_until, self.now);
        if matches!(expected, KeyChanged::Key(_)) {
            self.keys.push(secret);
        }
        let (account, change) = (self.model.id(number), KeyChange::Rotate { secret, old_until });
        let result = self.store.change_key(&account, &id, None, change, self.now).await.unwrap();
        assert_eq!(result, expected, "whether the key was rotated");
    }

    fn in_minutes(&self, minutes: Option<u8>) -> Option<Timestamp> {
        minutes.map(|minutes| self.now.saturating_add(MINUTE * u32::from(minutes)))
    }

    /// The id of a key of an account, by its number modulo how many it has.
    fn key_id(&self, account: usize, any: usize) -> KeyId {
        let issued = &self.model.owners[account].issued;
        issued[any % issued.len()].key.id.clone()
    }
}
