use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::signup::{SessionHash, SignupSession, UserCode};
use crate::store::{Created, NewAccount, SignupApproved, SignupOpened, SignupRedeemed, SignupStore, StoreError};

use super::MemoryStore;
use super::state::State;

/// The signup state of a store.
#[derive(Debug, Default)]
pub(super) struct SignupState {
    sessions: BTreeMap<SessionHash, SignupSession>,
    /// When each used solution can be deleted.
    solutions: BTreeMap<[u8; 32], Timestamp>,
}

impl SignupState {
    fn of_code(&self, code: &UserCode) -> Option<&SignupSession> {
        self.sessions.values().find(|session| session.user_code == *code)
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) -> u64 {
        let before = self.sessions.len() + self.solutions.len();
        self.sessions.retain(|_, session| now < session.expires_at.saturating_add(SignupSession::RETENTION));
        self.solutions.retain(|_, expires_at| now < *expires_at);
        u64::try_from(before - self.sessions.len() - self.solutions.len()).unwrap_or(u64::MAX)
    }
}

impl State {
    fn open_signup(&mut self, session: SignupSession) -> Result<SignupOpened, StoreError> {
        if self.email_of_account(&session.email) {
            return Ok(SignupOpened::EmailTaken);
        }
        if self.signups.of_code(&session.user_code).is_some() {
            return Ok(SignupOpened::CodeTaken);
        }
        if self.signups.sessions.contains_key(&session.token) {
            return Err(StoreError::Corrupt("a new session's token is in use".to_owned()));
        }
        self.signups.sessions.insert(session.token, session);
        Ok(SignupOpened::Opened)
    }

    fn approve_signup(&mut self, code: &UserCode, now: Timestamp) -> SignupApproved {
        let Some(session) = self.signups.of_code(code).filter(|session| session.is_pending(now)) else {
            return SignupApproved::NotPending;
        };
        if self.email_of_account(&session.email) {
            return SignupApproved::EmailTaken;
        }
        let token = session.token;
        if let Some(session) = self.signups.sessions.get_mut(&token) {
            session.approved_at = Some(now);
        }
        SignupApproved::Approved
    }

    fn redeem_signup(
        &mut self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError> {
        if !self.signups.sessions.get(token).is_some_and(|session| session.is_redeemable(now)) {
            return Ok(SignupRedeemed::NotApproved);
        }
        Ok(match self.create_account(account)? {
            Created::Account(account) => {
                self.signups.sessions.remove(token);
                SignupRedeemed::Account(account)
            }
            // A session's account has no payer, so `PayerTaken` cannot happen.
            Created::EmailTaken | Created::PayerTaken => SignupRedeemed::EmailTaken,
            Created::OutOfRange => SignupRedeemed::OutOfRange,
        })
    }
}

#[async_trait]
impl SignupStore for MemoryStore {
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened, StoreError> {
        self.state()?.open_signup(session)
    }

    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>, StoreError> {
        Ok(self.state()?.signups.sessions.get(token).cloned())
    }

    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>, StoreError> {
        Ok(self.state()?.signups.of_code(code).cloned())
    }

    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved, StoreError> {
        Ok(self.state()?.approve_signup(code, now))
    }

    async fn redeem_signup(
        &self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError> {
        self.state()?.redeem_signup(token, account, now)
    }

    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool, StoreError> {
        let mut state = self.state()?;
        let fresh = !state.signups.solutions.contains_key(&solution);
        state.signups.solutions.entry(solution).or_insert(expires_at);
        Ok(fresh)
    }
}
