//! Implements the part of the storage contract for signups without payment. Each method runs in a transaction.

use crate::access::accounts;
use crate::signups::{links, sessions};
use crate::store::PostgresStore;

metering_sql::signup_store! {
    PostgresStore {
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
    }
}
