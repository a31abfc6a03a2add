//! Challenges: signed by a wallet to replace the key of its account.

use super::key::{KeyChanges, KeyFacts, replace_key};
use crate::access::account::Account;
use crate::access::key::KeyHash;
use crate::clock::Timestamp;
use crate::payments::recovery::Challenge;
use crate::store::StoreError;

/// Decides [`PaymentStore::open_challenge`](crate::PaymentStore::open_challenge), and returns the challenge to insert.
///
/// # Errors
/// When a stored challenge has the nonce.
pub fn open_challenge(new: Challenge, nonce_in_use: bool) -> Result<Challenge, StoreError> {
    if nonce_in_use {
        return Err(StoreError::Corrupt("the nonce of a new challenge is already in use".to_owned()));
    }
    Ok(new)
}

/// Decides [`PaymentStore::fail_challenge`](crate::PaymentStore::fail_challenge): the challenge with one more failure,
/// or `None` when it is void and must be deleted.
#[must_use]
pub fn fail_challenge(challenge: Challenge) -> Option<Challenge> {
    let failures = challenge.failures.saturating_add(1);
    (failures < Challenge::MAX_FAILURES).then_some(Challenge { failures, ..challenge })
}

/// Decides [`PaymentStore::rotate_key`](crate::PaymentStore::rotate_key). `facts` are the facts of the challenge's
/// account. The challenge is deleted with the change.
///
/// `None`, in this order: when the challenge has expired; when its account does not exist or has another payer; when it
/// is revoked.
///
/// # Errors
/// When the new key is in use, which is checked last.
pub fn rotate_key<K: Copy>(
    challenge: &Challenge,
    facts: KeyFacts<K>,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<KeyChanges<K>>, StoreError> {
    let is_payer = |account: &Account| account.payer.is_some_and(|payer| payer.address == challenge.address);
    if now > challenge.expires_at || !facts.account.as_ref().is_some_and(|(_, account)| is_payer(account)) {
        return Ok(None);
    }
    replace_key(facts, key, now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::scene::{KEY, NOW, PAYER, account, first_key, revoked};
    use super::*;
    use crate::chains::address::Address;

    fn challenge() -> Challenge {
        let (nonce, message) = ("n".to_owned(), "sign this".to_owned());
        Challenge { nonce, address: PAYER, account: account().id, message, expires_at: NOW, failures: 0 }
    }

    #[test]
    fn the_last_failure_voids_a_challenge() {
        let mut left = Some(challenge());
        for failures in 1..Challenge::MAX_FAILURES {
            left = left.and_then(fail_challenge);
            assert_eq!(left, Some(Challenge { failures, ..challenge() }));
        }
        assert_eq!(left.and_then(fail_challenge), None);
    }

    #[test]
    fn only_the_payer_of_an_active_account_rotates_its_key() {
        let late = NOW.saturating_add(Duration::from_millis(1));
        let other = Challenge { address: Address::ZERO, ..challenge() };
        // challenge, account, whether the key is in use, now, outcome (`None`: an error)
        let table = [
            (challenge(), Some((1, account())), true, late, Some(false)),
            (other, Some((1, account())), true, NOW, Some(false)),
            (challenge(), None, true, NOW, Some(false)),
            (challenge(), Some((1, revoked())), true, NOW, Some(false)),
            (challenge(), Some((1, account())), true, NOW, None),
            (challenge(), Some((1, account())), false, NOW, Some(true)),
        ];
        for (challenge, account, key_in_use, now, rotated) in table {
            let facts = KeyFacts { account, key_in_use, keys: vec![first_key()] };
            let changes = rotate_key(&challenge, facts.clone(), KEY, now).ok();
            assert_eq!(changes.as_ref().map(Option::is_some), rotated, "{challenge:?} {facts:?}");
        }
    }

    #[test]
    fn a_nonce_in_use_opens_nothing() {
        assert_eq!(open_challenge(challenge(), false).ok(), Some(challenge()));
        open_challenge(challenge(), true).unwrap_err();
    }
}
