//! The default number of confirmations of a chain: as many blocks as it makes in 30 seconds.
//!
//! The block time is measured from the timestamps of the newest block and of two earlier ones. Timestamps are whole
//! seconds, so a chain with several blocks per second has to be measured over many blocks.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use metering_core::chains::ChainError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::block::Head;
use crate::call::Call;
use crate::encoding::{Height, Quantity};
use crate::failure::Failure;
use crate::results::BatchResults;
use crate::source::Source;

/// How old a payment should be before it is credited. This must be less than the time that a claim waits.
const CREDITED_AFTER_SECONDS: u64 = 30;
/// Minimum number of confirmations: the newest block is replaced too often to be trusted.
pub(crate) const CONFIRMATIONS_MIN: u32 = 2;
/// Maximum number of confirmations: a chain with more than ten blocks per second is treated as if it had ten.
const CONFIRMATIONS_MAX: u32 = 300;
/// How many blocks back the block time is measured. The slower of the two results counts: otherwise, after a chain has
/// slowed down, a payment would take longer to confirm than customers wait.
const BLOCKS_BACK: [u64; 2] = [20, 100];
/// How long a measurement is used.
const MAX_AGE: Duration = Duration::from_secs(60);
/// How long a measurement of a young chain is used: its first blocks say little about the next.
const MAX_AGE_WHEN_YOUNG: Duration = Duration::from_secs(5);

/// A block's number and its timestamp in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    number: u64,
    seconds: u64,
}

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockTime {
    /// How many blocks the chain makes in [`CREDITED_AFTER_SECONDS`], within the bounds.
    pub(crate) confirmations: NonZeroU32,
    /// Whether the chain has fewer blocks than the measurement needs.
    is_young: bool,
}

/// The newest block's timestamp at one source, in seconds since 1970.
pub(crate) async fn newest_seconds(source: &Source) -> Result<u64, Failure> {
    Ok(newest(source).await?.seconds)
}

async fn newest(source: &Source) -> Result<Stamp, Failure> {
    let latest = [Call::tagged_block("latest")];
    let newest = source.send_batch(&latest, |results| {
        let head: Option<Head> = results.next()?;
        head.as_ref().map(stamp).ok_or(Failure::NotYet("latest"))
    });
    newest.await
}

/// Measures the block time at one source.
pub(crate) async fn measure(source: &Source) -> Result<BlockTime, Failure> {
    let newest = newest(source).await?;
    // The first block's timestamp is arbitrary: often zero, or years before the second block's.
    let numbers = BLOCKS_BACK.map(|back| newest.number.saturating_sub(back).max(1));
    if newest.number <= 1 {
        return Ok(block_time(newest, &[]));
    }
    let calls = numbers.map(|number| Call::block(number, false));
    let earlier = source.send_batch(&calls, |results: &mut BatchResults<'_>| {
        let one = |number: &u64| {
            let head: Option<Head> = results.next()?;
            let head = head.ok_or(Failure::Behind(*number))?;
            head.block(Height(*number)).map(|_| stamp(&head))
        };
        numbers.iter().map(one).collect::<Result<Vec<_>, _>>()
    });
    Ok(block_time(newest, &earlier.await?))
}

fn stamp(head: &Head) -> Stamp {
    let (Height(number), Quantity(seconds)) = (head.number, head.timestamp);
    Stamp { number, seconds }
}

fn block_time(newest: Stamp, earlier: &[Stamp]) -> BlockTime {
    let fitting = earlier.iter().filter_map(|earlier| {
        let blocks = newest.number.checked_sub(earlier.number).filter(|blocks| *blocks > 0)?;
        let seconds = newest.seconds.saturating_sub(earlier.seconds).max(1);
        Some(u128::from(blocks) * u128::from(CREDITED_AFTER_SECONDS) / u128::from(seconds))
    });
    let confirmations = fitting.min().map_or(CONFIRMATIONS_MIN, |blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
    let confirmations = confirmations.clamp(CONFIRMATIONS_MIN, CONFIRMATIONS_MAX);
    BlockTime {
        confirmations: NonZeroU32::new(confirmations).unwrap_or(NonZeroU32::MIN),
        is_young: newest.number <= BLOCKS_BACK[1],
    }
}

/// The last measurement, and when it was made.
#[derive(Debug, Default)]
pub(crate) struct MeasuredConfirmations {
    measured: Mutex<Option<(Instant, BlockTime)>>,
    /// For readers that cannot wait; zero before the first measurement.
    last: AtomicU32,
}

impl MeasuredConfirmations {
    /// The last measurement's confirmations, no matter how old; `None` before the first measurement.
    pub(crate) fn last(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.last.load(Ordering::Relaxed))
    }

    /// The number of confirmations. Measures again if the last measurement is old; if that fails, keeps using the last
    /// one.
    pub(crate) async fn get<F>(&self, now: Instant, measure: impl FnOnce() -> F) -> Result<NonZeroU32, ChainError>
    where
        F: Future<Output = Result<BlockTime, ChainError>>,
    {
        let mut measured = self.measured.lock().await;
        let known = match *measured {
            Some((at, known)) => {
                let fresh = if known.is_young { MAX_AGE_WHEN_YOUNG } else { MAX_AGE };
                if now.saturating_duration_since(at) < fresh {
                    return Ok(known.confirmations);
                }
                Some(known)
            }
            None => None,
        };
        let found = match (measure().await, known) {
            (Ok(found), _) => found,
            (Err(error), Some(known)) => {
                tracing::debug!(%error, "could not measure the block time; using the last measurement");
                known
            }
            (Err(error), None) => return Err(error),
        };
        if known.is_none_or(|known| known.confirmations != found.confirmations) {
            tracing::debug!(confirmations = found.confirmations, "measured the block time");
        }
        *measured = Some((now, found));
        self.last.store(found.confirmations.get(), Ordering::Relaxed);
        Ok(found.confirmations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of `blocks` blocks: the last ones `last_millis` apart, all before them `millis` apart.
    fn stamps(blocks: u64, millis: u64, last: u64, last_millis: u64) -> BlockTime {
        let time = |number: u64| {
            let slow = number.saturating_sub(blocks.saturating_sub(last));
            1_800_000_000 + ((number - slow) * millis + slow * last_millis) / 1000
        };
        let stamp = |number| Stamp { number, seconds: time(number) };
        let earlier: Vec<_> = BLOCKS_BACK.iter().map(|back| stamp(blocks.saturating_sub(*back).max(1))).collect();
        block_time(stamp(blocks), if blocks <= 1 { &[] } else { &earlier })
    }

    #[test]
    fn confirmations_cover_thirty_seconds() {
        // blocks, milliseconds between them, confirmations
        let table = [
            (1_000, 1_000, 30),
            (1_000, 2_000, 15),
            (1_000, 12_000, 2),
            (1_000, 13_000, 2),
            (1_000, 14_999, 2),
            (1_000, 60_000, 2),
            (1_000, 600_000, 2),
            (1_000, 3_000, 10),
            (1_000, 250, 120),
            (1_000, 100, 300),
            (1_000, 10, 300),
            (1_000, 0, 300),
            // Young chains: measured over all blocks but the first.
            (0, 1_000, 2),
            (1, 1_000, 2),
            (2, 1_000, 30),
            (2, 0, 30),
            (11, 2_000, 15),
        ];
        for (blocks, millis, confirmations) in table {
            let found = stamps(blocks, millis, 0, 0);
            assert_eq!(found.confirmations.get(), confirmations, "{blocks} blocks, {millis} ms");
            assert_eq!(found.is_young, blocks <= 100);
        }
    }

    #[test]
    fn slowed_chain_is_measured_by_its_last_blocks() {
        // A development chain that makes blocks instantly, and then one every 12 seconds.
        assert_eq!(stamps(1_000, 0, 20, 12_000).confirmations.get(), 2);
        // A chain that became faster is measured over the longer range, until that is fast too.
        assert_eq!(stamps(1_000, 2_000, 50, 1_000).confirmations.get(), 20);
    }

    #[test]
    fn a_clock_that_goes_backwards_overflows_nothing() {
        let newest = Stamp { number: u64::MAX, seconds: 0 };
        assert_eq!(block_time(newest, &[Stamp { number: 1, seconds: u64::MAX }]).confirmations.get(), 300);
        assert_eq!(block_time(Stamp { number: 5, seconds: 9 }, &[newest]).confirmations.get(), 2);
    }

    #[tokio::test]
    async fn measurement_is_cached_and_survives_errors() {
        let confirmations = MeasuredConfirmations::default();
        let of = |count| BlockTime { confirmations: NonZeroU32::new(count).unwrap(), is_young: false };
        let down = || async { Err(ChainError::Unavailable("down".to_owned())) };
        let start = Instant::now();
        let later = |minutes: u32| start + MAX_AGE * minutes;
        assert!(confirmations.get(start, down).await.is_err(), "there is no measurement yet");
        assert_eq!(confirmations.last(), None);
        assert_eq!(confirmations.get(start, || async { Ok(of(15)) }).await.unwrap().get(), 15);
        assert_eq!(
            confirmations.get(start, || async { Ok(of(30)) }).await.unwrap().get(),
            15,
            "the measurement is fresh"
        );
        assert_eq!(confirmations.get(later(1), down).await.unwrap().get(), 15);
        assert_eq!(confirmations.last().unwrap().get(), 15);
        assert_eq!(confirmations.get(later(2), || async { Ok(of(30)) }).await.unwrap().get(), 30);
    }
}
