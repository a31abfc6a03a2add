//! Request limits of one source: how many calls, and how many blocks.
//!
//! Providers limit both, with undocumented error messages. So the reader learns the limits from refusals, and forgets
//! them after a while: they differ by subscription, and full blocks may be refused where empty ones are not.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of blocks per request for logs, unless it is configured.
pub(crate) const LOG_BLOCKS_MAX: u64 = 2000;
/// Maximum number of whole blocks per request.
const FULL_BLOCKS_MAX: u64 = 20;
/// How long before a refused number of blocks is tried again.
const BLOCKS_MEMORY: Duration = Duration::from_secs(10 * 60);
/// How long a learned batch limit applies.
const CALLS_MEMORY: Duration = Duration::from_secs(60 * 60);

/// Which blocks are searched, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// Logs of a range of blocks, with one call.
    Logs,
    /// Whole blocks, one call each.
    Blocks,
}

/// The request limits of one source.
#[derive(Debug)]
pub(crate) struct Capacity {
    calls: Mutex<Option<(usize, Instant)>>,
    logs: Mutex<BlockRange>,
    blocks: Mutex<BlockRange>,
}

impl Capacity {
    /// A source, with the maximum number of blocks per request for logs.
    pub(crate) fn new(log_blocks_max: u64) -> Self {
        let (logs, blocks) = (BlockRange::new(log_blocks_max), BlockRange::new(FULL_BLOCKS_MAX));
        Self { calls: Mutex::default(), logs: Mutex::new(logs), blocks: Mutex::new(blocks) }
    }

    /// The maximum number of calls per batch, once the source has refused a larger one.
    pub(crate) fn calls(&self, now: Instant) -> Option<usize> {
        let known = *lock(&self.calls);
        known.filter(|(_, at)| now.duration_since(*at) < CALLS_MEMORY).map(|(calls, _)| calls)
    }

    /// It refused a larger batch, and accepted this many calls.
    pub(crate) fn takes_calls(&self, calls: usize, now: Instant) {
        *lock(&self.calls) = Some((calls, now));
    }

    /// How many blocks to request next.
    pub(crate) fn size(&self, search: Search) -> u64 {
        self.range(search).size
    }

    /// The current and the maximum number of blocks per request for logs.
    pub(crate) fn log_blocks(&self) -> (u64, u64) {
        let range = self.range(Search::Logs);
        (range.size, range.max)
    }

    /// The source accepted this many blocks.
    pub(crate) fn took(&self, search: Search, blocks: u64, now: Instant) {
        self.range(search).took(blocks, now);
    }

    /// The source refused this many blocks.
    pub(crate) fn refused(&self, search: Search, blocks: u64, now: Instant) {
        self.range(search).refused(blocks, now);
    }

    /// A request for this many blocks failed, perhaps because there were so many.
    pub(crate) fn failed(&self, search: Search, blocks: u64) {
        self.range(search).halve(blocks);
    }

    /// It refuses even a single block, so the earlier refusals were about that block and not about the number of
    /// blocks.
    pub(crate) fn refused_one(&self, search: Search) {
        self.range(search).refused = None;
    }

    fn range(&self, search: Search) -> MutexGuard<'_, BlockRange> {
        lock(match search {
            Search::Logs => &self.logs,
            Search::Blocks => &self.blocks,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many blocks to request at once: half after a refusal, an eighth more after each success, and always fewer than
/// the number last refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockRange {
    size: u64,
    max: u64,
    /// The smallest refused number of blocks, and when it was refused.
    refused: Option<(u64, Instant)>,
}

impl BlockRange {
    fn new(max: u64) -> Self {
        let max = max.max(1);
        Self { size: max, max, refused: None }
    }

    fn took(&mut self, blocks: u64, now: Instant) {
        if blocks < self.size {
            return;
        }
        self.refused = self.still_refused(now);
        let max = self.refused.map_or(self.max, |(blocks, _)| (blocks - 1).clamp(1, self.max));
        self.size = self.size.saturating_add((self.size / 8).max(1)).min(max);
    }

    fn refused(&mut self, blocks: u64, now: Instant) {
        let least = self.still_refused(now).map_or(blocks, |(least, _)| least.min(blocks));
        self.refused = Some((least.max(2), now));
        self.halve(blocks);
    }

    fn halve(&mut self, blocks: u64) {
        self.size = self.size.min((blocks / 2).max(1));
    }

    fn still_refused(&self, now: Instant) -> Option<(u64, Instant)> {
        self.refused.filter(|(_, at)| now.duration_since(*at) < BLOCKS_MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_halved_until_it_is_taken_and_grows_to_what_was_not_refused() {
        let (mut range, start) = (BlockRange::new(2_000), Instant::now());
        let (mut asked, mut refusals) = (Vec::new(), 0);
        // A source that accepts at most five blocks.
        for _ in 0..40 {
            asked.push(range.size);
            match range.size {
                0..=5 => range.took(range.size, start),
                _ => {
                    refusals += 1;
                    range.refused(range.size, start);
                }
            }
        }
        assert_eq!(asked[..12], [2_000, 1_000, 500, 250, 125, 62, 31, 15, 7, 3, 4, 5]);
        assert_eq!((asked[39], refusals), (5, 10), "6 is tried once: {asked:?}");
        // Later, a larger number is tried again.
        let later = start + BLOCKS_MEMORY;
        range.took(5, later);
        assert_eq!(range.size, 6);
        for _ in 0..100 {
            range.took(range.size, later);
        }
        assert_eq!(range.size, 2_000);
    }

    #[test]
    fn a_failure_halves_the_range_and_refuses_nothing() {
        let (mut range, start) = (BlockRange::new(100), Instant::now());
        for size in [50, 25, 12] {
            range.halve(range.size);
            assert_eq!(range.size, size);
        }
        range.took(7, start);
        assert_eq!(range.size, 12, "a short range says nothing");
        for _ in 0..30 {
            range.took(range.size, start);
        }
        assert_eq!(range.size, 100);
        let mut least = BlockRange::new(0);
        least.refused(1, start);
        least.took(1, start);
        assert_eq!(least.size, 1);
    }

    #[test]
    fn a_batch_size_is_remembered_for_an_hour() {
        let (capacity, start) = (Capacity::new(1), Instant::now());
        assert_eq!(capacity.calls(start), None);
        capacity.takes_calls(3, start);
        assert_eq!(capacity.calls(start + CALLS_MEMORY / 2), Some(3));
        assert_eq!(capacity.calls(start + CALLS_MEMORY), None);
    }
}
