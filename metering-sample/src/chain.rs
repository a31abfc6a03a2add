//! The sample chain: when blocks are mined and which are final.
//!
//! Block n is mined at genesis + n × block time. So the height depends only on the clock, and all servers and restarts
//! agree on it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use metering_core::{Clock, Timestamp};
use serde::Serialize;

/// 2017-10-01T00:00:00Z. With twelve seconds per block, heights in late 2026 are about 24 million, as on mainnet.
const GENESIS: Timestamp = Timestamp::from_unix_millis(1_506_816_000_000);

/// How many later blocks a block needs to be final: two epochs of 32 slots.
const FINALITY_DEPTH: u64 = 64;

/// A block's height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct BlockNumber(u64);

/// A final block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) number: BlockNumber,
    pub(crate) mined_at: Timestamp,
}

/// The chain, driven by a clock.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    clock: Arc<dyn Clock>,
    block_time_millis: i64,
}

impl BlockNumber {
    pub(crate) const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    #[must_use]
    pub(crate) const fn plus(self, blocks: u64) -> Self {
        Self(self.0.saturating_add(blocks))
    }

    /// The block this many blocks earlier, or the first block if there are fewer.
    #[must_use]
    pub(crate) const fn minus(self, blocks: u64) -> Self {
        Self(self.0.saturating_sub(blocks))
    }
}

impl Chain {
    /// A chain with this time between blocks: at least a millisecond, the clock's resolution.
    pub(crate) fn new(clock: Arc<dyn Clock>, block_time: Duration) -> Self {
        let block_time_millis = i64::try_from(block_time.as_millis()).unwrap_or(i64::MAX).max(1);
        Self { clock, block_time_millis }
    }

    /// The latest final block; none while the clock is before or just after genesis.
    pub(crate) fn finalized(&self) -> Option<Block> {
        let head = self.last_mined_by(self.clock.now())?;
        head.0.checked_sub(FINALITY_DEPTH).map(|number| self.block(BlockNumber(number)))
    }

    /// The block with this number, which the caller knows to be final.
    pub(crate) fn block(&self, number: BlockNumber) -> Block {
        Block { number, mined_at: self.mined_at(number) }
    }

    /// The time until a block is final; zero if it is.
    pub(crate) fn until_final(&self, number: BlockNumber) -> Duration {
        let final_at = self.mined_at(number.plus(FINALITY_DEPTH));
        let millis = final_at.unix_millis().saturating_sub(self.clock.now().unix_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// The last block mined at or before an instant; none before genesis.
    pub(crate) fn last_mined_by(&self, at: Timestamp) -> Option<BlockNumber> {
        let age = at.unix_millis().saturating_sub(GENESIS.unix_millis());
        u64::try_from(age.div_euclid(self.block_time_millis)).ok().map(BlockNumber)
    }

    /// The first block mined at or after an instant.
    pub(crate) fn first_mined_from(&self, at: Timestamp) -> BlockNumber {
        let before = at.saturating_sub(Duration::from_millis(1));
        self.last_mined_by(before).map_or(BlockNumber(0), |block| block.plus(1))
    }

    /// The blocks of the last `seconds` up to and including `latest`.
    pub(crate) fn last_seconds(&self, latest: Block, seconds: u64) -> RangeInclusive<BlockNumber> {
        let opens_after = latest.mined_at.saturating_sub(Duration::from_secs(seconds));
        let first = self.last_mined_by(opens_after).map_or(BlockNumber(0), |block| block.plus(1));
        first.min(latest.number)..=latest.number
    }

    /// How many whole seconds this many blocks take.
    pub(crate) fn seconds_of(&self, blocks: u64) -> u64 {
        self.block_time_millis.unsigned_abs().saturating_mul(blocks) / 1_000
    }

    fn mined_at(&self, number: BlockNumber) -> Timestamp {
        let number = i64::try_from(number.0).unwrap_or(i64::MAX);
        let age = number.saturating_mul(self.block_time_millis);
        Timestamp::from_unix_millis(GENESIS.unix_millis().saturating_add(age))
    }
}

/// The number of blocks in a range.
pub(crate) fn count(blocks: &RangeInclusive<BlockNumber>) -> u64 {
    match blocks.end().0.checked_sub(blocks.start().0) {
        Some(distance) => distance.saturating_add(1),
        None => 0,
    }
}

/// The block numbers in a range, in order.
pub(crate) fn numbers(blocks: RangeInclusive<BlockNumber>) -> impl Iterator<Item = BlockNumber> {
    (blocks.start().0..=blocks.end().0).map(BlockNumber)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ManualClock;

    fn chain_at(millis_after_genesis: i64, block_time: Duration) -> Chain {
        let now = Timestamp::from_unix_millis(GENESIS.unix_millis().saturating_add(millis_after_genesis));
        Chain::new(Arc::new(ManualClock::at(now)), block_time)
    }

    #[test]
    fn block_is_final_after_64_more_blocks() {
        const TWELVE: Duration = Duration::from_secs(12);
        // milliseconds after genesis, latest final block
        let table = [
            (i64::MIN, None),
            (-1, None),
            (0, None),
            (64 * 12_000 - 1, None),
            (64 * 12_000, Some(0)),
            (65 * 12_000 - 1, Some(0)),
            (65 * 12_000, Some(1)),
            (24_000_064 * 12_000, Some(24_000_000)),
        ];
        for (millis, number) in table {
            let finalized = chain_at(millis, TWELVE).finalized();
            assert_eq!(finalized.map(|block| block.number.get()), number, "{millis}");
        }
        let chain = chain_at(64 * 12_000 + 1, TWELVE);
        assert_eq!(chain.until_final(BlockNumber(0)), Duration::ZERO);
        assert_eq!(chain.until_final(BlockNumber(1)), Duration::from_millis(11_999));
    }

    #[test]
    fn instants_find_their_blocks() {
        let chain = chain_at(0, Duration::from_secs(12));
        let at = |millis: i64| Timestamp::from_unix_millis(GENESIS.unix_millis() + millis);
        // milliseconds after genesis, last mined by then, first mined from then
        let table = [
            (-1, None, 0),
            (0, Some(0), 0),
            (1, Some(0), 1),
            (11_999, Some(0), 1),
            (12_000, Some(1), 1),
            (12_001, Some(1), 2),
        ];
        for (millis, last, first) in table {
            assert_eq!(chain.last_mined_by(at(millis)), last.map(BlockNumber), "{millis}");
            assert_eq!(chain.first_mined_from(at(millis)), BlockNumber(first), "{millis}");
        }
    }

    #[test]
    fn a_window_holds_the_blocks_mined_within_it() {
        let chain = chain_at(0, Duration::from_secs(12));
        let latest = chain.block(BlockNumber(100));
        // seconds, first block
        let table =
            [(0, 100), (1, 100), (12, 100), (13, 99), (24, 99), (25, 98), (1_199, 1), (1_201, 0), (u64::MAX, 0)];
        for (seconds, first) in table {
            let window = chain.last_seconds(latest, seconds);
            assert_eq!(window, BlockNumber(first)..=BlockNumber(100), "{seconds}");
            assert_eq!(count(&window), 101 - first);
            assert_eq!(u64::try_from(numbers(window).count()).unwrap(), 101 - first);
        }
        assert_eq!(count(&(BlockNumber(5)..=BlockNumber(4))), 0);
        assert_eq!(count(&(BlockNumber(0)..=BlockNumber(u64::MAX))), u64::MAX);
    }

    #[test]
    fn odd_clocks_and_block_times_give_blocks_or_none() {
        for block_time in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(12), Duration::MAX] {
            for millis in [i64::MIN, -1, 0, 1, i64::MAX] {
                let chain = chain_at(millis, block_time);
                let finalized = chain.finalized();
                if let Some(block) = finalized {
                    assert_eq!(chain.until_final(block.number), Duration::ZERO);
                }
                for number in [0, 1, u64::MAX] {
                    chain.until_final(BlockNumber(number));
                    chain.last_seconds(chain.block(BlockNumber(number)), u64::MAX);
                }
            }
        }
    }
}
