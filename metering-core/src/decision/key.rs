//! Replaces the keys of an account whose owner proved to be its owner otherwise: by wallet, by email, or to the operator.

use super::active;
use super::issued_key::{KeyWrite, MeterWrite, OldSecrets};
use crate::access::account::Account;
use crate::access::issued_key::Key;
use crate::access::key::KeyHash;
use crate::access::key_terms::KeyTerms;
use crate::access::scope::Scope;
use crate::clock::Timestamp;
use crate::store::StoreError;

/// What is read before the keys of an account are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// Its keys that are not revoked and may manage keys, and its first key. Empty when there is no such account.
    pub managers: Vec<Key>,
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
    /// The first key with its new secret, and the other keys that could manage keys, revoked.
    pub keys: Vec<KeyWrite<K>>,
    /// When.
    pub replaced_at: Timestamp,
}

/// Decides [`Store::replace_key`](crate::Store::replace_key). `None` when there is no such account, or it is revoked.
///
/// The first key gets the new secret, and is as it was in the beginning, but for its name, rate limits and budget. Every
/// other key that can manage keys is revoked, and with it the keys that it made.
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
    let write = |manager: Key| {
        let (secret, manager) = if manager.number.is_first() {
            let KeyTerms { name, limits, budget, .. } = manager.terms;
            let terms = KeyTerms { name, limits, budget, ..KeyTerms::first() };
            (Some(key), Key { terms, leaked_at: None, ..manager })
        } else {
            (None, Key { revoked_at: Some(now), ..manager })
        };
        let (old_secrets, meter) = (OldSecrets::Revoke, MeterWrite::Keep);
        KeyWrite { row, key: manager, old_secrets, secret, meter, written_at: now }
    };
    let is_manager = |key: &Key| key.number.is_first() || key.terms.scopes.has(Scope::Manage);
    let keys: Vec<_> = facts.managers.into_iter().filter(is_manager).map(write).collect();
    if !keys.iter().any(|write| write.secret.is_some()) {
        return Err(StoreError::Corrupt(format!("account {} has no first key", account.id)));
    }
    Ok(Some(KeyChanges { row, account, keys, replaced_at: now }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{KEY, NOW, account, first_key, revoked};
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
            (Some((1, revoked())), true, Some(false)),
            (Some((1, revoked())), false, Some(false)),
            (Some((1, account())), true, None),
            (Some((1, account())), false, Some(true)),
        ];
        for (account, key_in_use, replaced) in table {
            let facts = KeyFacts { account, key_in_use, managers: vec![first_key()] };
            let changes = replace_key(facts.clone(), KEY, NOW).ok();
            assert_eq!(changes.as_ref().map(Option::is_some), replaced, "{facts:?}");
        }
    }

    fn below(number: u32, scopes: Scopes) -> Key {
        let terms = KeyTerms { max_in_flight: 3, ..KeyTerms::new("below".parse().unwrap(), scopes) };
        Key { number: KeyNumber::new(number), parent: Some(KeyNumber::FIRST), terms, ..first_key() }
    }

    #[test]
    fn managers_are_revoked_and_the_first_key_begins_again() {
        let limits = RateLimits { requests_per_minute: 4, requests_per_day: 5 };
        let budget = Some(Budget { limit: Credits::from_atoms(6), reset: None });
        let kept = KeyTerms { name: "mine".parse().unwrap(), limits, budget, ..KeyTerms::first() };
        let narrowed = KeyTerms { max_in_flight: 1, routes: "/a".parse().unwrap(), disabled: true, ..kept.clone() };
        let first = Key { terms: narrowed, leaked_at: Some(NOW), ..first_key() };
        let manager = below(1, Scopes::of([Scope::Manage]).unwrap());
        let managers = vec![first.clone(), manager.clone(), below(2, Scopes::default())];
        let facts = KeyFacts { account: Some((1, account())), key_in_use: false, managers };
        let changes = replace_key(facts, KEY, NOW).unwrap().expect("the account is live");
        let [of_first, of_manager] = changes.keys.as_slice() else { panic!("a caller stays: {:?}", changes.keys) };
        assert_eq!(of_first.key, Key { terms: kept, leaked_at: None, ..first });
        assert_eq!(of_manager.key, Key { revoked_at: Some(NOW), ..manager });
        assert_eq!((of_first.secret, of_manager.secret), (Some(KEY), None));
        for write in &changes.keys {
            assert_eq!((write.old_secrets, write.meter), (OldSecrets::Revoke, MeterWrite::Keep));
        }
    }

    #[test]
    fn an_account_without_a_first_key_is_corrupt() {
        let facts =
            KeyFacts { account: Some((1, account())), key_in_use: false, managers: vec![below(1, Scopes::ALL)] };
        assert!(matches!(replace_key(facts, KEY, NOW), Err(StoreError::Corrupt(_))));
    }
}
