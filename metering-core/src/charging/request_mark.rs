//! The contents of a request's id: when it was made, and if it was charged: when, with which key and for which route.
//! So a charge is found by the id of its request, and nothing is stored for it (ADR 47).
//!
//! | bytes | |
//! |---|---|
//! | 0 to 5 | a time: milliseconds since the Unix epoch |
//! | 6 to 9 | the beginning of the key's hash; zero if nothing was charged |
//! | 10 | the last byte of the CRC-32 of the route's template |
//! | 11 to 15 | random, except for the first bit: whether the time is that of the commit |

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use crate::access::key::KeyHash;
use crate::charging::hold::HoldId;
use crate::clock::Timestamp;
use crate::random::Randomness;

const TIME: Range<usize> = 0..6;
const KEY: Range<usize> = 6..10;
const ROUTE: usize = 10;
const RANDOM: usize = 11;
const COMMITTED: u8 = 0x80;

/// If an id was made before its charge was committed, the commit follows within this time.
const COMMIT_WAIT: Duration = Duration::from_secs(10);

impl HoldId {
    /// A new id for a request that arrives at `now`, and has not been charged.
    ///
    /// ```
    /// use metering_core::charging::HoldId;
    /// use metering_core::{Clock, SystemClock, SystemRandomness};
    ///
    /// let now = SystemClock.now();
    /// let id = HoldId::at(now, &SystemRandomness);
    /// assert_eq!((id.made_at(), id.names_charge()), (now, false));
    /// ```
    #[must_use]
    pub fn at(now: Timestamp, randomness: &dyn Randomness) -> Self {
        let mut bytes = *Self::generate(randomness).as_bytes();
        write_time(&mut bytes, now);
        bytes[KEY].fill(0);
        Self::from_bytes(bytes)
    }

    /// The id of the same request once it is charged: to the key with this hash, for a route. `at` is the time of the
    /// commit, or a time just before it.
    #[must_use]
    pub fn of_charge(self, key: &KeyHash, route_template: &str, at: Timestamp, is_committed: bool) -> Self {
        let mut bytes = *self.as_bytes();
        write_time(&mut bytes, at);
        bytes[KEY].copy_from_slice(&key.as_bytes()[..KEY.len()]);
        bytes[ROUTE] = route_byte(route_template);
        bytes[RANDOM] = (bytes[RANDOM] & !COMMITTED) | if is_committed { COMMITTED } else { 0 };
        Self::from_bytes(bytes)
    }

    /// The time that it has: of its charge, or else of its request. Anything, for an id that was made without a time.
    #[must_use]
    pub fn made_at(&self) -> Timestamp {
        let mut millis = [0; 8];
        millis[2..].copy_from_slice(&self.as_bytes()[TIME]);
        Timestamp::from_unix_millis(i64::from_be_bytes(millis))
    }

    /// Whether it names a charge. So does an id that was made without a time.
    #[must_use]
    pub fn names_charge(&self) -> bool {
        self.as_bytes()[KEY].iter().any(|byte| *byte != 0)
    }

    /// The hashes that the charged key may have; `None` if it names no charge.
    #[must_use]
    pub fn key_hashes(&self) -> Option<RangeInclusive<KeyHash>> {
        let with_rest = |rest: u8| {
            let mut bytes = [rest; 32];
            bytes[..KEY.len()].copy_from_slice(&self.as_bytes()[KEY]);
            KeyHash::from_bytes(bytes)
        };
        self.names_charge().then(|| with_rest(0)..=with_rest(u8::MAX))
    }

    /// Whether a charge for this route, committed at `at`, may be the one that it names.
    #[must_use]
    pub fn may_be_of(&self, route_template: &str, at: Timestamp) -> bool {
        let since = self.made_at();
        let is_committed = self.as_bytes()[RANDOM] & COMMITTED != 0;
        let until = if is_committed { since } else { since.saturating_add(COMMIT_WAIT) };
        self.as_bytes()[ROUTE] == route_byte(route_template) && (since..=until).contains(&at)
    }
}

fn write_time(bytes: &mut [u8; 16], at: Timestamp) {
    // Six bytes last until the year 10889.
    bytes[TIME].copy_from_slice(&at.unix_millis().to_be_bytes()[2..]);
}

fn route_byte(route_template: &str) -> u8 {
    let [.., last] = crc32fast::hash(route_template.as_bytes()).to_be_bytes();
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn later(millis: u64) -> Timestamp {
        NOON.saturating_add(Duration::from_millis(millis))
    }

    #[test]
    fn an_id_names_the_key_of_its_charge() {
        let request = HoldId::at(NOON, &SystemRandomness);
        assert_eq!((request.made_at(), request.key_hashes()), (NOON, None));
        let charged = request.of_charge(&KeyHash::from_bytes([7; 32]), "/price", later(3), true);
        assert_eq!((charged.made_at(), charged.names_charge()), (later(3), true));
        let hashes = charged.key_hashes().unwrap();
        assert!(hashes.contains(&KeyHash::from_bytes([7; 32])) && !hashes.contains(&KeyHash::from_bytes([8; 32])));
        assert_eq!(charged.to_string().parse(), Ok(charged));
    }

    #[test]
    fn an_id_names_one_commit_or_those_just_after_it() {
        let charge = |is_committed| {
            HoldId::at(NOON, &SystemRandomness).of_charge(&KeyHash::from_bytes([7; 32]), "/price", NOON, is_committed)
        };
        // route, milliseconds later, whether it may be a charge of that commit, or of one made before
        let table = [
            ("/price", 0, true, true),
            ("/price", 1, false, true),
            ("/price", 10_000, false, true),
            ("/price", 10_001, false, false),
            ("/other", 0, false, false),
        ];
        for (route, millis, committed, before) in table {
            assert_eq!(charge(true).may_be_of(route, later(millis)), committed, "{route} {millis}");
            assert_eq!(charge(false).may_be_of(route, later(millis)), before, "{route} {millis}");
        }
        assert!(!charge(false).may_be_of("/price", NOON.saturating_sub(Duration::from_millis(1))));
    }

    #[test]
    fn ids_of_one_commit_differ() {
        let id = || HoldId::at(NOON, &SystemRandomness).of_charge(&KeyHash::from_bytes([7; 32]), "/price", NOON, true);
        let ids: std::collections::BTreeSet<_> = (0..1_000).map(|_| id()).collect();
        assert_eq!(ids.len(), 1_000);
    }
}
