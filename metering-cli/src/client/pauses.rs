//! Exponential backoff for when the service does not say how long to wait: each pause is twice as long as the one
//! before, up to a limit.

use std::time::Duration;

/// The first and shortest pause, even if the service asks for a shorter one.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);
/// The longest pause, unless the service asks for a longer one.
const LONGEST: Duration = Duration::from_secs(30);

/// The backoff of one request.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) const fn new() -> Self {
        Self { next: SHORTEST }
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause
    }
}
