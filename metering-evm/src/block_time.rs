//! How many confirmations a chain needs by default: as many blocks as it makes in a given time.
//!
//! The block time is measured from the timestamps of the newest block and of two before it. Timestamps are whole
//! seconds, so that a chain with several blocks a second is measured over many of them.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use metering_core::ChainError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::answers::Answers;
use crate::block::Head;
use crate::call::Call;
use crate::encoding::{Height, Quantity};
use crate::failure::Failure;
use crate::source::Source;

/// How old a payment should be before it is credited: less than a claim waits for it.
const CREDITED_AFTER_SECONDS: u64 = 30;
/// The fewest confirmations: the newest block alone is replaced too often.
pub(crate) const CONFIRMATIONS_MIN: u32 = 2;
/// The most: a chain with more than ten blocks a second is taken to have ten.
const CONFIRMATIONS_MAX: u32 = 300;
/// How far back the block time is measured. Of the two, the slower one counts: a chain that has slowed down would
/// otherwise keep customers waiting for longer than they do.
const BLOCKS_BACK: [u64; 2] = [20, 100];
/// How long a measurement is used.
const FRESH: Duration = Duration::from_secs(60);
/// How long one of a young chain is used, whose first blocks say little about the next.
const FRESH_WHEN_YOUNG: Duration = Duration::from_secs(5);

/// A block's number and its timestamp in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    number: u64,
    seconds: u64,
}

/// What the measured block time means for payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockTime {
    /// How many blocks are made in [`CREDITED_AFTER_SECONDS`], within the bounds.
    pub(crate) confirmations: NonZeroU32,
    /// Whether there were fewer blocks than the measurement wants.
    is_young: bool,
}

/// Measures the block time at one source.
pub(crate) async fn measure(source: &Source) -> Result<BlockTime, Failure> {
    let latest = [Call::tagged_block("latest")];
    let newest = source.ask(&latest, |answers| {
        let head: Option<Head> = answers.next()?;
        head.as_ref().map(stamp).ok_or(Failure::NotYet("latest"))
    });
    let newest = newest.await?;
    // The first block's timestamp may be any: often zero, or years before the second.
    let numbers = BLOCKS_BACK.map(|back| newest.number.saturating_sub(back).max(1));
    if newest.number <= 1 {
        return Ok(block_time(newest, &[]));
    }
    let calls = numbers.map(|number| Call::block(number, false));
    let earlier = source.ask(&calls, |answers: &mut Answers<'_>| {
        let one = |number: &u64| {
            let head: Option<Head> = answers.next()?;
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
    /// The last measurement's confirmations, however old; `None` before the first.
    pub(crate) fn last(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.last.load(Ordering::Relaxed))
    }

    /// The number of confirmations, measured again if the last measurement is old. One that fails leaves the last one
    /// in use.
    pub(crate) async fn get<F>(&self, now: Instant, measure: impl FnOnce() -> F) -> Result<NonZeroU32, ChainError>
    where
        F: Future<Output = Result<BlockTime, ChainError>>,
    {
        let mut measured = self.measured.lock().await;
        let known = match *measured {
            Some((at, known)) => {
                let fresh = if known.is_young { FRESH_WHEN_YOUNG } else { FRESH };
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
                tracing::debug!(%error, "the block time could not be measured; the last measurement stays in use");
                known
            }
            (Err(error), None) => return Err(error),
        };
        if known.is_none_or(|known| known.confirmations != found.confirmations) {
            tracing::debug!(confirmations = found.confirmations, "the block time was measured");
        }
        *measured = Some((now, found));
        self.last.store(found.confirmations.get(), Ordering::Relaxed);
        Ok(found.confirmations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of `blocks` blocks, the last ones so many milliseconds apart and all before them as many.
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
    fn as_many_blocks_count_as_fit_in_thirty_seconds() {
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
            // Young chains: what there is, without the first block.
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
    fn a_chain_that_slowed_down_is_measured_by_its_last_blocks() {
        // A development chain makes blocks at once, then one every 12 seconds.
        assert_eq!(stamps(1_000, 0, 20, 12_000).confirmations.get(), 2);
        // One that became faster is measured over the longer way, until that is fast as well.
        assert_eq!(stamps(1_000, 2_000, 50, 1_000).confirmations.get(), 20);
    }

    #[test]
    fn a_clock_that_goes_backwards_overflows_nothing() {
        let newest = Stamp { number: u64::MAX, seconds: 0 };
        assert_eq!(block_time(newest, &[Stamp { number: 1, seconds: u64::MAX }]).confirmations.get(), 300);
        assert_eq!(block_time(Stamp { number: 5, seconds: 9 }, &[newest]).confirmations.get(), 2);
    }

    #[tokio::test]
    async fn a_measurement_is_used_for_a_while_and_kept_through_trouble() {
        let confirmations = MeasuredConfirmations::default();
        let of = |count| BlockTime { confirmations: NonZeroU32::new(count).unwrap(), is_young: false };
        let down = || async { Err(ChainError::Unavailable("down".to_owned())) };
        let begun = Instant::now();
        let later = |minutes: u32| begun + FRESH * minutes;
        assert!(confirmations.get(begun, down).await.is_err(), "nothing is known yet");
        assert_eq!(confirmations.last(), None);
        assert_eq!(confirmations.get(begun, || async { Ok(of(15)) }).await.unwrap().get(), 15);
        assert_eq!(confirmations.get(begun, || async { Ok(of(30)) }).await.unwrap().get(), 15, "it is fresh");
        assert_eq!(confirmations.get(later(1), down).await.unwrap().get(), 15);
        assert_eq!(confirmations.last().unwrap().get(), 15);
        assert_eq!(confirmations.get(later(2), || async { Ok(of(30)) }).await.unwrap().get(), 30);
    }
}
