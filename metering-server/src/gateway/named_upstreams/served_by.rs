//! Remembers which upstream served a request, for lookups soon after: the last 65,536 requests of this process.
//!
//! Only what is held for a request is stored (ADR 47), so that of other requests is in memory. Each entry is one number: parts of the hashes of
//! the request's id and of the upstream's name. A new request replaces the one in its place.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use metering_core::charging::HoldId;

const PLACES: usize = 1 << 16;

/// The upstreams of the last requests.
pub(super) struct ServedBy(Box<[AtomicU64]>);

impl Default for ServedBy {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl ServedBy {
    /// A request was served by the upstream with this name.
    pub(super) fn note(&self, id: HoldId, name: &str) {
        let (place, mark) = place_of(id);
        self.0[place].store(mark | u64::from(short_hash(name)), Ordering::Relaxed);
    }

    /// Which of these upstreams served a request, if known.
    pub(super) fn find<'n>(&self, id: HoldId, mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
        let (place, mark) = place_of(id);
        let found = self.0[place].load(Ordering::Relaxed);
        names.find(|name| found == mark | u64::from(short_hash(name)))
    }
}

/// The place of an id, and the mark of its entry.
fn place_of(id: HoldId) -> (usize, u64) {
    let hash = hash_of(id.as_bytes());
    (usize::from(end_of(hash)), hash & !u64::from(u16::MAX))
}

fn short_hash(name: &str) -> u16 {
    end_of(hash_of(name.as_bytes()))
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn end_of(hash: u64) -> u16 {
    let [.., a, b] = hash.to_be_bytes();
    u16::from_be_bytes([a, b])
}

impl fmt::Debug for ServedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedBy").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use metering_core::{Clock, SystemClock, SystemRandomness};

    use super::*;

    const NAMES: [&str; 3] = ["eu", "us", "backup"];

    #[test]
    fn the_upstream_of_a_recent_request_is_known() {
        let served = ServedBy::default();
        let ids: Vec<_> = (0..500)
            .map(|number| match number % 2 {
                0 => HoldId::generate(&SystemRandomness),
                _ => HoldId::at(SystemClock.now(), &SystemRandomness),
            })
            .collect();
        let name = |number: usize| NAMES[number % 3];
        for (number, id) in ids.iter().enumerate() {
            served.note(*id, name(number));
        }
        let found = |id: HoldId| served.find(id, NAMES.into_iter());
        let known = ids.iter().enumerate().filter(|(number, id)| found(**id) == Some(name(*number))).count();
        assert!(known > 480, "{known}: few had the place of a later one");
        let wrong = ids.iter().enumerate().filter(|(number, id)| found(**id).is_some_and(|it| it != name(*number)));
        assert_eq!(wrong.count(), 0);
        assert_eq!(found(HoldId::generate(&SystemRandomness)), None);
        assert_eq!(served.find(ids[499], ["other"].into_iter()), None, "an upstream that was removed");
    }
}
