//! Sign-ins that wait for the provider.
//!
//! Each can be finished once, within ten minutes, by the browser that began it.

use std::time::Duration;

use metering_core::Randomness;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::provider::Login;
use crate::admin::expiring::{Expiring, hash, random_hex};

pub(in crate::admin) const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// By their `state`, each with the SHA3-256 of the browser's cookie.
#[derive(Debug)]
pub(super) struct Pending(Expiring<([u8; 32], Login)>);

impl Default for Pending {
    fn default() -> Self {
        Self(Expiring::new(LIFETIME))
    }
}

impl Pending {
    /// Remembers a sign-in, and returns the value of the browser's cookie.
    pub(super) fn open(&self, login: Login, randomness: &dyn Randomness) -> Zeroizing<String> {
        let browser = Zeroizing::new(random_hex(randomness));
        let state = login.state().to_owned();
        self.0.keep(&state, (hash(&browser), login));
        browser
    }

    /// Removes the sign-in with that state, and returns it if this browser began it.
    pub(super) fn take(&self, state: &str, browser: &str) -> Option<Login> {
        let (own, login) = self.0.take(state)?;
        bool::from(own.ct_eq(&hash(browser))).then_some(login)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    #[test]
    fn a_sign_in_is_finished_once_by_its_own_browser() {
        let pending = Pending::default();
        let open = |state: &str| pending.open(Login::with_state(state), &SystemRandomness);
        let browser = open("one");
        assert!(pending.take("other", &browser).is_none());
        assert!(pending.take("one", &browser).is_some_and(|login| login.state() == "one"));
        assert!(pending.take("one", &browser).is_none(), "it is used up");
        let _ = open("two");
        assert!(pending.take("two", &browser).is_none(), "another browser began it");
    }
}
