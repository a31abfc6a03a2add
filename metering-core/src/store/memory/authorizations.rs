use std::time::Duration;

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyNumber;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::decision::{self, Decided};
use crate::offers::{AuthorizationId, AuthorizationRecord, IdentifierHash, SettlementFailure, Submission};
use crate::store::{
    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, MemoryStore, NewAuthorization, PaymentCredit,
    StoreError,
};

use super::state::{Secret, State};

impl State {
    fn first_key(&self, account: &AccountId) -> Option<KeyHash> {
        let (index, account) = self.found(account)?;
        let works = |secret: &&Secret| {
            secret.account == index
                && secret.key == KeyNumber::FIRST
                && secret.revoked_at.is_none()
                && secret.expires_at.is_none()
        };
        let first = self.keys.iter().find(|(_, secret)| works(secret));
        first.filter(|_| account.revoked_at.is_none()).map(|(hash, _)| *hash)
    }

    fn open_authorization(&mut self, new: NewAuthorization, lease: Duration) -> AuthorizationOpened {
        let known = self.authorizations.record(&new.signed.id()).cloned();
        let payer = &new.signed.authorization.from;
        let same = new.identifier.and_then(|identifier| self.authorizations.by_identifier(payer, &identifier));
        let has_same_identifier = same.is_some();
        let account = self.found(&new.account);
        match decision::open_authorization(new, known, has_same_identifier, account) {
            Decided::Refused(refusal) => refusal,
            Decided::Accepted((_, record)) => {
                let until = record.received_at.saturating_add(lease);
                self.authorizations.insert(record.clone(), until);
                AuthorizationOpened::Opened(record)
            }
        }
    }

    fn credit_authorization(&mut self, id: &AuthorizationId, credit: PaymentCredit) -> AuthorizationCredited {
        let (record, tx) = (self.authorizations.record(id).cloned(), credit.payment.tx);
        let facts = self.credit_facts(&credit);
        match decision::credit_authorization(credit, record, facts) {
            Decided::Refused(refusal) => refusal,
            Decided::Accepted(changes) => {
                self.authorizations.credited(id, tx);
                AuthorizationCredited::Account(self.write_credit(changes))
            }
        }
    }
}

#[async_trait]
impl AuthorizationStore for MemoryStore {
    async fn open_authorization(
        &self,
        new: NewAuthorization,
        lease: Duration,
    ) -> Result<AuthorizationOpened, StoreError> {
        Ok(self.state()?.open_authorization(new, lease))
    }

    async fn authorization(&self, id: &AuthorizationId) -> Result<Option<AuthorizationRecord>, StoreError> {
        Ok(self.state()?.authorizations.record(id).cloned())
    }

    async fn authorization_executed_in(&self, tx: TxRef) -> Result<Option<AuthorizationRecord>, StoreError> {
        Ok(self.state()?.authorizations.executed_in(tx).cloned())
    }

    async fn claim_authorizations(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<AuthorizationRecord>, StoreError> {
        Ok(self.state()?.authorizations.claim(now, lease, limit))
    }

    async fn extend_claim(&self, id: &AuthorizationId, until: Timestamp) -> Result<(), StoreError> {
        self.state()?.authorizations.extend_claim(id, until);
        Ok(())
    }

    async fn assign_gas_place(
        &self,
        id: &AuthorizationId,
        wallet: Address,
        lowest: u64,
    ) -> Result<Option<u64>, StoreError> {
        Ok(self.state()?.authorizations.assign_place(id, wallet, lowest))
    }

    async fn add_submission(&self, id: &AuthorizationId, submission: Submission) -> Result<bool, StoreError> {
        Ok(self.state()?.authorizations.add_submission(id, submission))
    }

    async fn credit_authorization(
        &self,
        id: &AuthorizationId,
        credit: PaymentCredit,
    ) -> Result<AuthorizationCredited, StoreError> {
        Ok(self.state()?.credit_authorization(id, credit))
    }

    async fn fail_authorization(
        &self,
        id: &AuthorizationId,
        failure: SettlementFailure,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.state()?.authorizations.fail(id, failure, now))
    }

    async fn reopen_authorization(
        &self,
        id: &AuthorizationId,
        until: Timestamp,
    ) -> Result<Option<AuthorizationRecord>, StoreError> {
        Ok(self.state()?.authorizations.reopen(id, until))
    }

    async fn first_key(&self, account: &AccountId) -> Result<Option<KeyHash>, StoreError> {
        Ok(self.state()?.first_key(account))
    }

    async fn authorization_by_identifier(
        &self,
        payer: &Address,
        identifier: &IdentifierHash,
    ) -> Result<Option<AuthorizationRecord>, StoreError> {
        Ok(self.state()?.authorizations.by_identifier(payer, identifier).cloned())
    }

    async fn use_sign_in(&self, nonce: [u8; 32], expires_at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.state()?.signups.use_once(nonce, expires_at))
    }
}
