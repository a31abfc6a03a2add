//! One quota, and each client's use of it.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;

use crate::config::Quota;

type Keyed<K, C> = RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// Applies one quota to each key separately; no limit when the quota is off.
pub(super) struct Limiter<K: Clone + Eq + Hash, C: Clock> {
    applied: RwLock<Applied<K, C>>,
    clock: C,
}

/// A quota, and the counts under it.
struct Applied<K: Clone + Eq + Hash, C: Clock> {
    /// `None` for an unlimited quota.
    quota: Option<Quota>,
    keyed: Option<Arc<Keyed<K, C>>>,
}

impl<K: Clone + Eq + Hash, C: Clock + Clone> Limiter<K, C> {
    pub(super) fn new(quota: Quota, clock: C) -> Self {
        let applied = Applied { quota: Some(quota), keyed: keyed(quota, clock.clone()) };
        Self { applied: RwLock::new(applied), clock }
    }

    /// Allows one request per `interval` and key; no limit when the interval is zero.
    pub(super) fn spaced(interval: Duration, clock: C) -> Self {
        let quota = governor::Quota::with_period(interval);
        let keyed = quota.map(|quota| Arc::new(RateLimiter::dashmap_with_clock(quota, clock.clone())));
        Self { applied: RwLock::new(Applied { quota: None, keyed }), clock }
    }

    /// Applies another quota from now on, and begins to count under it. The same quota changes nothing.
    pub(super) fn replace(&self, quota: Quota) {
        let mut applied = self.applied.write().unwrap_or_else(PoisonError::into_inner);
        if applied.quota != Some(quota) {
            *applied = Applied { quota: Some(quota), keyed: keyed(quota, self.clock.clone()) };
        }
    }
}

fn keyed<K: Clone + Eq + Hash, C: Clock>(quota: Quota, clock: C) -> Option<Arc<Keyed<K, C>>> {
    let (burst, interval) = quota.burst_and_interval()?;
    let quota = governor::Quota::with_period(interval).expect("a quota's bounds keep its interval above zero");
    Some(Arc::new(RateLimiter::dashmap_with_clock(quota.allow_burst(burst), clock)))
}

impl<K: Clone + Eq + Hash, C: Clock> Limiter<K, C> {
    fn keyed(&self) -> Option<Arc<Keyed<K, C>>> {
        self.applied.read().unwrap_or_else(PoisonError::into_inner).keyed.clone()
    }

    /// Counts one request of `who`. Refused requests do not count.
    ///
    /// # Errors
    /// The seconds until the next request is allowed, when the quota is used up.
    pub(super) fn check(&self, who: &K) -> Result<(), u64> {
        let Some(keyed) = self.keyed() else { return Ok(()) };
        keyed.check_key(who).map_err(|refused| whole_seconds(refused.wait_time_from(keyed.clock().now())))
    }

    /// Forgets keys whose whole quota is available again.
    pub(super) fn forget_idle(&self) {
        if let Some(keyed) = self.keyed() {
            keyed.retain_recent();
            keyed.shrink_to_fit();
        }
    }

    /// The number of keys remembered.
    pub(super) fn len(&self) -> usize {
        self.keyed().map_or(0, |keyed| keyed.len())
    }
}

/// Shows only the number of keys, since keys are personal data.
impl<K: Clone + Eq + Hash, C: Clock> fmt::Debug for Limiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("on", &self.keyed().is_some()).field("remembered", &self.len()).finish()
    }
}

/// Rounds up, so that a client that waits this long is not early. Never zero, which would mean "now".
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
