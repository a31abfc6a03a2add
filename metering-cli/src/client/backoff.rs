//! Exponential backoff for when the service does not say how long to wait: each pause is twice as long as the one
//! before, up to a limit.

use std::time::Duration;

/// The first and shortest pause, even if the service asks for a shorter one.
pub(super) const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the service asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The backoff of one request.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { next: MIN_PAUSE }
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(MAX_PAUSE);
        pause
    }
}
