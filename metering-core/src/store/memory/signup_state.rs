//! The signup sessions of a memory store.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::signups::link::{EmailLink, LinkHash};
use crate::signups::signup::{SessionHash, SignupSession, UserCode};

/// The signup state of a store.
#[derive(Debug, Default)]
pub(super) struct SignupState {
    pub(super) sessions: BTreeMap<SessionHash, SignupSession>,
    /// The links that were sent by email.
    pub(super) links: BTreeMap<LinkHash, EmailLink>,
    /// When each used solution, and each nonce of a used sign-in, can be deleted.
    pub(super) solutions: BTreeMap<[u8; 32], Timestamp>,
}

impl SignupState {
    pub(super) fn of_code(&self, code: &UserCode) -> Option<&SignupSession> {
        self.sessions.values().find(|session| session.user_code == *code)
    }

    /// Whether this was not used before.
    pub(super) fn use_once(&mut self, solution: [u8; 32], expires_at: Timestamp) -> bool {
        let fresh = !self.solutions.contains_key(&solution);
        self.solutions.entry(solution).or_insert(expires_at);
        fresh
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) -> u64 {
        let count = |state: &Self| state.sessions.len() + state.solutions.len() + state.links.len();
        let before = count(self);
        self.sessions.retain(|_, session| now < session.expires_at.saturating_add(SignupSession::RETENTION));
        self.solutions.retain(|_, expires_at| now < *expires_at);
        self.links.retain(|_, link| now < link.expires_at);
        u64::try_from(before - count(self)).unwrap_or(u64::MAX)
    }
}
