//! A clock that does not advance.

use metering_core::{Clock, Timestamp};

/// Always shows the same time, so nothing becomes too old.
#[derive(Debug)]
pub(crate) struct StoppedClock(pub(crate) Timestamp);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
