//! Implements the part of the storage contract for signups without payment. Each method runs in a transaction.

use async_trait::async_trait;
use metering_core::signups::{SessionHash, SignupSession, UserCode};
use metering_core::store::{SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{NewAccount, SignupStore, StoreError, Timestamp};

use crate::signups::sessions;
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl SignupStore for PostgresStore {
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened> {
        self.write(|write| Box::pin(sessions::open(write, session.clone()))).await
    }

    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>> {
        let token = *token;
        self.read(move |client| Box::pin(async move { sessions::by_token(client, &token).await })).await
    }

    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>> {
        let code = *code;
        self.read(move |client| Box::pin(async move { sessions::by_code(client, &code).await })).await
    }

    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
        let code = *code;
        self.write(move |write| Box::pin(async move { sessions::approve(write, &code, now).await })).await
    }

    async fn redeem_signup(&self, token: &SessionHash, account: NewAccount, now: Timestamp) -> Result<SignupRedeemed> {
        self.write(|write| {
            let (token, account) = (*token, account.clone());
            Box::pin(async move { sessions::redeem(write, &token, account, now).await })
        })
        .await
    }

    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
        self.write(move |write| Box::pin(async move { sessions::use_solution(write, &solution, expires_at).await }))
            .await
    }
}
