//! Detects stalled chains. Payments on a chain whose watcher makes no progress are not credited.
//!
//! A single failed round is normal and not worth reporting. `/ready` and the log report a chain only when it makes no
//! progress for a while, whatever the reason: its RPC fails, its blocks cannot be read, or it produces none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The progress of every watched chain.
#[derive(Debug)]
pub(crate) struct ChainProgress {
    /// A chain without progress for this long counts as stalled; zero means never.
    patience: Duration,
    chains: Mutex<BTreeMap<u64, Standing>>,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    block: Option<u64>,
    since: Instant,
    stalled: bool,
}

/// How a round changed a chain's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The status is unchanged.
    None,
    /// The chain has stalled.
    Stalled,
    /// A stalled chain makes progress again.
    Resumed,
}

impl ChainProgress {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, chains: Mutex::default() }
    }

    /// Records how far a round got; `None` if the round failed.
    pub(crate) fn note(&self, chain_id: u64, block: Option<u64>, now: Instant) -> Change {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = chains.entry(chain_id).or_insert(Standing { block: None, since: now, stalled: false });
        if block > standing.block {
            let resumed = standing.stalled;
            *standing = Standing { block, since: now, stalled: false };
            return if resumed { Change::Resumed } else { Change::None };
        }
        let overdue = !self.patience.is_zero() && now.duration_since(standing.since) >= self.patience;
        if overdue && !standing.stalled {
            standing.stalled = true;
            return Change::Stalled;
        }
        Change::None
    }

    /// A stalled chain, if there is one.
    pub(crate) fn stalled(&self) -> Option<u64> {
        let chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        chains.iter().find(|(_, standing)| standing.stalled).map(|(chain_id, _)| *chain_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_stands_still_is_told_of_once_and_again_when_it_goes_on() {
        let progress = ChainProgress::new(Duration::from_secs(60));
        let start = Instant::now();
        // seconds, block reached, change, stalled afterwards
        let table = [
            (0, Some(5), Change::None, false),
            (30, Some(5), Change::None, false),
            (59, None, Change::None, false),
            (60, None, Change::Stalled, true),
            (70, None, Change::None, true),
            (80, Some(5), Change::None, true),
            (90, Some(6), Change::Resumed, false),
            (149, Some(6), Change::None, false),
            (150, Some(6), Change::Stalled, true),
        ];
        for (seconds, block, change, stalled) in table {
            assert_eq!(progress.note(7, block, start + Duration::from_secs(seconds)), change, "after {seconds} s");
            assert_eq!(progress.stalled(), stalled.then_some(7), "after {seconds} s");
        }
        assert_eq!(progress.note(8, Some(1), start), Change::None, "each chain has its own state");
    }

    #[test]
    fn a_chain_that_never_could_be_read_stalls_and_zero_means_never() {
        let start = Instant::now();
        let later = start + Duration::from_secs(3_600);
        let progress = ChainProgress::new(Duration::from_secs(60));
        assert_eq!(progress.note(7, None, start), Change::None);
        assert_eq!(progress.note(7, None, later), Change::Stalled);
        let patient = ChainProgress::new(Duration::ZERO);
        assert_eq!(patient.note(7, None, start), Change::None);
        assert_eq!((patient.note(7, None, later), patient.stalled()), (Change::None, None));
    }
}
