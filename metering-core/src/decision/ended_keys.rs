//! Decides which ended keys of an account are deleted, so an account that keeps making keys cannot fill the store.

use std::collections::BTreeSet;

use crate::access::issued_key::Key;
use crate::access::key_id::KeyNumber;
use crate::clock::Timestamp;

/// The data read to decide whether a key is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyEnd {
    /// Its number.
    pub number: KeyNumber,
    /// The key that made it.
    pub parent: Option<KeyNumber>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it expires, or expired.
    pub expires_at: Option<Timestamp>,
    /// Rows that charges write still name it: holds, settled or not, and usage that is not in the daily totals yet.
    pub is_in_use: bool,
}

impl KeyEnd {
    /// When it was revoked or expired, whichever was first; `None` if it has not ended by `now`.
    #[must_use]
    pub fn ended_at(&self, now: Timestamp) -> Option<Timestamp> {
        let expired_at = self.expires_at.filter(|at| *at <= now);
        match (self.revoked_at, expired_at) {
            (Some(revoked), Some(expired)) => Some(revoked.min(expired)),
            (revoked, expired) => revoked.or(expired),
        }
    }
}

/// A key to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDeletion {
    /// The key to delete.
    pub number: KeyNumber,
    /// Its parent, which takes over its daily totals. The account's usage, and the spending that counts against parent
    /// keys' budgets, stay the same.
    pub heir: KeyNumber,
}

/// The keys to delete, child keys before their parents. `keys` are all keys of an account, by number.
///
/// An account keeps its newest [`Key::MAX_ENDED`] keys that were revoked or expired. An older one is deleted
/// [`Key::ENDED_RETENTION`] after its end, unless it is in use or is the parent of a kept key. The newest key of an
/// account is therefore always kept, and no number is used twice.
#[must_use]
pub fn keys_to_delete(keys: &[KeyEnd], now: Timestamp) -> Vec<KeyDeletion> {
    let (mut deletions, mut parents, mut kept) = (Vec::new(), BTreeSet::new(), 0);
    // A parent is older than its children, so children are decided first.
    for key in keys.iter().rev() {
        let mut is_deleted = false;
        if let Some(ended_at) = key.ended_at(now) {
            let is_old = kept >= Key::MAX_ENDED && ended_at.saturating_add(Key::ENDED_RETENTION) <= now;
            is_deleted = is_old && !key.is_in_use && !parents.contains(&key.number);
            kept += usize::from(!is_deleted);
        }
        match key.parent {
            Some(heir) if is_deleted => deletions.push(KeyDeletion { number: key.number, heir }),
            Some(parent) => drop(parents.insert(parent)),
            None => {}
        }
    }
    deletions
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    /// A child of the first key that was revoked long ago.
    fn revoked(number: u32) -> KeyEnd {
        let (number, parent) = (KeyNumber::new(number), Some(KeyNumber::FIRST));
        let revoked_at = Some(NOW.saturating_sub(Duration::from_secs(10 * 86_400)));
        KeyEnd { number, parent, revoked_at, expires_at: None, is_in_use: false }
    }

    fn live(number: u32) -> KeyEnd {
        KeyEnd { revoked_at: None, ..revoked(number) }
    }

    /// The keys to delete, if the first key precedes them and as many newer ones have ended as an account keeps.
    fn deleted(keys: impl IntoIterator<Item = KeyEnd>) -> Vec<u32> {
        let first = KeyEnd { parent: None, ..live(0) };
        let newer = (1..=u32::try_from(Key::MAX_ENDED).unwrap()).map(|number| revoked(10_000 + number));
        let all: Vec<_> = std::iter::once(first).chain(keys).chain(newer).collect();
        keys_to_delete(&all, NOW).iter().map(|deletion| deletion.number.get()).collect()
    }

    #[test]
    fn an_account_keeps_its_newest_ended_keys() {
        let most = u32::try_from(Key::MAX_ENDED).unwrap();
        let keys = |count: u32| -> Vec<_> { (1..=count).map(revoked).collect() };
        assert_eq!(keys_to_delete(&keys(most), NOW), []);
        let heir = KeyNumber::FIRST;
        let expected = [2, 1].map(|number| KeyDeletion { number: KeyNumber::new(number), heir });
        assert_eq!(keys_to_delete(&keys(most + 2), NOW), expected);
    }

    #[test]
    fn a_key_is_deleted_some_time_after_its_end() {
        let moment = Duration::from_millis(1);
        let due = NOW.saturating_sub(Key::ENDED_RETENTION);
        // revoked, expires, deleted
        let table = [
            (None, None, false),
            (None, Some(NOW.saturating_add(moment)), false),
            (None, Some(due), true),
            (None, Some(due.saturating_add(moment)), false),
            (Some(due), None, true),
            (Some(due.saturating_add(moment)), None, false),
            (Some(due), Some(NOW), true),
            (Some(NOW), Some(due), true),
            (Some(NOW), Some(NOW), false),
        ];
        for (revoked_at, expires_at, is_deleted) in table {
            let key = KeyEnd { revoked_at, expires_at, ..revoked(1) };
            assert_eq!(deleted([key]) == [1], is_deleted, "{key:?}");
        }
    }

    #[test]
    fn a_key_in_use_stays() {
        assert_eq!(deleted([KeyEnd { is_in_use: true, ..revoked(1) }, revoked(2)]), [2]);
    }

    #[test]
    fn a_parent_stays_as_long_as_a_key_below_it() {
        let below = |key: KeyEnd, parent: u32| KeyEnd { parent: Some(KeyNumber::new(parent)), ..key };
        assert_eq!(deleted([revoked(1), below(live(2), 1)]), [0_u32; 0]);
        let in_use = KeyEnd { is_in_use: true, ..revoked(3) };
        assert_eq!(deleted([revoked(1), below(revoked(2), 1), below(in_use, 2)]), [0_u32; 0]);
        assert_eq!(deleted([revoked(1), below(revoked(2), 1), below(revoked(3), 2)]), [3, 2, 1]);
    }

    #[test]
    fn the_first_key_stays_however_it_ended() {
        let first = KeyEnd { parent: None, ..revoked(0) };
        let keys: Vec<_> = std::iter::once(first).chain((1..=1_001).map(revoked)).collect();
        assert_eq!(keys_to_delete(&keys, NOW).len(), 1);
    }
}
