//! Implements the part of the storage contract for authorizations.

use std::time::Duration;

use async_trait::async_trait;
use metering_core::access::KeyHash;
use metering_core::chains::{Address, TxRef};
use metering_core::offers::{AuthorizationId, AuthorizationRecord, IdentifierHash, SettlementFailure, Submission};
use metering_core::store::{AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit};
use metering_core::{AccountId, AuthorizationStore, Timestamp};

use crate::access::keys;
use crate::error::Result;
use crate::journal::Snapshot;
use crate::offers::{authorizations, claims, places, rows, submissions};
use crate::store::SqliteStore;
use metering_sql::sessions;

#[async_trait]
impl AuthorizationStore for SqliteStore {
    async fn open_authorization(&self, new: NewAuthorization, lease: Duration) -> Result<AuthorizationOpened> {
        self.writer.write(move |snapshot| authorizations::open(snapshot, new, lease)).await
    }

    async fn authorization(&self, id: &AuthorizationId) -> Result<Option<AuthorizationRecord>> {
        let id = *id;
        let found = self.read(move |snapshot| rows::by_id(snapshot, &id)).await?;
        Ok(found.map(|(_, record)| record))
    }

    async fn authorization_executed_in(&self, tx: TxRef) -> Result<Option<AuthorizationRecord>> {
        let found = self.read(move |snapshot| rows::by_tx(snapshot, tx)).await?;
        Ok(found.map(|(_, record)| record))
    }

    async fn first_key(&self, account: &AccountId) -> Result<Option<KeyHash>> {
        let account = account.clone();
        self.read(move |snapshot| keys::first_secret(snapshot, &account)).await
    }

    async fn claim_authorizations(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<AuthorizationRecord>> {
        let rows = self.read(move |snapshot| claims::free(snapshot, now, limit)).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        self.writer.write(move |snapshot: &Snapshot<'_>| claims::claim(snapshot, &rows, now, lease)).await
    }

    async fn extend_claim(&self, id: &AuthorizationId, until: Timestamp) -> Result<()> {
        let id = *id;
        self.writer.write(move |snapshot: &Snapshot<'_>| claims::extend(snapshot, &id, until)).await
    }

    async fn assign_gas_place(&self, id: &AuthorizationId, wallet: Address, lowest: u64) -> Result<Option<u64>> {
        let id = *id;
        self.writer.write(move |snapshot: &Snapshot<'_>| places::assign(snapshot, &id, wallet, lowest)).await
    }

    async fn add_submission(&self, id: &AuthorizationId, submission: Submission) -> Result<bool> {
        let id = *id;
        self.writer.write(move |snapshot: &Snapshot<'_>| submissions::add(snapshot, &id, &submission)).await
    }

    async fn credit_authorization(&self, id: &AuthorizationId, credit: PaymentCredit) -> Result<AuthorizationCredited> {
        let id = *id;
        self.writer.write(move |snapshot| authorizations::credit(snapshot, &id, credit)).await
    }

    async fn fail_authorization(
        &self,
        id: &AuthorizationId,
        failure: SettlementFailure,
        now: Timestamp,
    ) -> Result<bool> {
        let id = *id;
        self.writer.write(move |snapshot: &Snapshot<'_>| authorizations::fail(snapshot, &id, failure, now)).await
    }

    async fn reopen_authorization(
        &self,
        id: &AuthorizationId,
        until: Timestamp,
    ) -> Result<Option<AuthorizationRecord>> {
        let id = *id;
        self.writer.write(move |snapshot: &Snapshot<'_>| authorizations::reopen(snapshot, &id, until)).await
    }

    async fn authorization_by_identifier(
        &self,
        payer: &Address,
        identifier: &IdentifierHash,
    ) -> Result<Option<AuthorizationRecord>> {
        let (payer, identifier) = (*payer, *identifier);
        let found = self.read(move |snapshot| rows::by_identifier(snapshot, &payer, &identifier)).await?;
        Ok(found.map(|(_, record)| record))
    }

    async fn use_sign_in(&self, nonce: [u8; 32], expires_at: Timestamp) -> Result<bool> {
        let args = (nonce, expires_at);
        metering_sql::write(self, args, |db, (nonce, at)| Box::pin(sessions::use_solution(db, nonce, *at))).await
    }
}
