//! Whether an upstream should get requests: it is out while it is ejected, or while its health checks fail.
//!
//! Workers read and write this without a lock. An upstream is ejected after failures in a row, for a time that grows if
//! it fails again soon. When it is back, one more failure ejects it again, and one success clears its failures.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The longest ejection, unless the first one is longer.
const LONGEST: Duration = Duration::from_secs(300);

/// How many checks in a row must fail until an upstream is out, and succeed until it is back.
const CHECKS: u32 = 2;

/// The condition of an upstream.
#[derive(Debug)]
pub(super) struct Condition {
    since: Instant,
    eject_after: u32,
    eject_time: Duration,
    /// Failures in a row.
    failures: AtomicU32,
    /// How often it was ejected without a break, and until when the last time; 0 for never.
    ejections: AtomicU32,
    ejected_until: AtomicU64,
    /// Whether its checks fail.
    is_unhealthy: AtomicBool,
    /// How many checks in a row had another result than those before.
    other_checks: AtomicU32,
}

impl Condition {
    /// In good condition. `eject_after` is how many failures in a row eject it, 0 for never, and `eject_time` is how long
    /// the first ejection takes.
    pub(super) fn new(eject_after: u32, eject_time: Duration) -> Self {
        Self {
            since: Instant::now(),
            eject_after,
            eject_time,
            failures: AtomicU32::new(0),
            ejections: AtomicU32::new(0),
            ejected_until: AtomicU64::new(0),
            is_unhealthy: AtomicBool::new(false),
            other_checks: AtomicU32::new(0),
        }
    }

    /// Whether others should get its requests.
    pub(super) fn is_out(&self) -> bool {
        self.is_unhealthy() || self.is_ejected()
    }

    /// Whether its checks fail.
    pub(super) fn is_unhealthy(&self) -> bool {
        self.is_unhealthy.load(Ordering::Relaxed)
    }

    /// Whether it has failed too often.
    pub(super) fn is_ejected(&self) -> bool {
        let until = self.ejected_until.load(Ordering::Relaxed);
        until != 0 && self.now() < until
    }

    /// It has served a request.
    pub(super) fn succeeded(&self) {
        // Written only if it changes, as all workers read it.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// It has not served a request. Returns for how long it is ejected, if that is due to this failure.
    pub(super) fn failed(&self) -> Option<Duration> {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (until, now) = (self.ejected_until.load(Ordering::Relaxed), self.now());
        if self.eject_after == 0 || failures < self.eject_after || now < until {
            return None;
        }
        let before = self.ejections.load(Ordering::Relaxed);
        let again_within = millis(self.ejection(before));
        let ejections = if until != 0 && now - until <= again_within { before.saturating_add(1) } else { 1 };
        let ejection = self.ejection(ejections);
        let new_until = now.saturating_add(millis(ejection));
        // Of several requests that fail at the same time, one ejects it.
        self.ejected_until.compare_exchange(until, new_until, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        self.ejections.store(ejections, Ordering::Relaxed);
        Some(ejection)
    }

    /// A check has succeeded or failed. Returns whether it is healthy now, if that has changed.
    pub(super) fn checked(&self, succeeded: bool) -> Option<bool> {
        if succeeded != self.is_unhealthy() {
            self.other_checks.store(0, Ordering::Relaxed);
            return None;
        }
        if self.other_checks.fetch_add(1, Ordering::Relaxed) + 1 < CHECKS {
            return None;
        }
        self.other_checks.store(0, Ordering::Relaxed);
        self.is_unhealthy.store(!succeeded, Ordering::Relaxed);
        Some(succeeded)
    }

    /// How long its `number`th ejection in succession takes.
    fn ejection(&self, number: u32) -> Duration {
        self.eject_time.saturating_mul(number).min(LONGEST.max(self.eject_time))
    }

    /// Milliseconds since the beginning.
    fn now(&self) -> u64 {
        millis(self.since.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    /// Fails until it is ejected, and returns after how many failures, and for how long.
    fn eject(condition: &Condition) -> (u32, u64) {
        (1..100).find_map(|failures| condition.failed().map(|time| (failures, time.as_secs()))).expect("it is ejected")
    }

    #[tokio::test(start_paused = true)]
    async fn failures_in_a_row_eject_it_for_a_time() {
        let condition = Condition::new(3, TIME);
        assert_eq!((condition.failed(), condition.failed()), (None, None));
        condition.succeeded();
        assert!(!condition.is_out());
        assert_eq!(eject(&condition), (3, 30));
        assert!(condition.is_ejected() && condition.is_out());
        assert_eq!(condition.failed(), None, "it is ejected already");
        advance(TIME - Duration::from_millis(1)).await;
        assert!(condition.is_out());
        advance(Duration::from_millis(1)).await;
        assert!(!condition.is_out());
    }

    #[tokio::test(start_paused = true)]
    async fn ejections_grow_until_it_has_worked_for_as_long() {
        let condition = Condition::new(2, TIME);
        assert_eq!(eject(&condition), (2, 30));
        for seconds in [60, 90] {
            advance(Duration::from_secs(seconds - 30)).await;
            assert_eq!(eject(&condition), (1, seconds), "one failure is enough after an ejection");
        }
        advance(Duration::from_secs(90)).await;
        condition.succeeded();
        assert_eq!(eject(&condition), (2, 120), "a success clears the failures");
        advance(Duration::from_secs(120 + 121)).await;
        condition.succeeded();
        assert_eq!(eject(&condition), (2, 30), "it has worked for longer than it was ejected");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_grows_to_five_minutes_and_eject_after_zero_is_never() {
        let condition = Condition::new(1, TIME);
        let mut last = 0;
        for _ in 0..20 {
            last = eject(&condition).1;
            advance(Duration::from_secs(last)).await;
        }
        assert_eq!(last, 300);
        let long = Condition::new(1, Duration::from_secs(3_600));
        assert_eq!(eject(&long).1, 3_600);
        let never = Condition::new(0, TIME);
        assert!((0..100).all(|_| never.failed().is_none()) && !never.is_out());
    }

    #[tokio::test]
    async fn two_checks_in_a_row_change_its_health() {
        let condition = Condition::new(0, TIME);
        // whether the check succeeds, whether its health changes to that
        let checks = [
            (true, false),
            (false, false),
            (true, false),
            (false, false),
            (false, true),
            (false, false),
            (true, false),
            (false, false),
            (true, false),
            (true, true),
        ];
        for (number, (succeeds, changes)) in checks.into_iter().enumerate() {
            assert_eq!(condition.checked(succeeds), changes.then_some(succeeds), "check {number}");
        }
        assert!(!condition.is_out());
    }
}
