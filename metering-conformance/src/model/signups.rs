//! Signup sessions and used solutions in the model.

use metering_core::clock::Timestamp;
use metering_core::signups::{SessionHash, SignupSession, UserCode};
use metering_core::store::{Created, NewAccount, SignupApproved, SignupOpened, SignupRedeemed};

use super::{InUse, Model};

const DAY: i64 = 24 * 60 * 60_000;

/// When a session can no longer be redeemed and may be deleted, in milliseconds.
fn end(session: &SignupSession) -> i64 {
    session.expires_at.unix_millis() + DAY
}

impl Model {
    pub(crate) fn signup(&self, token: &SessionHash) -> Option<&SignupSession> {
        self.signups.iter().find(|session| session.token == *token)
    }

    pub(crate) fn signup_of_code(&self, code: &UserCode) -> Option<&SignupSession> {
        self.signups.iter().find(|session| session.user_code == *code)
    }

    pub(crate) fn open_signup(&mut self, new: &SignupSession) -> Result<SignupOpened, InUse> {
        if self.has_email(Some(&new.email)) {
            return Ok(SignupOpened::EmailTaken);
        }
        if self.signup_of_code(&new.user_code).is_some() {
            return Ok(SignupOpened::CodeTaken);
        }
        if self.signup(&new.token).is_some() {
            return Err(InUse);
        }
        self.signups.push(new.clone());
        Ok(SignupOpened::Opened)
    }

    pub(crate) fn approve_signup(&mut self, code: &UserCode, now: Timestamp) -> SignupApproved {
        let is_asked = |session: &SignupSession| {
            session.user_code == *code && session.approved_at.is_none() && now < session.expires_at
        };
        let Some(number) = self.signups.iter().position(is_asked) else { return SignupApproved::NotPending };
        if self.has_email(Some(&self.signups[number].email)) {
            return SignupApproved::EmailTaken;
        }
        self.signups[number].approved_at = Some(now);
        SignupApproved::Approved
    }

    pub(crate) fn redeem_signup(
        &mut self,
        token: &SessionHash,
        new: &NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, InUse> {
        let session = self.signup(token).filter(|session| session.approved_at.is_some());
        if session.is_none_or(|session| now.unix_millis() >= end(session)) {
            return Ok(SignupRedeemed::NotApproved);
        }
        Ok(match self.create(new)? {
            Created::Account(account) => {
                self.signups.retain(|session| session.token != *token);
                SignupRedeemed::Account(account)
            }
            Created::EmailTaken => SignupRedeemed::EmailTaken,
            Created::OutOfRange => SignupRedeemed::OutOfRange,
            Created::PayerTaken => panic!("an account without a payer cannot have a taken one"),
        })
    }

    pub(crate) fn use_solution(&mut self, solution: [u8; 32], expires_at: Timestamp) -> bool {
        let is_new = self.solutions.iter().all(|(used, _)| *used != solution);
        if is_new {
            self.solutions.push((solution, expires_at));
        }
        is_new
    }

    /// Deletes sessions a day after their expiry and solutions at their expiry, and returns how many.
    pub(super) fn forget_signups(&mut self, now: Timestamp) -> usize {
        let before = self.signups.len() + self.solutions.len();
        self.signups.retain(|session| now.unix_millis() < end(session));
        self.solutions.retain(|(_, expires_at)| now < *expires_at);
        before - self.signups.len() - self.solutions.len()
    }
}
