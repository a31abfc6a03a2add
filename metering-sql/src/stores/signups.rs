/// Implements [`SignupStore`](metering_core::store::SignupStore).
#[macro_export]
macro_rules! signup_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::{Email, KeyHash};
            use $crate::private::metering_core::signups::*;
            use $crate::private::metering_core::store::*;
            use $crate::private::metering_core::{Account, NewAccount, StoreError, Timestamp};
            use $crate::{read, shared, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::SignupStore for $store {
                async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened> {
                    write(self, session, |db, session| shared($crate::sessions::open(db, session))).await
                }

                async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>> {
                    read(self, *token, |db, token| shared($crate::sessions::by_token(db, token))).await
                }

                async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>> {
                    read(self, *code, |db, code| shared($crate::sessions::by_code(db, code))).await
                }

                async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
                    write(self, (*code, now), |db, (code, now)| shared($crate::sessions::approve(db, code, *now))).await
                }

                async fn redeem_signup(
                    &self,
                    token: &SessionHash,
                    account: NewAccount,
                    now: Timestamp,
                ) -> Result<SignupRedeemed> {
                    let args = (*token, account, now);
                    write(self, args, |db, (token, account, now)| {
                        shared($crate::sessions::redeem(db, token, account, *now))
                    })
                    .await
                }

                async fn account_by_email(&self, email: &Email) -> Result<Option<Account>> {
                    read(self, email.clone(), |db, email| shared($crate::accounts::by_email(db, email))).await
                }

                async fn open_email_link(&self, link: EmailLink) -> Result<bool> {
                    write(self, link, |db, link| shared($crate::links::open(db, link))).await
                }

                async fn email_link(&self, token: &LinkHash) -> Result<Option<EmailLink>> {
                    read(self, *token, |db, token| shared($crate::links::by_token(db, token))).await
                }

                async fn verify_email(&self, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
                    write(self, (*token, now), |db, (token, now)| shared($crate::links::verify(db, token, *now))).await
                }

                async fn recover_key(&self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (*token, key, now);
                    write(self, args, |db, (token, key, now)| shared($crate::links::recover(db, token, key, *now)))
                        .await
                }

                async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
                    let args = (solution, expires_at);
                    write(self, args, |db, (solution, until)| {
                        shared($crate::sessions::use_solution(db, solution, *until))
                    })
                    .await
                }
            }
        };
    };
}
