//! Waits for a time of day at which a test does not straddle two minutes or days.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use metering_core::{Clock, SystemClock};

/// Returns when the current calendar minute (and so UTC day) has at least `room` left.
pub(crate) fn minute_with(room: Duration) {
    assert!(room < Duration::from_secs(60));
    let now = SystemClock.now();
    if now.saturating_add(room).minute() != now.minute() {
        let next_minute_millis = (now.minute() + 1) * 60_000;
        let wait = u64::try_from(next_minute_millis - now.unix_millis()).unwrap();
        std::thread::sleep(Duration::from_millis(wait + 20));
    }
}

/// Returns when no midnight (UTC) comes within two minutes.
pub(crate) fn away_from_midnight() {
    let now = SystemClock.now();
    let day = now.saturating_add(Duration::from_secs(120)).day();
    if day != now.day() {
        let rest = day.start().unix_millis() - now.unix_millis();
        std::thread::sleep(Duration::from_millis(u64::try_from(rest + 20).unwrap_or(0)));
    }
}

/// Repeats a test that waits for a [minute](minute_with) once if it fails: a busy machine may have taken longer.
pub(crate) fn in_one_minute(test: impl Fn()) {
    let began = SystemClock.now().minute();
    if let Err(panic) = catch_unwind(AssertUnwindSafe(&test)) {
        if SystemClock.now().minute() == began {
            resume_unwind(panic);
        }
        test();
    }
}
