//! Sign-ins that wait for the provider, in memory as sessions are.
//!
//! Each can be finished once, within ten minutes, by the browser that began it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metering_core::Randomness;
use subtle::ConstantTimeEq;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::provider::Login;
use crate::admin::sessions::{hash, random_hex};

pub(in crate::admin) const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How many there may be. One more ends the oldest.
const MAX: usize = 1_000;

/// By the SHA3-256 of their `state`.
#[derive(Debug, Default)]
pub(super) struct Pending {
    by_state: Mutex<HashMap<[u8; 32], Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    /// The SHA3-256 of the browser's cookie.
    browser: [u8; 32],
    login: Login,
    expires_at: Instant,
}

impl Pending {
    /// Remembers a sign-in, and returns the value of the browser's cookie.
    pub(super) fn open(&self, login: Login, randomness: &dyn Randomness) -> Zeroizing<String> {
        let browser = Zeroizing::new(random_hex(randomness));
        let now = Instant::now();
        let mut waiting = self.by_state.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, one| now < one.expires_at);
        if waiting.len() >= MAX
            && let Some(oldest) = waiting.iter().min_by_key(|(_, one)| one.expires_at).map(|(state, _)| *state)
        {
            waiting.remove(&oldest);
        }
        let state = hash(login.state());
        waiting.insert(state, Waiting { browser: hash(&browser), login, expires_at: now + LIFETIME });
        browser
    }

    /// Removes the sign-in with that state, and returns it if this browser began it.
    pub(super) fn take(&self, state: &str, browser: &str) -> Option<Login> {
        let waiting = self.by_state.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash(state))?;
        let is_same = bool::from(waiting.browser.ct_eq(&hash(browser)));
        (is_same && Instant::now() < waiting.expires_at).then_some(waiting.login)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sign_in_is_finished_once_in_time_by_its_own_browser() {
        let pending = Pending::default();
        let open = |state: &str| pending.open(Login::with_state(state), &SystemRandomness);
        let browser = open("one");
        assert!(pending.take("other", &browser).is_none());
        assert!(pending.take("one", &browser).is_some_and(|login| login.state() == "one"));
        assert!(pending.take("one", &browser).is_none(), "it is used up");
        let _ = open("two");
        assert!(pending.take("two", &browser).is_none(), "another browser began it");
        let late = open("three");
        tokio::time::advance(LIFETIME).await;
        assert!(pending.take("three", &late).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_too_many_ends_the_oldest() {
        let pending = Pending::default();
        let oldest = pending.open(Login::with_state("oldest"), &SystemRandomness);
        for number in 0..MAX {
            tokio::time::advance(Duration::from_millis(1)).await;
            let _ = pending.open(Login::with_state(&number.to_string()), &SystemRandomness);
        }
        assert!(pending.take("oldest", &oldest).is_none());
        assert_eq!(pending.by_state.lock().unwrap().len(), MAX);
    }
}
