/// Implements [`AuthorizationStore`](metering_core::store::AuthorizationStore).
#[macro_export]
macro_rules! authorization_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                AccountId, Credits, Timestamp,
                access::KeyHash,
                chains::{Address, TxRef},
                offers::*,
                store::{
                    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization, PaymentCredit,
                },
            };
            use core::{time::Duration};
            impl AuthorizationStore for $store {
                async fn claim_authorizations(
                    &self,
                    now: Timestamp,
                    lease: Duration,
                    limit: u32,
                ) -> Result<Vec<AuthorizationRecord>> {
                    let found = $crate::read(self, (now, limit), |db, (now, limit)| {
                        $crate::shared($crate::offers::claims::find(db, *now, *limit))
                    })
                    .await?;
                    if found.is_empty() {
                        return Ok(Vec::new());
                    }
                    $crate::write(self, (found, now, lease), |db, (found, now, lease)| {
                        $crate::shared($crate::offers::claims::claim(db, found, *now, *lease))
                    })
                    .await
                }

                async fn use_sign_in(&self, nonce: [u8; 32], expires_at: Timestamp) -> Result<bool> {
                    $crate::write(self, (nonce, expires_at), |db, (nonce, until)| {
                        $crate::shared($crate::sessions::use_solution(db, nonce, *until))
                    })
                    .await
                }
            }
            write open_authorization(new: NewAuthorization, lease: Duration)
                -> AuthorizationOpened = offers::authorizations::open;
            read authorization(id: &AuthorizationId) -> Option<AuthorizationRecord> = offers::authorizations::by_id;
            read authorization_executed_in(tx: TxRef) -> Option<AuthorizationRecord> = offers::authorizations::by_tx;
            read first_key(account: &AccountId) -> Option<KeyHash> = keys::first_secret;
            write extend_claim(id: &AuthorizationId, until: Timestamp) -> () = offers::claims::extend;
            write assign_gas_place(id: &AuthorizationId, wallet: Address, lowest: u64)
                -> Option<u64> = offers::places::assign;
            write add_submission(id: &AuthorizationId, submission: Submission) -> bool = offers::submissions::add;
            write credit_authorization(id: &AuthorizationId, credit: PaymentCredit)
                -> AuthorizationCredited = offers::authorizations::credit;
            write fail_authorization(id: &AuthorizationId, failure: SettlementFailure, now: Timestamp)
                -> bool = offers::authorizations::fail;
            write use_authorization(id: &AuthorizationId, used: Credits, now: Timestamp)
                -> Option<AuthorizationRecord> = offers::authorizations::set_used;
            read unsettled_usage(payer: &Address) -> Vec<AuthorizationRecord> = offers::authorizations::unsettled_usage;
            read unpaid_usage(limit: u32) -> Vec<AuthorizationRecord> = offers::authorizations::unpaid_usage;
            write reopen_authorization(id: &AuthorizationId, until: Timestamp)
                -> Option<AuthorizationRecord> = offers::authorizations::reopen;
            read authorization_by_identifier(payer: &Address, identifier: &IdentifierHash)
                -> Option<AuthorizationRecord> = offers::authorizations::by_identifier;
        }
    };
}
