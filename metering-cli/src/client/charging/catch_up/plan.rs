//! Decides which blocks a run fetches, as pure logic without a service or a file.

use crate::client::charging::catch_up::block::BlockNumber;
use crate::failure::Failure;

/// The maximum number of blocks per run (protocol, section 6).
pub(super) const BLOCKS_MAX: u64 = 100;

/// Where a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At the latest block, because nothing is known about earlier ones.
    Latest,
    /// At this block.
    At(BlockNumber),
    /// After this block, which is already written.
    After(BlockNumber),
}

/// The blocks of a run: consecutive, and none above the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    first: BlockNumber,
    count: u64,
}

impl Plan {
    /// Plans a run of at most `blocks_max` blocks.
    ///
    /// # Errors
    /// When the service's latest block is before the cursor, or before the requested first block.
    pub(super) fn make(start: Start, latest: BlockNumber, blocks_max: u64) -> Result<Self, Failure> {
        let first = match start {
            Start::Latest => return Ok(Self { first: latest, count: 1 }),
            Start::At(first) if first > latest => {
                return Err(Failure::TryLater(format!(
                    "block {first} is not final yet: the service's latest finalized block is {latest}; try again later"
                )));
            }
            Start::At(first) => first,
            Start::After(last) if last > latest => {
                return Err(Failure::Conflict(format!(
                    "the service's latest finalized block is {latest}, but block {last} is already written: the \
                    service was restored, lags behind, or is a different one; nothing was written. Try again later, or \
                    start over with --reset"
                )));
            }
            Start::After(last) if last == latest => return Ok(Self { first: latest, count: 0 }),
            Start::After(last) => last.next(),
        };
        let behind = (latest.get() - first.get()).saturating_add(1);
        Ok(Self { first, count: behind.min(blocks_max) })
    }

    /// How many blocks there are.
    pub(super) const fn count(self) -> u64 {
        self.count
    }

    /// Their numbers, in order.
    pub(super) fn blocks(self) -> impl Iterator<Item = BlockNumber> {
        (0..self.count).map(move |offset| BlockNumber::new(self.first.get() + offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: fn(u64) -> BlockNumber = BlockNumber::new;

    #[test]
    fn run_starts_after_the_cursor_and_ends_at_latest_or_maximum() {
        // start, latest, most, first, count
        let table = [
            (Start::Latest, 500, 100, 500, 1),
            (Start::Latest, 0, 1, 0, 1),
            (Start::At(N(500)), 500, 100, 500, 1),
            (Start::At(N(0)), 500, 100, 0, 100),
            (Start::At(N(491)), 500, 100, 491, 10),
            (Start::After(N(500)), 500, 100, 500, 0),
            (Start::After(N(499)), 500, 100, 500, 1),
            (Start::After(N(400)), 500, 100, 401, 100),
            (Start::After(N(399)), 500, 100, 400, 100),
            (Start::After(N(10)), 500, 7, 11, 7),
            (Start::At(N(0)), u64::MAX, 100, 0, 100),
            (Start::After(N(u64::MAX)), u64::MAX, 100, u64::MAX, 0),
            (Start::After(N(u64::MAX - 1)), u64::MAX, 100, u64::MAX, 1),
        ];
        for (start, latest, blocks_max, first, count) in table {
            let plan = Plan::make(start, N(latest), blocks_max).unwrap();
            assert_eq!((plan.first, plan.count()), (N(first), count), "{start:?} {latest} {blocks_max}");
            let blocks: Vec<_> = plan.blocks().collect();
            assert_eq!(u64::try_from(blocks.len()).unwrap(), count);
            assert!(blocks.iter().all(|block| *block <= N(latest)) && blocks.is_sorted());
        }
    }

    #[test]
    fn service_behind_the_cursor_is_not_followed() {
        let failure = Plan::make(Start::After(N(501)), N(500), 100).unwrap_err();
        assert!(matches!(&failure, Failure::Conflict(text) if text.contains("500") && text.contains("501")));
    }

    #[test]
    fn future_block_is_left_for_later() {
        assert!(matches!(Plan::make(Start::At(N(501)), N(500), 100), Err(Failure::TryLater(_))));
    }
}
