//! How much of a response is still read for its report after its client has disconnected.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The most that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) time: Duration,
    pub(super) bytes: u64,
}

/// What may still be read of one response.
#[derive(Debug)]
pub(super) struct Rest {
    bounds: Bounds,
    /// When reading stops; `None` while the client is there.
    until: Option<Instant>,
}

impl Rest {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self { bounds, until: None }
    }

    /// Whether the client has disconnected.
    pub(super) const fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// The client has disconnected.
    pub(super) fn begin(&mut self) {
        self.until.get_or_insert_with(|| Instant::now() + self.bounds.time);
    }

    /// Resolves when the time is up.
    pub(super) async fn over(&self) {
        match self.until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Counts bytes that were read. Returns `false` when they are too many.
    pub(super) fn read(&mut self, bytes: usize) -> bool {
        if !self.has_begun() {
            return true;
        }
        let left = u64::try_from(bytes).ok().and_then(|bytes| self.bounds.bytes.checked_sub(bytes));
        self.bounds.bytes = left.unwrap_or_default();
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bounds_apply_once_the_client_has_gone() {
        let mut rest = Rest::new(Bounds { time: Duration::from_secs(60), bytes: 10 });
        assert!(rest.read(1_000), "the client is there");
        let over = tokio::time::timeout(Duration::from_hours(1), rest.over()).await;
        assert!(over.is_err(), "the client is there");
        rest.begin();
        assert!(rest.read(10));
        assert!(!rest.read(1));
        let started = Instant::now();
        rest.over().await;
        assert_eq!(started.elapsed(), Duration::from_secs(60));
    }
}
