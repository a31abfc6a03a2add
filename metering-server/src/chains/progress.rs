//! Detects stalled chains. Payments on a chain whose watcher makes no progress are not credited.
//!
//! A single failed round is normal and not worth reporting. `/ready` and the log report a chain only when it makes no
//! progress for a while, for any reason: its RPC fails, its blocks cannot be read, or it produces none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The progress of every watched chain.
#[derive(Debug)]
pub(crate) struct ChainProgress {
    /// A chain without progress for this long counts as stalled; with `None` none does.
    stalled_after: Option<Duration>,
    chains: Mutex<BTreeMap<u64, Status>>,
}

#[derive(Debug, Clone, Copy)]
struct Status {
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
    pub(crate) fn new(stalled_after: Option<Duration>) -> Self {
        Self { stalled_after, chains: Mutex::default() }
    }

    /// Records how far a round got; `None` if the round failed.
    pub(crate) fn record(&self, chain_id: u64, block: Option<u64>, now: Instant) -> Change {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let status = chains.entry(chain_id).or_insert(Status { block: None, since: now, stalled: false });
        if block > status.block {
            let resumed = status.stalled;
            *status = Status { block, since: now, stalled: false };
            return if resumed { Change::Resumed } else { Change::None };
        }
        let overdue = self.stalled_after.is_some_and(|limit| now.duration_since(status.since) >= limit);
        if overdue && !status.stalled {
            status.stalled = true;
            return Change::Stalled;
        }
        Change::None
    }

    /// A stalled chain, if there is one.
    pub(crate) fn stalled(&self) -> Option<u64> {
        let chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        chains.iter().find(|(_, status)| status.stalled).map(|(chain_id, _)| *chain_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_chain_is_reported_once_and_again_when_it_resumes() {
        let progress = ChainProgress::new(Some(Duration::from_secs(60)));
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
            assert_eq!(progress.record(7, block, start + Duration::from_secs(seconds)), change, "after {seconds} s");
            assert_eq!(progress.stalled(), stalled.then_some(7), "after {seconds} s");
        }
        assert_eq!(progress.record(8, Some(1), start), Change::None, "each chain has its own state");
    }

    #[test]
    fn an_unreadable_chain_stalls_unless_switched_off() {
        let start = Instant::now();
        let later = start + Duration::from_secs(3_600);
        let progress = ChainProgress::new(Some(Duration::from_secs(60)));
        assert_eq!(progress.record(7, None, start), Change::None);
        assert_eq!(progress.record(7, None, later), Change::Stalled);
        let never = ChainProgress::new(None);
        assert_eq!(never.record(7, None, start), Change::None);
        assert_eq!((never.record(7, None, later), never.stalled()), (Change::None, None));
    }
}
