//! Applies operations on authorizations to the store and the model.

use std::time::Duration;

use metering_core::clock::Timestamp;
use metering_core::offers::{AuthorizationId, AuthorizationRecord, IdentifierHash, SignedAuthorization};
use metering_core::store::{NewAuthorization, PaymentCredit};

use super::super::authorization_scene::{self, credit, new, submission};
use super::super::operation::AuthorizationOperation;
use super::super::sale::{tx, wallet};
use super::super::scene::atoms;
use super::{Pair, account_id};

/// The authorization with this number. There are two payers, so that the ids that clients give collide.
fn signed(number: u8) -> SignedAuthorization {
    let mut signed = authorization_scene::signed(number);
    signed.authorization.from = wallet(number % 2);
    signed
}

/// The id of the authorization with this number.
fn id(number: u8) -> AuthorizationId {
    signed(number).id()
}

/// Sorts claims for comparison: the contract leaves the order of claims that ended at the same time open.
fn sorted(mut claimed: Vec<AuthorizationRecord>) -> Vec<AuthorizationRecord> {
    claimed.sort_by_key(|record| record.signed.id());
    claimed
}

impl Pair {
    fn later(&self, seconds: u8) -> Timestamp {
        self.now.saturating_add(Duration::from_secs(seconds.into()))
    }

    pub(super) async fn authorize(&mut self, operation: AuthorizationOperation) {
        match operation {
            AuthorizationOperation::Open { number, account, lease, identifier } => {
                let account = self.number(account).map_or(account_id(0), |number| self.model.id(number));
                let identifier = identifier.map(|number| IdentifierHash::from_bytes([number; 32]));
                let new = NewAuthorization {
                    signed: signed(number),
                    identifier,
                    received_at: self.now,
                    ..new(&account, number)
                };
                let expected = self.model.open_authorization(new.clone(), self.later(lease));
                let outcome = self.store.open_authorization(new, Duration::from_secs(lease.into())).await.unwrap();
                assert_eq!(outcome, expected, "whether the authorization was stored");
            }
            AuthorizationOperation::SignIn { nonce } => {
                let expires_at = self.later(nonce);
                let expected = self.model.use_solution([0xF0 + nonce; 32], expires_at);
                let is_new = self.store.use_sign_in([0xF0 + nonce; 32], expires_at).await.unwrap();
                assert_eq!(is_new, expected, "whether the sign-in was new");
            }
            AuthorizationOperation::Claim { lease } => {
                let expected = self.model.claim_authorizations(self.now, self.later(lease));
                let lease = Duration::from_secs(lease.into());
                let claimed = self.store.claim_authorizations(self.now, lease, u32::MAX).await.unwrap();
                assert_eq!(sorted(claimed), sorted(expected), "the claimed authorizations");
            }
            AuthorizationOperation::Extend { number, seconds } => {
                self.model.extend_claim(&id(number), self.later(seconds));
                self.store.extend_claim(&id(number), self.later(seconds)).await.unwrap();
            }
            AuthorizationOperation::Place { number, wallet: gas, lowest } => {
                let (gas, lowest) = (wallet(200 + gas), u64::from(lowest));
                let expected = self.model.assign_gas_place(&id(number), gas, lowest);
                let place = self.store.assign_gas_place(&id(number), gas, lowest).await.unwrap();
                assert_eq!(place, expected, "the place of the authorization");
            }
            AuthorizationOperation::Submit { number, hash } => {
                let expected = self.model.add_submission(&id(number), submission(hash));
                let stored = self.store.add_submission(&id(number), submission(hash)).await.unwrap();
                assert_eq!(stored, expected, "whether the transaction was stored");
            }
            AuthorizationOperation::Credit { number, account, hash, atoms: amount } => {
                let own = self.model.authorization(&id(number)).map(|record| record.account);
                let other = account.and_then(|account| self.number(account)).map(|number| self.model.id(number));
                let account = other.or(own).unwrap_or(account_id(0));
                let mut credit = PaymentCredit { now: self.now, ..credit(&account, number, tx(hash)) };
                credit.entry.amount = atoms(amount);
                let expected = self.model.credit_authorization(&id(number), &credit);
                let outcome = self.store.credit_authorization(&id(number), credit).await.unwrap();
                assert_eq!(outcome, expected, "whether the authorization was credited");
            }
            AuthorizationOperation::Fail { number, failure } => {
                let expected = self.model.fail_authorization(&id(number), failure, self.now);
                let failed = self.store.fail_authorization(&id(number), failure, self.now).await.unwrap();
                assert_eq!(failed, expected, "whether the authorization failed");
            }
        }
    }
}
