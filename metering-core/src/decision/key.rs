//! Replaces the keys of an account whose owner proved to be its owner otherwise: by wallet, by email, or to the operator.

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

/// What is read before the keys of an account are replaced.
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
    /// The first key with its new secret; the other keys that could manage keys and those that they made, revoked; and the
    /// rest, without secrets in a grace period.
    pub keys: Vec<KeyWrite<K>>,
    /// When.
    pub replaced_at: Timestamp,
}

/// Decides [`Store::replace_key`](crate::Store::replace_key). `None` when there is no such account, or it is revoked.
///
/// The first key gets the new secret, and is as it was in the beginning, but for its name, rate limits and budget. Every
/// other key that can manage keys is revoked, and with it the keys below it. Grace periods of the rest end.
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
            let KeyTerms { name, limits, max_in_flight, budget, .. } = stored.terms;
            let terms = KeyTerms { name, limits, max_in_flight, budget, ..KeyTerms::first() };
            let first = Key { terms, leaked_at: None, ..stored };
            return KeyWrite { row, key: first, old_secrets, secret: Some(key), meter, written_at: now };
        }
        if managers.contains(&stored.number) || made.contains(&stored.number) {
            return revoked(row, stored, now);
        }
        // Whoever could manage keys may have rotated this one. Its owner has the newest secret, or rotates it.
        KeyWrite { row, key: stored, old_secrets: OldSecrets::EndGrace, secret: None, meter, written_at: now }
    };
    let keys: Vec<_> = facts.keys.iter().cloned().map(write).collect();
    if !keys.iter().any(|write| write.secret.is_some()) {
        return Err(StoreError::Corrupt(format!("account {} has no first key", account.id)));
    }
    Ok(Some(KeyChanges { row, account, keys, replaced_at: now }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{KEY, NOW, account, first_key, revoked};
    use super::*;

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
}
