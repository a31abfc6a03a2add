//! Limits on reading responses for their usage reports after the client has disconnected: bytes, time and number.
//!
//! A request whose client has gone no longer counts among the streams and requests of its key: reading the rest takes
//! up to ten minutes, and pressing a Stop button sixteen times would lock the key for that long. It takes a slot here
//! instead, so clients that disconnect on purpose do not get more concurrent work than these bounds allow. Without a
//! slot, the rest is not read, and only the delivered part is charged.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_core::access::AccountId;
use tokio::time::{Instant, sleep_until};

/// The responses whose clients have gone.
#[derive(Debug)]
pub(super) struct Unattended {
    max: usize,
    max_per_account: usize,
    places: Mutex<HashMap<AccountId, usize>>,
}

/// A place among them, released on drop.
#[derive(Debug)]
pub(super) struct Place {
    unattended: Arc<Unattended>,
    account: AccountId,
}

impl Unattended {
    pub(super) fn new(max: usize, max_per_account: usize) -> Self {
        Self { max, max_per_account, places: Mutex::default() }
    }

    /// Takes a place, if there is one.
    pub(super) fn enter(self: &Arc<Self>, account: &AccountId) -> Option<Place> {
        let mut places = self.places();
        let own = places.get(account).copied().unwrap_or_default();
        if own >= self.max_per_account || places.values().sum::<usize>() >= self.max {
            return None;
        }
        places.insert(account.clone(), own + 1);
        Some(Place { unattended: Arc::clone(self), account: account.clone() })
    }

    fn places(&self) -> MutexGuard<'_, HashMap<AccountId, usize>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut own) = self.unattended.places().entry(self.account.clone()) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

/// The limits for one response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) time: Duration,
    pub(super) bytes: u64,
}

/// How much of one response may still be read.
#[derive(Debug)]
pub(super) struct Rest {
    bounds: Bounds,
    /// When reading stops; `None` while the client is there.
    until: Option<Instant>,
}

impl Rest {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self { bounds, until: None }
    }

    /// Whether the client has disconnected.
    pub(super) const fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// The client has disconnected.
    pub(super) fn begin(&mut self) {
        self.until.get_or_insert_with(|| Instant::now() + self.bounds.time);
    }

    /// Resolves when the time is up.
    pub(super) async fn over(&self) {
        match self.until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Counts bytes that were read. Returns `false` when they are too many.
    pub(super) fn read(&mut self, bytes: usize) -> bool {
        if !self.has_begun() {
            return true;
        }
        let left = u64::try_from(bytes).ok().and_then(|bytes| self.bounds.bytes.checked_sub(bytes));
        self.bounds.bytes = left.unwrap_or_default();
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_by_account_and_in_all() {
        let unattended = Arc::new(Unattended::new(3, 2));
        let [one, other]: [AccountId; 2] =
            ["org_aaaaaaaaaaaaaaaaaaaa", "org_bbbbbbbbbbbbbbbbbbbb"].map(|id| id.parse().unwrap());
        let first = unattended.enter(&one);
        let second = unattended.enter(&one);
        assert!(first.is_some() && second.is_some() && unattended.enter(&one).is_none());
        let third = unattended.enter(&other);
        assert!(third.is_some() && unattended.enter(&other).is_none());
        drop(first);
        assert!(unattended.enter(&other).is_some());
        drop((second, third));
        assert!(unattended.places().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn bounds_apply_once_the_client_has_gone() {
        let mut rest = Rest::new(Bounds { time: Duration::from_secs(60), bytes: 10 });
        assert!(rest.read(1_000), "the client is there");
        let over = tokio::time::timeout(Duration::from_hours(1), rest.over()).await;
        assert!(over.is_err(), "the client is there");
        rest.begin();
        assert!(rest.read(10));
        assert!(!rest.read(1));
        let started = Instant::now();
        rest.over().await;
        assert_eq!(started.elapsed(), Duration::from_secs(60));
    }
}
