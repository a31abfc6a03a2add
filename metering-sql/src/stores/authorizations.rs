/// Implements [`AuthorizationStore`](metering_core::store::AuthorizationStore).
#[macro_export]
macro_rules! authorization_store {
    ($store:ty) => {
        const _: () = {
            use ::core::time::Duration;

            use $crate::offers::{authorizations, claims, places, submissions};
            use $crate::private::metering_core::access::KeyHash;
            use $crate::private::metering_core::chains::{Address, TxRef};
            use $crate::private::metering_core::offers::*;
            use $crate::private::metering_core::store::{
                AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit,
            };
            use $crate::private::metering_core::{AccountId, Credits, StoreError, Timestamp};
            use $crate::{read, shared, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::AuthorizationStore for $store {
                async fn open_authorization(
                    &self,
                    new: NewAuthorization,
                    lease: Duration,
                ) -> Result<AuthorizationOpened> {
                    write(self, (new, lease), |db, (new, lease)| shared(authorizations::open(db, new, *lease))).await
                }

                async fn authorization(&self, id: &AuthorizationId) -> Result<Option<AuthorizationRecord>> {
                    read(self, *id, |db, id| shared(authorizations::by_id(db, id))).await
                }

                async fn authorization_executed_in(&self, tx: TxRef) -> Result<Option<AuthorizationRecord>> {
                    read(self, tx, |db, tx| shared(authorizations::by_tx(db, *tx))).await
                }

                async fn first_key(&self, account: &AccountId) -> Result<Option<KeyHash>> {
                    read(self, account.clone(), |db, account| shared($crate::keys::first_secret(db, account))).await
                }

                async fn claim_authorizations(
                    &self,
                    now: Timestamp,
                    lease: Duration,
                    limit: u32,
                ) -> Result<Vec<AuthorizationRecord>> {
                    let found =
                        read(self, (now, limit), |db, (now, limit)| shared(claims::find(db, *now, *limit))).await?;
                    if found.is_empty() {
                        return Ok(Vec::new());
                    }
                    write(self, (found, now, lease), |db, (found, now, lease)| {
                        shared(claims::claim(db, found, *now, *lease))
                    })
                    .await
                }

                async fn extend_claim(&self, id: &AuthorizationId, until: Timestamp) -> Result<()> {
                    write(self, (*id, until), |db, (id, until)| shared(claims::extend(db, id, *until))).await
                }

                async fn assign_gas_place(
                    &self,
                    id: &AuthorizationId,
                    wallet: Address,
                    lowest: u64,
                ) -> Result<Option<u64>> {
                    let args = (*id, wallet, lowest);
                    write(self, args, |db, (id, wallet, lowest)| shared(places::assign(db, id, *wallet, *lowest))).await
                }

                async fn add_submission(&self, id: &AuthorizationId, submission: Submission) -> Result<bool> {
                    write(self, (*id, submission), |db, (id, new)| shared(submissions::add(db, id, new))).await
                }

                async fn credit_authorization(
                    &self,
                    id: &AuthorizationId,
                    credit: PaymentCredit,
                ) -> Result<AuthorizationCredited> {
                    write(self, (*id, credit), |db, (id, credit)| shared(authorizations::credit(db, id, credit))).await
                }

                async fn fail_authorization(
                    &self,
                    id: &AuthorizationId,
                    failure: SettlementFailure,
                    now: Timestamp,
                ) -> Result<bool> {
                    let args = (*id, failure, now);
                    write(self, args, |db, (id, failure, now)| shared(authorizations::fail(db, id, *failure, *now)))
                        .await
                }

                async fn use_authorization(
                    &self,
                    id: &AuthorizationId,
                    used: Credits,
                    now: Timestamp,
                ) -> Result<Option<AuthorizationRecord>> {
                    let args = (*id, used, now);
                    write(self, args, |db, (id, used, now)| shared(authorizations::set_used(db, id, *used, *now))).await
                }

                async fn unsettled_usage(&self, payer: &Address) -> Result<Vec<AuthorizationRecord>> {
                    read(self, *payer, |db, payer| shared(authorizations::unsettled_usage(db, payer))).await
                }

                async fn unpaid_usage(&self, limit: u32) -> Result<Vec<AuthorizationRecord>> {
                    read(self, limit, |db, limit| shared(authorizations::unpaid_usage(db, *limit))).await
                }

                async fn reopen_authorization(
                    &self,
                    id: &AuthorizationId,
                    until: Timestamp,
                ) -> Result<Option<AuthorizationRecord>> {
                    write(self, (*id, until), |db, (id, until)| shared(authorizations::reopen(db, id, *until))).await
                }

                async fn authorization_by_identifier(
                    &self,
                    payer: &Address,
                    identifier: &IdentifierHash,
                ) -> Result<Option<AuthorizationRecord>> {
                    read(self, (*payer, *identifier), |db, (payer, identifier)| {
                        shared(authorizations::by_identifier(db, payer, identifier))
                    })
                    .await
                }

                async fn use_sign_in(&self, nonce: [u8; 32], expires_at: Timestamp) -> Result<bool> {
                    write(self, (nonce, expires_at), |db, (nonce, until)| {
                        shared($crate::sessions::use_solution(db, nonce, *until))
                    })
                    .await
                }
            }
        };
    };
}
