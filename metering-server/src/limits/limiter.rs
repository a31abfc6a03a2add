//! One quota, and who has used how much of it.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;

use crate::config::Quota;

type Keyed<K, C> = RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// Holds everybody who asks, each by itself, to one quota; or nobody, when it is off.
pub(super) struct Limiter<K: Clone + Eq + Hash, C: Clock>(Option<Keyed<K, C>>);

impl<K: Clone + Eq + Hash, C: Clock> Limiter<K, C> {
    pub(super) fn new(quota: Quota, clock: C) -> Self {
        Self(quota.burst_and_interval().map(|(burst, interval)| {
            let quota = governor::Quota::with_period(interval).expect("a quota's bounds keep its interval above zero");
            RateLimiter::dashmap_with_clock(quota.allow_burst(burst), clock)
        }))
    }

    /// Lets everybody ask once, and again each time that so much has passed; always, when that is nothing.
    pub(super) fn spaced(interval: Duration, clock: C) -> Self {
        Self(governor::Quota::with_period(interval).map(|quota| RateLimiter::dashmap_with_clock(quota, clock)))
    }

    /// Counts one request of `who`. A refused one does not count.
    ///
    /// # Errors
    /// When the quota is used up: in how many seconds there is room for one more.
    pub(super) fn check(&self, who: &K) -> Result<(), u64> {
        let Some(keyed) = &self.0 else { return Ok(()) };
        keyed.check_key(who).map_err(|refused| whole_seconds(refused.wait_time_from(keyed.clock().now())))
    }

    /// Forgets those who have their whole quota again.
    pub(super) fn forget_idle(&self) {
        if let Some(keyed) = &self.0 {
            keyed.retain_recent();
            keyed.shrink_to_fit();
        }
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, RateLimiter::len)
    }
}

/// By their number only: who they are is nobody's business.
impl<K: Clone + Eq + Hash, C: Clock> fmt::Debug for Limiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("on", &self.0.is_some()).field("remembered", &self.len()).finish()
    }
}

/// Rounded up, so that who waits for so long does not come too early; and never zero, which would mean at once.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
