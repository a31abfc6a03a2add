//! Implements the part of the storage contract for signups without payment. Each method runs in a transaction.

use async_trait::async_trait;
use metering_core::access::{Email, KeyHash};
use metering_core::signups::{EmailLink, LinkHash, SessionHash, SignupSession, UserCode};
use metering_core::store::{EmailVerified, SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{Account, NewAccount, SignupStore, StoreError, Timestamp};

use crate::access::accounts;
use crate::signups::{links, sessions};
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

    async fn account_by_email(&self, email: &Email) -> Result<Option<Account>> {
        self.read(|client| {
            let email = email.clone();
            Box::pin(async move { accounts::by_email(client, &email).await })
        })
        .await
    }

    async fn open_email_link(&self, link: EmailLink) -> Result<bool> {
        self.write(|write| Box::pin(links::open(write, link.clone()))).await
    }

    async fn verify_email(&self, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
        let token = *token;
        self.write(move |write| Box::pin(async move { links::verify(write, &token, now).await })).await
    }

    async fn recover_key(&self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        let token = *token;
        self.write(move |write| Box::pin(async move { links::recover(write, &token, key, now).await })).await
    }

    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
        self.write(move |write| Box::pin(async move { sessions::use_solution(write, &solution, expires_at).await }))
            .await
    }
}
