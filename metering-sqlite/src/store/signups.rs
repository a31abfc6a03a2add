//! Implements the part of the storage contract for signups without payment. Each method goes to the writer or to a
//! reader.

use crate::access::accounts;
use crate::journal::Snapshot;
use crate::signups::{links, sessions};
use crate::store::SqliteStore;

metering_sql::signup_store! {
    SqliteStore {
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
    }
}
