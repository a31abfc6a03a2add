/// Implements [`SignupStore`](metering_core::store::SignupStore).
#[macro_export]
macro_rules! signup_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Account, NewAccount, Timestamp,
                access::{Email, KeyHash},
                signups::*,
                store::*,
            };
            impl SignupStore for $store {
                async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool> {
                    let args = (solution, expires_at);
                    $crate::write(self, args, |db, (solution, until)| {
                        $crate::shared($crate::sessions::use_solution(db, solution, *until))
                    })
                    .await
                }
            }
            write open_signup(session: SignupSession) -> SignupOpened = sessions::open;
            read signup(token: &SessionHash) -> Option<SignupSession> = sessions::by_token;
            read signup_of_code(code: &UserCode) -> Option<SignupSession> = sessions::by_code;
            write approve_signup(code: &UserCode, now: Timestamp) -> SignupApproved = sessions::approve;
            write redeem_signup(token: &SessionHash, account: NewAccount, now: Timestamp)
                -> SignupRedeemed = sessions::redeem;
            read account_by_email(email: &Email) -> Option<Account> = accounts::by_email;
            write open_email_link(link: EmailLink) -> bool = links::open;
            read email_link(token: &LinkHash) -> Option<EmailLink> = links::by_token;
            write verify_email(token: &LinkHash, now: Timestamp) -> EmailVerified = links::verify;
            write recover_key(token: &LinkHash, key: KeyHash, now: Timestamp) -> Option<Account> = links::recover;
        }
    };
}
