//! Meters as this node's last commits left them.
//!
//! A commit that decides from these needs no round trip to read. Another node, a top-up or a rotation may have changed a
//! meter since, so the database checks under the locks that each is still as it was left; if one is not, the commit is
//! rolled back, and repeated with meters that were read. What is kept here is therefore never trusted, only tried.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metering_core::access::KeyHash;
use metering_core::charging::MeterState;

use crate::charging::tail::Tail;

/// How many meters are kept, at about half a kilobyte each. Beyond that, all are dropped.
const MAX_METERS: usize = 131_072;

/// How many commits read first after one found a meter changed. While several nodes charge the same accounts, trying
/// costs a round trip more than it saves.
const PAUSE: u32 = 64;

/// The row of an account in `meter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meter {
    /// The live key, if any.
    pub(crate) key: Option<KeyHash>,
    pub(crate) state: MeterState,
    /// How many entries of activity the account ever had.
    pub(crate) entries: i64,
    pub(crate) tail: Tail,
}

/// Meters by account number.
pub(crate) type Meters = BTreeMap<i64, Meter>;

/// The meters that a node left behind.
#[derive(Debug, Default)]
pub(crate) struct LeftMeters {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    meters: foldhash::HashMap<i64, Meter>,
    /// How many more commits read first.
    pause: u32,
}

impl LeftMeters {
    /// Takes the meters of these accounts out; `None` if one is not there, or during a pause.
    ///
    /// Whoever takes them puts them back after the commit. A concurrent commit with one of the accounts reads meanwhile.
    pub(crate) fn take(&self, accounts: impl Iterator<Item = i64> + Clone) -> Option<Meters> {
        let mut memory = self.memory();
        if memory.pause > 0 {
            memory.pause -= 1;
            return None;
        }
        if !accounts.clone().all(|account| memory.meters.contains_key(&account)) {
            return None;
        }
        Some(accounts.filter_map(|account| Some((account, memory.meters.remove(&account)?))).collect())
    }

    /// Keeps meters as a commit left them.
    pub(crate) fn put(&self, meters: Meters) {
        let mut memory = self.memory();
        if memory.meters.len().saturating_add(meters.len()) > MAX_METERS {
            drop(take(&mut memory.meters));
        }
        memory.meters.extend(meters);
    }

    /// Notes that a meter was not as it was left: somebody else is writing.
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

    use super::*;

    fn meter(entries: i64) -> Meter {
        let window = Window { index: 0, count: 0 };
        let (totals, limits) = (Totals::default(), RateLimits::default());
        let state = MeterState { totals, limits, minute: window, day: window };
        Meter { key: None, state, entries, tail: Tail::default() }
    }

    #[test]
    fn meters_are_taken_together_or_not_at_all() {
        let left = LeftMeters::default();
        left.put(Meters::from([(1, meter(10)), (2, meter(20))]));
        assert_eq!(left.take([1, 3].into_iter()), None);
        let taken = Meters::from([(1, meter(10)), (2, meter(20))]);
        assert_eq!(left.take([1, 2].into_iter()), Some(taken));
        assert_eq!(left.take([1].into_iter()), None, "it is in use");
    }

    #[test]
    fn a_change_elsewhere_pauses_and_memory_is_bounded() {
        let left = LeftMeters::default();
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
    }
}
