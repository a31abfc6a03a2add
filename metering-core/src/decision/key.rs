//! Replaces API keys.

use super::active;
use crate::access::account::Account;
use crate::access::key::KeyHash;
use crate::clock::Timestamp;
use crate::store::StoreError;

/// What is read before a key is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// Any account has, or ever had, the new key.
    pub key_in_use: bool,
}

/// A key to insert. The account's live key is revoked, and its paid quote counts as claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChanges<K> {
    /// The account's row.
    pub row: K,
    /// The account, which does not change.
    pub account: Account,
    /// The hash of the new key.
    pub key: KeyHash,
    /// When the old key is revoked and the new one given out.
    pub replaced_at: Timestamp,
}

/// Decides [`Store::replace_key`](crate::Store::replace_key). `None` when there is no such account, or it is revoked.
///
/// # Errors
/// When the new key is in use. An account that does not exist or is revoked comes first.
pub fn replace_key<K>(facts: KeyFacts<K>, key: KeyHash, now: Timestamp) -> Result<Option<KeyChanges<K>>, StoreError> {
    let Some((row, account)) = active(facts.account) else { return Ok(None) };
    if facts.key_in_use {
        return Err(StoreError::Corrupt("a new key is already in use".to_owned()));
    }
    Ok(Some(KeyChanges { row, account, key, replaced_at: now }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{KEY, NOW, account, revoked};
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
            let facts = KeyFacts { account, key_in_use };
            let changes = replace_key(facts.clone(), KEY, NOW).ok();
            assert_eq!(changes.as_ref().map(Option::is_some), replaced, "{facts:?}");
        }
    }
}
