//! Implements the part of the storage contract for signups without payment. Each method goes to the writer or to a
//! reader.

use async_trait::async_trait;
use metering_core::access::{Email, KeyHash};
use metering_core::signups::{EmailLink, LinkHash, SessionHash, SignupSession, UserCode};
use metering_core::store::{EmailVerified, SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{Account, NewAccount, SignupStore, Timestamp};

use crate::access::accounts;
use crate::error::Result;
use crate::journal::Snapshot;
use crate::signups::{links, sessions};
use crate::store::SqliteStore;

#[async_trait]
impl SignupStore for SqliteStore {
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened> {
        self.writer.write(move |connection| sessions::open(connection, session)).await
    }

    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>> {
        let token = *token;
        self.read(move |connection| sessions::by_token(connection, &token)).await
    }

    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>> {
        let code = *code;
        self.read(move |connection| sessions::by_code(connection, &code)).await
    }

    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
        let code = *code;
        self.writer.write(move |connection| sessions::approve(connection, &code, now)).await
    }

    async fn redeem_signup(&self, token: &SessionHash, account: NewAccount, now: Timestamp) -> Result<SignupRedeemed> {
        let token = *token;
        let redeem = move |connection: &Snapshot<'_>| sessions::redeem(connection, &token, account, now);
        self.writer.write(redeem).await
    }

    async fn account_by_email(&self, email: &Email) -> Result<Option<Account>> {
        let email = email.clone();
        self.read(move |snapshot| accounts::by_email(snapshot, &email)).await
    }

    async fn open_email_link(&self, link: EmailLink) -> Result<bool> {
        self.writer.write(move |connection: &Snapshot<'_>| links::open(connection, link)).await
    }

    async fn verify_email(&self, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
        let token = *token;
        self.writer.write(move |connection: &Snapshot<'_>| links::verify(connection, &token, now)).await
    }

    async fn recover_key(&self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        let token = *token;
        self.writer.write(move |connection: &Snapshot<'_>| links::recover(connection, &token, key, now)).await
    }

    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
        let using = move |connection: &Snapshot<'_>| sessions::use_solution(connection, &solution, expires_at);
        self.writer.write(using).await
    }
}
