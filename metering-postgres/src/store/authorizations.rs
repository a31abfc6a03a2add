//! Implements the storage contract for authorizations.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::access::KeyHash;
use metering_core::chains::{Address, TxRef};
use metering_core::offers::{AuthorizationId, AuthorizationRecord, IdentifierHash, SettlementFailure, Submission};
use metering_core::store::{
    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization, PaymentCredit,
};
use metering_core::{AccountId, StoreError, Timestamp};

use crate::access::keys;
use crate::offers::{authorizations, claims, places, rows, states, submissions};
use crate::store::PostgresStore;
use metering_sql::sessions;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl AuthorizationStore for PostgresStore {
    async fn open_authorization(&self, new: NewAuthorization, lease: Duration) -> Result<AuthorizationOpened> {
        self.write(|write| Box::pin(authorizations::open(write, new.clone(), lease))).await
    }

    async fn authorization(&self, id: &AuthorizationId) -> Result<Option<AuthorizationRecord>> {
        let id = *id;
        let found = self.read(move |client| Box::pin(async move { rows::by_id(client, &id).await })).await?;
        Ok(found.map(|(_, record)| record))
    }

    async fn authorization_executed_in(&self, tx: TxRef) -> Result<Option<AuthorizationRecord>> {
        let found = self.read(move |client| Box::pin(async move { rows::by_tx(client, tx).await })).await?;
        Ok(found.map(|(_, record)| record))
    }

    async fn first_key(&self, account: &AccountId) -> Result<Option<KeyHash>> {
        self.read(|client| {
            let account = account.clone();
            Box::pin(async move { keys::first_secret(client, &account).await })
        })
        .await
    }

    async fn claim_authorizations(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<AuthorizationRecord>> {
        let found = self.read(move |client| Box::pin(claims::find(client, now, limit))).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|write| {
            let found = found.clone();
            Box::pin(async move { claims::claim(write, &found, now, lease).await })
        })
        .await
    }

    async fn extend_claim(&self, id: &AuthorizationId, until: Timestamp) -> Result<()> {
        let id = *id;
        self.write(move |write| Box::pin(async move { claims::extend(write, &id, until).await })).await
    }

    async fn assign_gas_place(&self, id: &AuthorizationId, wallet: Address, lowest: u64) -> Result<Option<u64>> {
        let id = *id;
        self.write(move |write| Box::pin(async move { places::assign(write, &id, wallet, lowest).await })).await
    }

    async fn add_submission(&self, id: &AuthorizationId, submission: Submission) -> Result<bool> {
        let id = *id;
        self.write(move |write| {
            let submission = submission.clone();
            Box::pin(async move { submissions::add(write, &id, &submission).await })
        })
        .await
    }

    async fn credit_authorization(&self, id: &AuthorizationId, credit: PaymentCredit) -> Result<AuthorizationCredited> {
        let id = *id;
        self.write(move |write| {
            let credit = credit.clone();
            Box::pin(async move { authorizations::credit(write, &id, credit).await })
        })
        .await
    }

    async fn fail_authorization(
        &self,
        id: &AuthorizationId,
        failure: SettlementFailure,
        now: Timestamp,
    ) -> Result<bool> {
        let id = *id;
        self.write(move |write| Box::pin(async move { states::fail(write, &id, failure, now).await })).await
    }

    async fn reopen_authorization(
        &self,
        id: &AuthorizationId,
        until: Timestamp,
    ) -> Result<Option<AuthorizationRecord>> {
        let id = *id;
        self.write(move |write| Box::pin(async move { states::reopen(write, &id, until).await })).await
    }

    async fn authorization_by_identifier(
        &self,
        payer: &Address,
        identifier: &IdentifierHash,
    ) -> Result<Option<AuthorizationRecord>> {
        let (payer, identifier) = (*payer, *identifier);
        let found =
            self.read(move |client| Box::pin(async move { rows::by_identifier(client, &payer, &identifier).await }));
        Ok(found.await?.map(|(_, record)| record))
    }

    async fn use_sign_in(&self, nonce: [u8; 32], expires_at: Timestamp) -> Result<bool> {
        let args = (nonce, expires_at);
        metering_sql::write(self, args, |db, (nonce, at)| Box::pin(sessions::use_solution(db, nonce, *at))).await
    }
}
