//! Requests and streams in flight, counted for keys with a limit on them.
//!
//! The counts are in this process's memory: a limit applies per process, and a restart begins at zero. Dropping a
//! [`Slot`] frees it, however its request ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;

type Place = (AccountId, KeyNumber);

/// The requests in flight in this process, for keys that have a limit on them. Clones share the counts.
#[derive(Clone, Default)]
pub struct InFlight {
    counts: Arc<Mutex<HashMap<Place, u32>>>,
}

/// A request in flight. Keep it until the response is sent, or failed.
///
/// Two slots are equal when they count for the same keys.
pub struct Slot {
    registry: InFlight,
    places: Vec<Place>,
}

impl InFlight {
    /// Counts a request for each of these keys of an account, given with their limits; 0 means no limit. `None`, and
    /// nothing is counted, if a limit is reached.
    pub(crate) fn enter(&self, account: &AccountId, keys: &[(KeyNumber, u32)]) -> Option<Slot> {
        let mut places = Vec::new();
        let mut counts = self.counts();
        for (key, limit) in keys.iter().filter(|(_, limit)| *limit > 0) {
            let place = (account.clone(), *key);
            if counts.get(&place).is_some_and(|count| count >= limit) {
                return None;
            }
            places.push(place);
        }
        for place in &places {
            *counts.entry(place.clone()).or_default() += 1;
        }
        drop(counts);
        Some(Slot { registry: self.clone(), places })
    }

    /// How many requests of this key are in flight; zero for a key without a limit.
    #[must_use]
    pub fn count(&self, account: &AccountId, key: KeyNumber) -> u32 {
        self.counts().get(&(account.clone(), key)).copied().unwrap_or(0)
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Place, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.registry.counts();
        for place in &self.places {
            if let Some(count) = counts.get_mut(place) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(place);
                }
            }
        }
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.places == other.places
    }
}

impl Eq for Slot {}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.places).finish()
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("keys", &self.counts().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_counts_for_the_key_and_those_above_it_until_it_is_dropped() {
        let account: AccountId = "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
        let (child, parent) = (KeyNumber::new(2), KeyNumber::new(1));
        let in_flight = InFlight::default();
        let enter = |limit, above| in_flight.enter(&account, &[(child, limit), (parent, above), (KeyNumber::FIRST, 0)]);
        let one = enter(2, 2).unwrap();
        let other = in_flight.enter(&account, &[(parent, 2)]).unwrap();
        assert_eq!(enter(2, 2), None, "the parent has two already");
        assert_eq!((in_flight.count(&account, child), in_flight.count(&account, parent)), (1, 2));
        drop(other);
        let two = enter(2, 2).unwrap();
        drop((one, two));
        assert_eq!((in_flight.count(&account, child), in_flight.count(&account, parent)), (0, 0));
        assert!(in_flight.counts().is_empty());
    }
}
