//! Changes of keys in the model. What terms allow is decided by [`KeyTerms`](metering_core::access::KeyTerms), which
//! has its own tests; this model restates who may change them, and what a change does.

use metering_core::access::{Account, Budget, Key, KeyHash, KeyId, KeyNumber};
use metering_core::clock::Timestamp;
use metering_core::events::EventKind;
use metering_core::store::{Discrepancy, KeyChanged, KeyCreated, NewKey, TermsChange};

use super::Model;
use super::owner::Owner;
use super::owner::issued::{Issued, Secret, first_day};

impl Model {
    pub(crate) fn create_key(&mut self, number: usize, new: &NewKey) -> KeyCreated {
        let had = self.had_key(new.secret);
        let owner = &mut self.owners[number];
        if !owner.is_live() {
            return KeyCreated::NoSuchAccount;
        }
        let parent = new.parent.as_ref().map_or(Some(0), |id| owner.find(id));
        let now = new.created_at;
        let Some(parent) = parent.filter(|parent| new.parent.is_none() || owner.manages(*parent, now)) else {
            return KeyCreated::NoSuchParent;
        };
        if had {
            let number = owner.issued[parent].key.number;
            let made = |issued: &&Issued| issued.secrets.iter().any(|secret| secret.hash == new.secret);
            let same = owner.issued.iter().find(made).map(|issued| &issued.key);
            let same = same.filter(|key| key.parent == Some(number) && key.revoked_at.is_none());
            return same.map_or(KeyCreated::SecretUsed, |key| KeyCreated::Key(key.clone()));
        }
        if owner.chain(owner.issued[parent].key.number).len() >= 8 {
            return KeyCreated::TooDeep;
        }
        let expired = |key: &Key| key.terms.expires_at.is_some_and(|at| at <= now);
        let counted = owner.issued.iter().filter(|issued| issued.key.revoked_at.is_none() && !expired(&issued.key));
        if counted.count() >= usize::try_from(new.max_keys).unwrap() {
            return KeyCreated::TooMany;
        }
        let outer = owner.issued[parent].key.clone();
        let terms = new.terms.clone().completed_from(&outer.terms);
        if let Err(wider) = terms.check_within(&outer.terms) {
            return KeyCreated::Wider(wider);
        }
        let key = Key {
            number: KeyNumber::new(u32::try_from(owner.issued.len()).unwrap()),
            parent: Some(outer.number),
            terms,
            ..Key::first(new.account.clone(), &new.secret, now)
        };
        let mut issued = Issued::new(key.clone(), new.secret);
        if let Some(budget) = key.terms.budget {
            issued.begin(first_day(budget, now), 0);
        }
        owner.issued.push(issued);
        owner.tell(EventKind::KeyCreated, now);
        KeyCreated::Key(key)
    }

    /// The key that an actor may change.
    fn changeable(&self, number: usize, id: &KeyId, actor: Option<&KeyId>, now: Timestamp) -> Option<usize> {
        let owner = self.owners.get(number).filter(|owner| owner.is_live())?;
        let index = owner.find(id).filter(|index| owner.issued[*index].key.revoked_at.is_none())?;
        let Some(actor) = actor else { return Some(index) };
        let acting = owner.find(actor).filter(|acting| owner.chain(owner.issued[index].key.number).contains(acting))?;
        owner.manages(acting, now).then_some(index)
    }

    pub(crate) fn change_terms(
        &mut self,
        number: usize,
        id: &KeyId,
        actor: Option<&KeyId>,
        change: &TermsChange,
        now: Timestamp,
    ) -> KeyChanged {
        let Some(index) = self.changeable(number, id, actor, now) else { return KeyChanged::NoSuchKey };
        let owner = &mut self.owners[number];
        let key = owner.issued[index].key.clone();
        if index == 0 && change.disabled == Some(true) {
            return KeyChanged::FirstKey;
        }
        if key.leaked_at.is_some() && change.disabled == Some(false) {
            return KeyChanged::Leaked;
        }
        let before = key.terms.clone();
        let limit = change.limit.unwrap_or(before.budget.map(|budget| budget.limit));
        let reset = change.limit_reset.unwrap_or(before.budget.and_then(|budget| budget.reset));
        if limit.is_none() && change.limit_reset.is_some_and(|reset| reset.is_some()) {
            return KeyChanged::NoLimit;
        }
        let mut terms = before.clone();
        terms.budget = limit.map(|limit| Budget { limit, reset });
        terms.alert_below = change.alert_below.unwrap_or(before.alert_below).filter(|_| limit.is_some());
        terms.disabled = change.disabled.unwrap_or(terms.disabled);
        terms.limits.requests_per_day = change.requests_per_day.unwrap_or(terms.limits.requests_per_day);
        if let Some(parent) = key.parent {
            let outer = &owner.issued[usize::try_from(parent.get()).unwrap()].key.terms;
            let mut within = terms.check_change(&before, outer);
            if actor == Some(id) {
                within = within.and_then(|()| terms.check_narrows(&before));
            }
            if let Err(wider) = within {
                return KeyChanged::Wider(wider);
            }
        }
        owner.issued[index].key.terms = terms;
        owner.restart_budget(index, &before, now);
        KeyChanged::Key(owner.issued[index].key.clone())
    }

    pub(crate) fn rotate(
        &mut self,
        number: usize,
        id: &KeyId,
        secret: KeyHash,
        old_until: Option<Timestamp>,
        now: Timestamp,
    ) -> KeyChanged {
        let Some(index) = self.changeable(number, id, None, now) else { return KeyChanged::NoSuchKey };
        if self.had_key(secret) {
            return KeyChanged::SecretUsed;
        }
        let owner = &mut self.owners[number];
        if owner.issued[index].key.leaked_at.take().is_some() {
            owner.revoke_below(index, now);
        }
        let issued = &mut owner.issued[index];
        issued.key.hint = secret.hint();
        match old_until.filter(|until| *until > now) {
            None => issued.replace_secrets(Some(secret)),
            Some(until) => {
                for old in &mut issued.secrets {
                    old.expires_at = Some(old.expires_at.map_or(until, |at| at.min(until)));
                }
                issued.secrets.push(Secret { hash: secret, revoked: false, expires_at: None });
            }
        }
        KeyChanged::Key(issued.key.clone())
    }

    pub(crate) fn revoke_key(&mut self, number: usize, id: &KeyId, now: Timestamp) -> KeyChanged {
        let Some(index) = self.changeable(number, id, None, now) else { return KeyChanged::NoSuchKey };
        if index == 0 {
            return KeyChanged::FirstKey;
        }
        self.owners[number].revoke_below(index, now);
        self.owners[number].tell(EventKind::KeyRevoked, now);
        let issued = &mut self.owners[number].issued[index];
        issued.key.revoked_at = Some(now);
        issued.replace_secrets(None);
        KeyChanged::Key(issued.key.clone())
    }

    pub(crate) fn report_leaked(&mut self, secret: KeyHash, now: Timestamp) -> Option<Key> {
        for owner in &mut self.owners {
            let Some((issued, expires_at)) = owner.holder(secret) else { continue };
            if expires_at.is_some_and(|at| at <= now) {
                return None;
            }
            let index = usize::try_from(issued.key.number.get()).unwrap();
            let issued = &mut owner.issued[index];
            if expires_at.is_some() {
                issued.end_grace();
            } else {
                let is_new = issued.key.leaked_at.is_none();
                issued.key.leaked_at.get_or_insert(now);
                issued.replace_secrets(None);
                let key = issued.key.clone();
                if is_new {
                    owner.tell(EventKind::KeyLeaked, now);
                }
                return Some(key);
            }
            return Some(issued.key.clone());
        }
        None
    }

    pub(crate) fn replace_live_key(&mut self, old: KeyHash, secret: KeyHash, now: Timestamp) -> Option<Account> {
        let number = self.owners.iter().position(|owner| owner.is_live_key(old, now))?;
        if self.had_key(secret) {
            return None;
        }
        let owner = &mut self.owners[number];
        let holder = owner.holder(old).map(|(issued, _)| issued.key.number.get()).expect("its key is live");
        owner.issued[usize::try_from(holder).unwrap()].replace_secrets(Some(secret));
        owner.keys.push(secret);
        Some(owner.account())
    }

    /// Every budget that a store must report as begun again.
    pub(crate) fn restarted_budgets(&self) -> Vec<Discrepancy> {
        self.owners.iter().flat_map(Owner::short_budgets).collect()
    }
}
