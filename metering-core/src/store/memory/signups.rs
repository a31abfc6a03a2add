use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::decision::{self, Decided, RedeemChanges, SignupFacts};
use crate::signups::signup::{SessionHash, SignupSession, UserCode};
use crate::store::{NewAccount, SignupApproved, SignupOpened, SignupRedeemed, SignupStore, StoreError};

use super::MemoryStore;
use super::state::State;

impl State {
    fn open_signup(&mut self, session: SignupSession) -> Result<SignupOpened, StoreError> {
        let facts = SignupFacts {
            email_taken: self.owner_facts(Some(&session.email), None).email_taken,
            code_taken: self.signups.of_code(&session.user_code).is_some(),
            token_in_use: self.signups.sessions.contains_key(&session.token),
        };
        Ok(match decision::open_signup(session, facts)? {
            Decided::Accepted(session) => {
                self.signups.sessions.insert(session.token, session);
                SignupOpened::Opened
            }
            Decided::Refused(refusal) => refusal,
        })
    }

    fn approve_signup(&mut self, code: &UserCode, now: Timestamp) -> SignupApproved {
        let session = self.signups.of_code(code).cloned();
        let email = session.as_ref().map(|session| &session.email);
        let email_taken = self.owner_facts(email, None).email_taken;
        match decision::approve_signup(session, email_taken, now) {
            Decided::Accepted(session) => {
                self.signups.sessions.insert(session.token, session);
                SignupApproved::Approved
            }
            Decided::Refused(refusal) => refusal,
        }
    }

    fn redeem_signup(
        &mut self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError> {
        let session = self.signups.sessions.get(token).cloned();
        let facts = self.create_facts(&account);
        Ok(match decision::redeem_signup(session, account, facts, now)? {
            Decided::Accepted(RedeemChanges { account, token }) => {
                self.signups.sessions.remove(&token);
                SignupRedeemed::Account(self.insert_account(account))
            }
            Decided::Refused(refusal) => refusal,
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
