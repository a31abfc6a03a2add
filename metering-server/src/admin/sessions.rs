//! The sessions of signed-in browsers. They are kept in memory: after a restart, operators sign in again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metering_core::operators::OperatorTokenHash;
use metering_core::{Randomness, Timestamp};
use sha3::{Digest, Sha3_256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::person::Person;

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How many sessions there may be. One more ends the oldest.
const MAX: usize = 1_000;

/// All sessions, by the SHA3-256 of their ids.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_hash: Mutex<HashMap<[u8; 32], Session>>,
}

/// Who opened a session. Their rights are looked up with each request, so a revocation ends their sessions too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignedIn {
    /// An operator, with this token.
    Operator(OperatorTokenHash),
    /// A person, through an OpenID Connect provider, at this time.
    Person(Arc<Person>, Timestamp),
}

/// A session.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) who: SignedIn,
    /// The secret that every action must repeat in a header, so that no other site can make a browser act.
    csrf: String,
    expires_at: Instant,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("who", &self.who).finish_non_exhaustive()
    }
}

impl Session {
    /// The secret for the page.
    pub(super) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// Whether a header repeats the secret, in constant time.
    pub(super) fn admits(&self, sent: &[u8]) -> bool {
        self.csrf.as_bytes().ct_eq(sent).into()
    }
}

impl Sessions {
    /// Opens a session, and returns its id for the cookie.
    pub(super) fn open(&self, who: SignedIn, randomness: &dyn Randomness) -> (Zeroizing<String>, Session) {
        let id = Zeroizing::new(random_hex(randomness));
        let session = Session { who, csrf: random_hex(randomness), expires_at: Instant::now() + LIFETIME };
        let mut sessions = self.by_hash.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        sessions.retain(|_, session| now < session.expires_at);
        if sessions.len() >= MAX
            && let Some(oldest) = sessions.iter().min_by_key(|(_, session)| session.expires_at).map(|(hash, _)| *hash)
        {
            sessions.remove(&oldest);
        }
        sessions.insert(hash(&id), session.clone());
        (id, session)
    }

    /// The session with that id.
    pub(super) fn find(&self, id: &str) -> Option<Session> {
        let sessions = self.by_hash.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&hash(id)).filter(|session| Instant::now() < session.expires_at).cloned()
    }

    /// Ends a session.
    pub(super) fn close(&self, id: &str) {
        self.by_hash.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash(id));
    }
}

/// The hash of an id.
pub(super) fn hash(id: &str) -> [u8; 32] {
    Sha3_256::digest(id.as_bytes()).into()
}

/// 256 random bits.
pub(super) fn random_hex(randomness: &dyn Randomness) -> String {
    let mut bytes = Zeroizing::new([0; 32]);
    randomness.fill(&mut *bytes);
    hex::encode(*bytes)
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    fn token(number: u8) -> SignedIn {
        SignedIn::Operator(OperatorTokenHash::from_bytes([number; 32]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_lasts_until_it_is_closed_or_expires() {
        let sessions = Sessions::default();
        let (id, session) = sessions.open(token(1), &SystemRandomness);
        let (other, _) = sessions.open(token(2), &SystemRandomness);
        let found = sessions.find(&id).unwrap();
        assert_eq!((&found.who, found.csrf()), (&token(1), session.csrf()));
        assert!(found.admits(session.csrf().as_bytes()) && !found.admits(b"") && !found.admits(id.as_bytes()));
        assert!(sessions.find("").is_none() && sessions.find(session.csrf()).is_none());
        sessions.close(&id);
        assert!(sessions.find(&id).is_none());
        tokio::time::advance(LIFETIME).await;
        assert!(sessions.find(&other).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_session_too_many_ends_the_oldest() {
        let sessions = Sessions::default();
        let (oldest, _) = sessions.open(token(0), &SystemRandomness);
        for _ in 0..MAX {
            tokio::time::advance(Duration::from_millis(1)).await;
            sessions.open(token(1), &SystemRandomness);
        }
        assert!(sessions.find(&oldest).is_none());
        assert_eq!(sessions.by_hash.lock().unwrap().len(), MAX);
    }

    #[test]
    fn debug_output_has_no_secret() {
        let (_, session) = Sessions::default().open(token(1), &SystemRandomness);
        assert!(!format!("{session:?}").contains(session.csrf()));
    }
}
