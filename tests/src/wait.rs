//! Waits for a condition, with a timeout.

use std::time::{Duration, Instant};

/// How long to wait for something that should take only a moment.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    until_within(TIMEOUT, what, is_so);
}

/// The same for what takes longer by design.
#[track_caller]
pub fn until_within(timeout: Duration, what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < timeout, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
