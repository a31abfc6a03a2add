//! Meters as this node's last commits left them.
//!
//! A commit that decides from these needs no round trip to read. Another node, a top-up or a rotation may have changed
//! a meter since, so the database checks under the locks that none has changed; if one has, the commit is rolled back
//! and repeated with meters that were read. So a cached meter is only a guess, and is always checked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metering_core::access::KeyNumber;
use metering_core::charging::{KeyMeter, MeterState};

use crate::charging::access::AccessVersion;
use crate::charging::tail::Tail;

/// How many meters are kept, of accounts and of keys together, at up to half a kilobyte each. Beyond that, all are
/// dropped.
const MAX_METERS: usize = 131_072;

/// How many commits read first after one found a meter changed. While several nodes charge the same accounts, trying
/// costs a round trip more than it saves.
const PAUSE: u32 = 64;

/// The row of an account in `meter`, and rows in `key_meter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Changes with the account's keys.
    pub(crate) access: AccessVersion,
    pub(crate) state: MeterState,
    /// How many entries of activity the account ever had.
    pub(crate) entries: i64,
    pub(crate) tail: Tail,
    /// Meters of keys whose terms have counters, as far as they were read. They need no separate check: every commit
    /// that changes one adds an entry, or opens a hold, after which none are kept, or draws `access` anew, as every
    /// other write that changes one does.
    pub(crate) keys: BTreeMap<KeyNumber, KeyMeter>,
}

impl Meter {
    /// Whether both are the same row of `meter`.
    fn is_same_row(&self, other: &Self) -> bool {
        let row = |meter: &Self| (meter.access, meter.state, meter.entries, meter.tail.day);
        row(self) == row(other) && self.tail.packed == other.tail.packed
    }

    fn size(&self) -> usize {
        1 + self.keys.len()
    }
}

/// Meters by account number.
pub(crate) type Meters = BTreeMap<i64, Meter>;

/// The meters that a node left behind.
#[derive(Debug, Default)]
pub(crate) struct RecentMeters {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    meters: foldhash::HashMap<i64, Meter>,
    /// The sum of the meters' sizes.
    size: usize,
    /// How many more commits read first.
    pause: u32,
}

impl RecentMeters {
    /// Takes the meters of these accounts out; `None` if one is not there, or during a pause.
    ///
    /// The caller puts them back after the commit. Meanwhile, a concurrent commit with one of the accounts must read
    /// its meters.
    pub(crate) fn take(&self, accounts: impl Iterator<Item = i64> + Clone) -> Option<Meters> {
        let mut memory = self.memory();
        if memory.pause > 0 {
            memory.pause -= 1;
            return None;
        }
        if !accounts.clone().all(|account| memory.meters.contains_key(&account)) {
            return None;
        }
        let taken: Meters = accounts.filter_map(|account| Some((account, memory.meters.remove(&account)?))).collect();
        memory.size -= taken.values().map(Meter::size).sum::<usize>();
        Some(taken)
    }

    /// Adds the meters of other keys to meters that were just read, if those have not changed since. Otherwise an
    /// account whose keys take turns would have to be read each time.
    pub(crate) fn complete(&self, meters: &mut Meters) {
        let memory = self.memory();
        for (account, meter) in meters {
            let Some(left) = memory.meters.get(account).filter(|left| !left.keys.is_empty()) else { continue };
            if left.is_same_row(meter) {
                for (key, of_key) in &left.keys {
                    meter.keys.entry(*key).or_insert(*of_key);
                }
            }
        }
    }

    /// Keeps meters as a commit left them.
    pub(crate) fn put(&self, meters: Meters) {
        let mut memory = self.memory();
        let size: usize = meters.values().map(Meter::size).sum();
        if memory.size.saturating_add(size) > MAX_METERS {
            (memory.meters, memory.size) = (foldhash::HashMap::default(), 0);
        }
        memory.size += size;
        for (account, meter) in meters {
            let replaced = memory.meters.insert(account, meter);
            memory.size -= replaced.map_or(0, |replaced| replaced.size());
        }
    }

    /// Forgets the meter of an account, which has changed.
    pub(crate) fn forget(&self, account: i64) {
        let mut memory = self.memory();
        let size = memory.meters.remove(&account).map_or(0, |meter| meter.size());
        memory.size -= size;
    }

    /// Records that a meter has changed: another node is writing.
    pub(crate) fn pause(&self) {
        self.memory().pause = PAUSE;
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::RateLimits;
    use metering_core::access::Totals;
    use metering_core::charging::Window;
    use metering_core::money::BalanceAlert;

    use super::*;

    fn meter(entries: i64) -> Meter {
        let window = Window { index: 0, count: 0 };
        let (totals, limits) = (Totals::default(), RateLimits::default());
        let state = MeterState { totals, limits, alert: BalanceAlert::default(), minute: window, day: window };
        Meter { access: [0; 16], state, entries, tail: Tail::default(), keys: BTreeMap::new() }
    }

    fn with_keys(meter: Meter, keys: &[u32]) -> Meter {
        let keys = keys.iter().map(|key| (KeyNumber::new(*key), KeyMeter::default())).collect();
        Meter { keys, ..meter }
    }

    #[test]
    fn meters_are_taken_together_or_not_at_all() {
        let left = RecentMeters::default();
        left.put(Meters::from([(1, meter(10)), (2, meter(20))]));
        assert_eq!(left.take([1, 3].into_iter()), None);
        let taken = Meters::from([(1, meter(10)), (2, meter(20))]);
        assert_eq!(left.take([1, 2].into_iter()), Some(taken));
        assert_eq!(left.take([1].into_iter()), None, "it is in use");
    }

    #[test]
    fn a_change_elsewhere_pauses_and_memory_is_bounded() {
        let left = RecentMeters::default();
        left.put(Meters::from([(1, meter(10))]));
        left.pause();
        for _ in 0..PAUSE {
            assert_eq!(left.take([1].into_iter()), None);
        }
        assert!(left.take([1].into_iter()).is_some());
        for account in 0..i64::try_from(MAX_METERS).unwrap() + 1 {
            left.put(Meters::from([(account, meter(0))]));
        }
        assert_eq!(left.memory().meters.len(), 1);
        assert_eq!(left.memory().size, 1);
        for _ in 0..2 {
            left.put(Meters::from([(7, with_keys(meter(0), &[0, 1, 2]))]));
        }
        assert_eq!(left.memory().size, 5, "the second took the place of the first");
        assert!(left.take([7].into_iter()).is_some());
        assert_eq!(left.memory().size, 1);
    }

    #[test]
    fn meters_of_other_keys_are_kept_while_their_account_is_as_it_was_left() {
        let left = RecentMeters::default();
        left.put(Meters::from([(1, with_keys(meter(10), &[3, 4]))]));
        let completed = |read: Meter| {
            let mut meters = Meters::from([(1, with_keys(read, &[5])), (2, meter(1))]);
            left.complete(&mut meters);
            meters[&1].keys.keys().map(|key| key.get()).collect::<Vec<_>>()
        };
        assert_eq!(completed(meter(10)), [3, 4, 5]);
        assert_eq!(completed(meter(11)), [5], "another node charged the account");
        assert_eq!(completed(Meter { access: [1; 16], ..meter(10) }), [5], "its keys were changed");
        assert_eq!(completed(Meter { tail: Tail { day: None, packed: vec![1] }, ..meter(10) }), [5]);
    }
}
