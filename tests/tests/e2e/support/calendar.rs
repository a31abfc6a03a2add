//! Waits for a time of day at which a test does not straddle two minutes or days.

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

/// Returns when the current UTC day has at least `room` left.
pub(crate) fn day_with(room: Duration) {
    let now = SystemClock.now();
    if now.saturating_add(room).day() != now.day() {
        minute_with(Duration::from_secs(1));
        let rest = now.day().unix_days() * 86_400_000 + 86_400_000 - SystemClock.now().unix_millis();
        std::thread::sleep(Duration::from_millis(u64::try_from(rest + 20).unwrap_or(0)));
    }
}
