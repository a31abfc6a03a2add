//! How fast a request's body has to arrive.
//!
//! Two rules, as in Apache's `mod_reqtimeout`: a maximum pause between two reads, and a minimum average rate after that
//! time. A slow but steady upload passes; one byte every few seconds does not.

use std::time::Duration;

use tokio::time::Instant;

/// The pace of bodies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The longest pause.
    pub(super) pause: Duration,
    /// The lowest average rate, in bytes per second, after one such pause; 0 for any.
    pub(super) min_rate: u64,
}

impl Pace {
    /// When the client is too slow, if nothing more arrives: it began at `started`, and has sent `received` bytes, the
    /// last of them at `last`.
    pub(super) fn deadline(&self, started: Instant, last: Instant, received: usize) -> Instant {
        let paused = last + self.pause;
        let received = u64::try_from(received).unwrap_or(u64::MAX);
        match received.saturating_mul(1_000).checked_div(self.min_rate) {
            // Half a century is long enough, and can be added to an instant.
            Some(millis) => paused.min(started + self.pause + Duration::from_millis(millis.min(1 << 40))),
            None => paused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn body_may_be_slow_but_neither_pause_nor_trickle() {
        let started = Instant::now();
        let after = |seconds| started + Duration::from_secs(seconds);
        // lowest rate, the last read in seconds, bytes received by then, the deadline in seconds
        let table: [(u64, u64, usize, u64); 8] = [
            (500, 0, 0, 15),
            (500, 10, 0, 15),
            (500, 14, 2_000, 19),
            (500, 14, 7_000, 29),
            (500, 600, 293_000, 601),
            (500, 600, 300_000, 615),
            (0, 600, 1, 615),
            (1, 600, usize::MAX, 615),
        ];
        for (min_rate, last, received, deadline) in table {
            let pace = Pace { pause: Duration::from_secs(15), min_rate };
            let computed = pace.deadline(started, after(last), received);
            assert_eq!(computed, after(deadline), "{min_rate} {last} {received}");
        }
    }
}
