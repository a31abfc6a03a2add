//! Replaces the keys of an account whose owner proved to be its owner otherwise: by wallet, by email, or to the
//! operator.

use std::collections::BTreeSet;

use super::active;
use super::issued_key::{KeyWrite, MeterWrite, OldSecrets, below, revoked};
use crate::access::account::Account;
use crate::access::issued_key::Key;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyNumber;
use crate::access::key_terms::KeyTerms;
use crate::access::scope::Scope;
use crate::clock::Timestamp;
use crate::store::StoreError;

/// The rows read before the keys of an account are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// Its keys that are not revoked. Empty when there is no such account.
    pub keys: Vec<Key>,
    /// Any account has, or ever had, the new key.
    pub key_in_use: bool,
}

/// The keys to write. The account's paid quote counts as claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChanges<K> {
    /// The account's row.
    pub row: K,
    /// The account, which does not change.
    pub account: Account,
    /// The first key with its new secret; the other keys that could manage keys and those that they made, revoked; and
    /// the rest, without secrets in a grace period.
    pub keys: Vec<KeyWrite<K>>,
    /// When.
    pub replaced_at: Timestamp,
}

/// Decides [`Store::replace_key`](crate::Store::replace_key). `None` when there is no such account, or it is revoked.
///
/// The first key gets the new secret, and its original scopes, routes, networks and expiry, and is switched on; its
/// other terms stay the same. Every other key that can manage keys is revoked, and with it its child keys. Grace
/// periods of the rest end.
///
/// # Errors
/// When the new key is in use. An account that does not exist or is revoked comes first.
pub fn replace_key<K: Copy>(
    facts: KeyFacts<K>,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<KeyChanges<K>>, StoreError> {
    let Some((row, account)) = active(facts.account) else { return Ok(None) };
    if facts.key_in_use {
        return Err(StoreError::Corrupt("a new key is already in use".to_owned()));
    }
    let others = facts.keys.iter().filter(|key| !key.number.is_first());
    let managers: Vec<KeyNumber> =
        others.filter(|key| key.terms.scopes.has(Scope::Manage)).map(|key| key.number).collect();
    let made: BTreeSet<KeyNumber> =
        managers.iter().flat_map(|manager| below(facts.keys.clone(), *manager)).map(|key| key.number).collect();
    let write = |stored: Key| {
        let (old_secrets, meter) = (OldSecrets::Revoke, MeterWrite::Keep);
        if stored.number.is_first() {
            let KeyTerms { scopes, routes, networks, expires_at, disabled, .. } = KeyTerms::first();
            let mut first = stored.with_secret(&key);
            first.terms = KeyTerms { scopes, routes, networks, expires_at, disabled, ..first.terms };
            return KeyWrite { row, key: first, old_secrets, secret: Some(key), meter, written_at: now, event: None };
        }
        if managers.contains(&stored.number) || made.contains(&stored.number) {
            return revoked(row, stored, now);
        }
        // Anyone who could manage keys may have rotated this one. Its owner either has the newest secret or rotates it.
        let old_secrets = OldSecrets::EndGrace;
        KeyWrite { row, key: stored, old_secrets, secret: None, meter, written_at: now, event: None }
    };
    let keys: Vec<_> = facts.keys.iter().cloned().map(write).collect();
    if !keys.iter().any(|write| write.secret.is_some()) {
        return Err(StoreError::Corrupt(format!("account {} has no first key", account.id)));
    }
    Ok(Some(KeyChanges { row, account, keys, replaced_at: now }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{KEY, NOW, account, first_key, revoked as revoked_account};
    use super::*;
    use crate::access::account::RateLimits;
    use crate::access::budget::Budget;
    use crate::access::key_id::KeyNumber;
    use crate::access::scope::Scopes;
    use crate::money::credits::Credits;

    #[test]
    fn only_an_active_account_gets_a_new_key() {
        // account, whether the key is in use, outcome (`None`: an error)
        let table = [
            (None, true, Some(false)),
            (Some((1, revoked_account())), true, Some(false)),
            (Some((1, revoked_account())), false, Some(false)),
            (Some((1, account())), true, None),
            (Some((1, account())), false, Some(true)),
        ];
        for (account, key_in_use, replaced) in table {
            let facts = KeyFacts { account, key_in_use, keys: vec![first_key()] };
            let changes = replace_key(facts.clone(), KEY, NOW).ok();
            assert_eq!(changes.as_ref().map(Option::is_some), replaced, "{facts:?}");
        }
    }

    /// A child key, with these scopes, of the key numbered `parent`.
    fn key(number: u32, parent: u32, scopes: Scopes) -> Key {
        let terms = KeyTerms { max_in_flight: 3, ..KeyTerms::new("below".parse().unwrap(), scopes) };
        Key { number: KeyNumber::new(number), parent: Some(KeyNumber::new(parent)), terms, ..first_key() }
    }

    /// The rows written for these keys.
    fn replaced(keys: Vec<Key>) -> Vec<KeyWrite<i32>> {
        let facts = KeyFacts { account: Some((1, account())), key_in_use: false, keys };
        replace_key(facts, KEY, NOW).unwrap().expect("the account is live").keys
    }

    #[test]
    fn the_first_key_begins_again_with_its_name_limits_and_budget() {
        let limits = RateLimits::per_minute(4).and_per_day(5);
        let budget = Some(Budget { limit: Credits::from_atoms(6), reset: None });
        let name = "mine".parse().unwrap();
        let kept = KeyTerms { name, limits, tokens_per_minute: 7, max_in_flight: 1, budget, ..KeyTerms::first() };
        let narrowed = KeyTerms {
            routes: "/a".parse().unwrap(),
            networks: "10.0.0.0/8".parse().unwrap(),
            expires_at: Some(NOW),
            disabled: true,
            scopes: Scopes::default(),
            ..kept.clone()
        };
        let first = Key { terms: narrowed, leaked_at: Some(NOW), ..first_key() };
        let expected = KeyWrite {
            row: 1,
            key: Key { terms: kept, leaked_at: None, ..first.clone() },
            old_secrets: OldSecrets::Revoke,
            secret: Some(KEY),
            meter: MeterWrite::Keep,
            written_at: NOW,
            event: None,
        };
        assert_eq!(replaced(vec![first]), [expected]);
    }

    #[test]
    fn managers_and_all_below_them_are_revoked_and_other_keys_lose_their_grace() {
        let manage = Scopes::of([Scope::Manage]).unwrap();
        let caller = Scopes::default();
        // number, parent, scopes, whether it is revoked
        let table = [
            (1, 0, manage, true),
            (2, 0, caller, false),
            (3, 1, caller, true),
            (4, 3, caller, true),
            (5, 2, caller, false),
            (6, 5, manage, true),
            (7, 6, caller, true),
        ];
        let keys =
            std::iter::once(first_key()).chain(table.map(|(number, parent, scopes, _)| key(number, parent, scopes)));
        let writes = replaced(keys.collect());
        assert_eq!(writes.len(), 1 + table.len());
        for (number, parent, scopes, is_revoked) in table {
            let before = key(number, parent, scopes);
            let write = writes.iter().find(|write| write.key.number == before.number).expect("every key is written");
            let old_secrets = if is_revoked { OldSecrets::Revoke } else { OldSecrets::EndGrace };
            assert_eq!((write.old_secrets, write.secret, write.meter), (old_secrets, None, MeterWrite::Keep));
            assert_eq!(write.key, Key { revoked_at: is_revoked.then_some(NOW), ..before });
        }
    }

    #[test]
    fn an_account_without_a_first_key_is_corrupt() {
        let keys = vec![key(1, 0, Scopes::ALL)];
        let facts = KeyFacts { account: Some((1, account())), key_in_use: false, keys };
        assert!(matches!(replace_key(facts, KEY, NOW), Err(StoreError::Corrupt(_))));
    }
}
