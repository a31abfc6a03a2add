//! Limits warnings that anyone, or any request, can cause: at most one a minute, with the number of suppressed ones.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two warnings.
const INTERVAL: Duration = Duration::from_secs(60);

/// When there was the last warning.
#[derive(Debug, Default)]
pub(crate) struct RareWarning {
    last: Option<Instant>,
    /// How many were left out since.
    unwarned: u64,
}

impl RareWarning {
    /// Whether to warn now: if so, returns how many warnings were left out before.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            self.unwarned += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unwarned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_a_minute_apart_and_name_those_between() {
        let (start, mut warning) = (Instant::now(), RareWarning::default());
        // seconds, whether there is a warning, and how many had none before it
        let table =
            [(0, Some(0)), (0, None), (1, None), (59, None), (60, Some(3)), (61, None), (119, None), (500, Some(2))];
        for (seconds, others) in table {
            assert_eq!(warning.due(start + Duration::from_secs(seconds)), others, "{seconds}");
        }
    }
}
