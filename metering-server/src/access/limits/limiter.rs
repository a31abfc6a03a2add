//! One quota, and how much of it each client has used.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;

use crate::config::Quota;

type Keyed<K, C> = RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// Applies one quota to each key separately; no limit when the quota is off.
pub(super) struct Limiter<K: Clone + Eq + Hash, C: Clock>(Option<Keyed<K, C>>);

impl<K: Clone + Eq + Hash, C: Clock> Limiter<K, C> {
    pub(super) fn new(quota: Quota, clock: C) -> Self {
        Self(quota.burst_and_interval().map(|(burst, interval)| {
            let quota = governor::Quota::with_period(interval).expect("a quota's bounds keep its interval above zero");
            RateLimiter::dashmap_with_clock(quota.allow_burst(burst), clock)
        }))
    }

    /// Allows one request per `interval` and key; no limit when the interval is zero.
    pub(super) fn spaced(interval: Duration, clock: C) -> Self {
        Self(governor::Quota::with_period(interval).map(|quota| RateLimiter::dashmap_with_clock(quota, clock)))
    }

    /// Counts one request of `who`. Refused requests do not count.
    ///
    /// # Errors
    /// The seconds until the next request is allowed, when the quota is used up.
    pub(super) fn check(&self, who: &K) -> Result<(), u64> {
        let Some(keyed) = &self.0 else { return Ok(()) };
        keyed.check_key(who).map_err(|refused| whole_seconds(refused.wait_time_from(keyed.clock().now())))
    }

    /// Forgets keys whose whole quota is available again.
    pub(super) fn forget_idle(&self) {
        if let Some(keyed) = &self.0 {
            keyed.retain_recent();
            keyed.shrink_to_fit();
        }
    }

    /// The number of keys remembered.
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, RateLimiter::len)
    }
}

/// Shows only the number of keys, since keys are personal data.
impl<K: Clone + Eq + Hash, C: Clock> fmt::Debug for Limiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("on", &self.0.is_some()).field("remembered", &self.len()).finish()
    }
}

/// Rounds up, so that a client that waits this long is not early. Never zero, which would mean "now".
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
