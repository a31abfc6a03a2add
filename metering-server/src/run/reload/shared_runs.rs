//! One run after the other: building what serves a catalogue takes memory for all of its routes.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};

/// Runs whose results are `T`: one at a time, and shared by all who wait for it.
#[derive(Debug)]
pub(super) struct SharedRuns<T> {
    /// Held during a run. The number and the result of the last one.
    last: Mutex<Option<(u64, T)>>,
    /// How many runs have begun.
    begun: AtomicU64,
}

/// A turn, for callers that need no result.
#[must_use]
pub(super) struct RunGuard<'t, T>(#[expect(dead_code, reason = "held")] MutexGuard<'t, Option<(u64, T)>>);

impl<T: Clone> SharedRuns<T> {
    pub(super) fn new() -> Self {
        Self { last: Mutex::new(None), begun: AtomicU64::new(0) }
    }

    /// Runs `run` when no other run is in progress. If another run began after this call and has ended, returns its
    /// result: of many waiting callers, one runs for all.
    pub(super) async fn share(&self, run: impl Future<Output = T>) -> T {
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some((number, result)) = &*last
            && *number > before
        {
            return result.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let result = run.await;
        *last = Some((number, result.clone()));
        result
    }

    /// Waits for its turn.
    pub(super) async fn turn(&self) -> RunGuard<'_, T> {
        RunGuard(self.last.lock().await)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn callers_that_wait_share_the_next_run() {
        let (turns, runs) = (Arc::new(SharedRuns::new()), Arc::<AtomicU64>::default());
        let call = || {
            let (turns, runs) = (Arc::clone(&turns), Arc::clone(&runs));
            tokio::spawn(async move {
                let run = async {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    runs.fetch_add(1, Ordering::SeqCst)
                };
                turns.share(run).await
            })
        };
        let first = call();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let others: Vec<_> = (0..32).map(|_| call()).collect();
        assert_eq!(first.await.unwrap(), 0);
        for other in others {
            assert_eq!(other.await.unwrap(), 1, "not the run that had begun before the call");
        }
        assert_eq!((call().await.unwrap(), runs.load(Ordering::SeqCst)), (2, 3));
    }
}
