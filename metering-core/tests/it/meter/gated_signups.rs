//! The gated store's signups, passed on to the memory store behind it.

use async_trait::async_trait;
use metering_core::{
    NewAccount, SessionHash, SignupApproved, SignupOpened, SignupRedeemed, SignupSession, SignupStore, StoreError,
    Timestamp, UserCode,
};

use super::gated::Gated;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl SignupStore for Gated {
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened> {
        self.store.open_signup(session).await
    }
    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>> {
        self.store.signup(token).await
    }
    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>> {
        self.store.signup_of_code(code).await
    }
    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
        self.store.approve_signup(code, now).await
    }
    async fn redeem_signup(&self, token: &SessionHash, account: NewAccount, now: Timestamp) -> Result<SignupRedeemed> {
        self.store.redeem_signup(token, account, now).await
    }
    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
        self.store.use_solution(solution, expires_at).await
    }
}
