//! The sessions of signed-in browsers. After a restart, operators sign in again.

use std::sync::Arc;
use std::time::Duration;

use metering_core::operators::OperatorTokenHash;
use metering_core::{Randomness, Timestamp};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::expiring::{Expiring, random_hex};
use super::person::Person;

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// All sessions, by their ids.
#[derive(Debug)]
pub(super) struct Sessions(Expiring<Session>);

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

impl Default for Sessions {
    fn default() -> Self {
        Self(Expiring::new(LIFETIME))
    }
}

impl Sessions {
    /// Opens a session, and returns its id for the cookie.
    pub(super) fn open(&self, who: SignedIn, randomness: &dyn Randomness) -> (Zeroizing<String>, Session) {
        let id = Zeroizing::new(random_hex(randomness));
        let session = Session { who, csrf: random_hex(randomness) };
        self.0.keep(&id, session.clone());
        (id, session)
    }

    /// The session with that id.
    pub(super) fn find(&self, id: &str) -> Option<Session> {
        self.0.get(id)
    }

    /// Ends a session.
    pub(super) fn close(&self, id: &str) {
        drop(self.0.take(id));
    }
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    fn token(number: u8) -> SignedIn {
        SignedIn::Operator(OperatorTokenHash::from_bytes([number; 32]))
    }

    #[test]
    fn a_session_is_found_by_its_id_until_it_is_closed() {
        let sessions = Sessions::default();
        let (id, session) = sessions.open(token(1), &SystemRandomness);
        let (other, _) = sessions.open(token(2), &SystemRandomness);
        let found = sessions.find(&id).unwrap();
        assert_eq!((&found.who, found.csrf()), (&token(1), session.csrf()));
        assert!(found.admits(session.csrf().as_bytes()) && !found.admits(b"") && !found.admits(id.as_bytes()));
        assert!(sessions.find("").is_none() && sessions.find(session.csrf()).is_none());
        sessions.close(&id);
        assert!(sessions.find(&id).is_none() && sessions.find(&other).is_some());
    }

    #[test]
    fn debug_output_has_no_secret() {
        let (_, session) = Sessions::default().open(token(1), &SystemRandomness);
        assert!(!format!("{session:?}").contains(session.csrf()));
    }
}
