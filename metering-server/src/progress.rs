//! Whether the watched chains get on: a chain whose watcher stands still credits nobody.
//!
//! A round that fails is normal now and then and says little. What matters, to `/ready` and in the log, is that a chain
//! makes no progress for a while, whatever the reason: its RPC fails, its blocks cannot be read, or it makes none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How far every watched chain has come, and since when.
#[derive(Debug)]
pub(crate) struct ChainProgress {
    /// After how long without progress a chain counts as stalled; zero means never.
    patience: Duration,
    chains: Mutex<BTreeMap<u64, Standing>>,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    block: Option<u64>,
    since: Instant,
    stalled: bool,
}

/// What a round changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing to tell.
    None,
    /// It has made no progress for too long.
    Stalled,
    /// It stood still, and goes on.
    Resumed,
}

impl ChainProgress {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, chains: Mutex::default() }
    }

    /// Notes how far a chain has come after a round; `None` where the round failed.
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

    /// A chain that makes no progress, if there is one.
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
        // seconds, block that was reached, change, whether it is stalled then
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
        assert_eq!(progress.note(8, Some(1), start), Change::None, "each chain has its own");
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
