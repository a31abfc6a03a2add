//! Pauses between tries, where the service names none: each twice as long as the one before, up to a limit.

use std::time::Duration;

/// The first pause, and the shortest that there is, also where the service names one.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);
/// The longest pause. Longer ones are only those that the service names.
const LONGEST: Duration = Duration::from_secs(30);

/// Growing pauses.
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
