//! How much work a signup takes: it grows with recent demand, from one network and in total.
//!
//! A network's count grows with each challenge it requests, so that cheap challenges cannot be hoarded, and with each
//! signup. The total count grows with signups only: challenges are free to request, and requesting them must not raise
//! the work for everyone. Counts decay, live in memory, and are per process.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_core::Timestamp;

use crate::access::limits::Network;

/// At each of these counts, a network's work doubles. A person who reloads the page stays below the first.
const NETWORK_STEPS: [u32; 4] = [8, 12, 16, 24];
/// The time after which a network's count decreases by one.
const NETWORK_DECAY: Duration = Duration::from_secs(5 * 60);
/// The same for all signups of the process. An hour at one signup per minute changes nothing.
const TOTAL_STEPS: [u32; 4] = [60, 120, 240, 480];
const TOTAL_DECAY: Duration = Duration::from_secs(60);
/// How much a challenge and a signup add to the count of their network.
const CHALLENGE: u32 = 1;
const SIGNUP: u32 = 2;

/// A count that decays over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    count: u32,
    /// When the count had this value.
    at: Timestamp,
}

impl Count {
    fn none(now: Timestamp) -> Self {
        Self { count: 0, at: now }
    }

    /// The count after decay. Keeps the time already passed towards the next decrement.
    fn decayed(self, now: Timestamp, decay: Duration) -> Self {
        let decay = i64::try_from(decay.as_millis()).unwrap_or(i64::MAX);
        let steps = now.unix_millis().saturating_sub(self.at.unix_millis()).max(0) / decay;
        let count = self.count.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
        let at = Timestamp::from_unix_millis(self.at.unix_millis().saturating_add(steps.saturating_mul(decay)));
        if count == 0 { Self::none(now) } else { Self { count, at } }
    }

    /// Adds `more`, capped at twice the last step, which bounds the time to decay.
    fn plus(self, more: u32, steps: [u32; 4]) -> Self {
        Self { count: self.count.saturating_add(more).min(steps[3] * 2), ..self }
    }
}

/// By how much a count multiplies the work: 1, 2, 4, 8 or 16.
fn factor(count: u32, steps: [u32; 4]) -> u32 {
    steps.iter().filter(|step| count >= **step).fold(1, |factor, _| factor * 2)
}

/// Recent demand.
#[derive(Debug)]
pub(super) struct Demand {
    highest: u32,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    networks: HashMap<Network, Count>,
    total: Count,
}

impl Demand {
    /// No demand yet. Work is multiplied by at most `highest`.
    pub(super) fn new(highest: u32, now: Timestamp) -> Self {
        Self { highest, counts: Mutex::new(Counts { networks: HashMap::new(), total: Count::none(now) }) }
    }

    /// Counts a requested challenge and returns the factor for its work.
    pub(super) fn challenge(&self, client: IpAddr, now: Timestamp) -> u32 {
        let mut counts = self.counts();
        let network = counts.network(client, now);
        let of_network = factor(network.count, NETWORK_STEPS);
        *network = network.plus(CHALLENGE, NETWORK_STEPS);
        counts.total = counts.total.decayed(now, TOTAL_DECAY);
        let of_all = factor(counts.total.count, TOTAL_STEPS);
        of_network.max(of_all).min(self.highest)
    }

    /// Counts an approved signup.
    pub(super) fn signup(&self, client: IpAddr, now: Timestamp) {
        let mut counts = self.counts();
        let network = counts.network(client, now);
        *network = network.plus(SIGNUP, NETWORK_STEPS);
        counts.total = counts.total.decayed(now, TOTAL_DECAY).plus(1, TOTAL_STEPS);
    }

    /// Removes networks whose count has decayed to zero, and releases their memory.
    pub(super) fn forget_idle(&self, now: Timestamp) {
        let networks = &mut self.counts().networks;
        networks.retain(|_, count| count.decayed(now, NETWORK_DECAY).count > 0);
        networks.shrink_to_fit();
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn network(&mut self, client: IpAddr, now: Timestamp) -> &mut Count {
        let count = self.networks.entry(Network::around(client)).or_insert_with(|| Count::none(now));
        *count = count.decayed(now, NETWORK_DECAY);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn work_of_a_network_rises_to_a_maximum_and_falls_again() {
        let demand = Demand::new(16, NOON);
        let factors: Vec<u32> = (0..40).map(|_| demand.challenge(ip("203.0.113.7"), NOON)).collect();
        assert_eq!(factors[..8], [1; 8], "a person who reloads the page");
        assert_eq!((factors[8], factors[12], factors[16], factors[24], factors[39]), (2, 4, 8, 16, 16));
        // Neighbouring addresses belong to the same network, others do not.
        assert_eq!(demand.challenge(ip("203.0.113.200"), NOON), 16);
        assert_eq!(demand.challenge(ip("203.0.114.7"), NOON), 1);
        let later = NOON.saturating_add(NETWORK_DECAY * 100);
        assert_eq!(demand.challenge(ip("203.0.113.7"), later), 1, "the count decays completely");
        demand.forget_idle(later.saturating_add(NETWORK_DECAY * 2));
        assert!(demand.counts().networks.is_empty());
    }

    #[test]
    fn the_free_signups_of_one_network_become_few_per_hour() {
        let (demand, mut cheap) = (Demand::new(16, NOON), 0);
        // No waiting for the work here, so all signups of a day are counted.
        for minute in 0..24 * 60 {
            let now = NOON.saturating_add(Duration::from_secs(60 * minute));
            if demand.challenge(ip("198.51.100.1"), now) == 1 {
                cheap += 1;
            }
            demand.signup(ip("198.51.100.1"), now);
        }
        assert!(cheap <= 5, "{cheap} of a day's signups took the minimum work");
    }

    #[test]
    fn signups_from_many_networks_raise_the_work_for_all() {
        let demand = Demand::new(16, NOON);
        let network = |number: u32| IpAddr::from(number.to_be_bytes().map(|byte| byte.wrapping_add(1)));
        for number in 0..10_000 {
            let _ = demand.challenge(network(number << 8), NOON);
        }
        assert_eq!(demand.challenge(ip("192.0.2.1"), NOON), 1);
        for number in 0..1_000 {
            demand.signup(network(number << 8), NOON);
        }
        assert_eq!(demand.challenge(ip("192.0.2.1"), NOON), 16);
        assert_eq!(Demand::new(1, NOON).challenge(ip("192.0.2.1"), NOON), 1);
        let later = NOON.saturating_add(TOTAL_DECAY * TOTAL_STEPS[3] * 2);
        assert_eq!(demand.challenge(ip("192.0.2.1"), later), 1);
    }

    #[test]
    fn backward_clock_does_not_lower_the_work() {
        let demand = Demand::new(16, NOON);
        for _ in 0..30 {
            let _ = demand.challenge(ip("192.0.2.1"), NOON);
        }
        assert_eq!(demand.challenge(ip("192.0.2.1"), NOON.saturating_sub(Duration::from_secs(60 * 60))), 16);
    }
}
