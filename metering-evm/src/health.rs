//! Whether a source works: logged when that changes, and exported for monitoring.
//!
//! Without this, the failure of one of several sources is invisible until too few are left.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long before a source that keeps failing is logged again.
const SAY_AGAIN_AFTER: Duration = Duration::from_secs(15 * 60);

/// The known state of a source.
#[derive(Debug, Default)]
pub(crate) struct SourceHealth(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    problem: Option<String>,
    newest_block: Option<u64>,
    said_at: Option<Instant>,
    /// Whether the last log entry was about a failure.
    said_failing: bool,
}

/// News about a source, for the operator's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    None,
    Failing,
    Working,
}

impl SourceHealth {
    /// A request failed.
    pub(crate) fn failed(&self, problem: &str, now: Instant) -> News {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.problem = Some(problem.to_owned());
        if known.said_at.is_some_and(|at| now.duration_since(at) < SAY_AGAIN_AFTER) {
            return News::None;
        }
        (known.said_at, known.said_failing) = (Some(now), true);
        News::Failing
    }

    /// A request succeeded.
    pub(crate) fn worked(&self) -> News {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.problem = None;
        if std::mem::take(&mut known.said_failing) { News::Working } else { News::None }
    }

    /// Its newest block, as it reported it.
    pub(crate) fn has_block(&self, newest: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).newest_block = Some(newest);
    }

    /// Why its last request failed, if it did, and its newest block.
    pub(crate) fn known(&self) -> (Option<String>, Option<u64>) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (known.problem.clone(), known.newest_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_source_is_said_once_a_quarter_of_an_hour_and_when_it_works_again() {
        let (health, start) = (SourceHealth::default(), Instant::now());
        // seconds, whether it failed, news
        let table = [
            (0, false, News::None),
            (1, true, News::Failing),
            (2, true, News::None),
            (3, false, News::Working),
            (4, false, News::None),
            (5, true, News::None),
            (6, false, News::None),
            (901, true, News::Failing),
            (1_800, true, News::None),
            (1_801, true, News::Failing),
        ];
        for (seconds, fails, news) in table {
            let now = start + Duration::from_secs(seconds);
            let said = if fails { health.failed("timed out", now) } else { health.worked() };
            assert_eq!(said, news, "after {seconds} s");
            assert_eq!(health.known().0.is_some(), fails, "after {seconds} s");
        }
    }

    #[test]
    fn newest_block_of_a_failing_source_stays_known() {
        let health = SourceHealth::default();
        assert_eq!(health.known(), (None, None));
        health.has_block(7);
        let _ = health.failed("timed out", Instant::now());
        assert_eq!(health.known(), (Some("timed out".to_owned()), Some(7)));
    }
}
