//! The part of the storage contract for authorizations.

use std::time::Duration;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::access::key::KeyHash;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::charging::delivery::Fingerprint;
use crate::charging::hold::HoldId;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::offers::{
    AuthorizationId, AuthorizationRecord, IdentifierHash, SettlementFailure, SignedAuthorization, Submission,
};
use crate::store::{PaymentCredit, PaymentStore, StoreError};

/// Stores authorizations from acceptance until they are credited or have failed.
///
/// An authorization keeps its one record, so it credits one account once. A process that settles it may crash at any
/// time; another process then claims it and continues. Two processes may settle the same one: each step is taken once.
///
/// [`PaymentStore::settle_payment`] changes authorizations too: if it reverses the payment of a credited one, that one
/// is pending again, with the claim that it had last; if it restores the payment of one that is pending or has failed
/// since, that one is credited.
#[async_trait]
pub trait AuthorizationStore: PaymentStore {
    /// Stores an accepted authorization, claimed for `lease`.
    async fn open_authorization(
        &self,
        new: NewAuthorization,
        lease: Duration,
    ) -> Result<AuthorizationOpened, StoreError>;

    /// The record of an authorization.
    async fn authorization(&self, id: &AuthorizationId) -> Result<Option<AuthorizationRecord>, StoreError>;

    /// The authorization that this transaction executed, if it was credited for it.
    async fn authorization_executed_in(&self, tx: TxRef) -> Result<Option<AuthorizationRecord>, StoreError>;

    /// The newest secret of an account's first key that is not revoked. `None` when there is no such account, it is
    /// revoked, or the key leaked.
    async fn first_key(&self, account: &AccountId) -> Result<Option<KeyHash>, StoreError>;

    /// Claims at most `limit` pending authorizations that nobody has claimed at `now`, those whose claims ended longest
    /// ago first, for a process that continues them within `lease`. Each goes to only one of several callers.
    async fn claim_authorizations(
        &self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<AuthorizationRecord>, StoreError>;

    /// Claims a pending authorization until `until`, even if another process has claimed it. Does nothing if it is not
    /// pending.
    async fn extend_claim(&self, id: &AuthorizationId, until: Timestamp) -> Result<(), StoreError>;

    /// The place of an authorization's transaction among those of its wallet. `None`, and nothing changes, when it is
    /// not pending.
    ///
    /// The authorization keeps the place that it has, if that is in the same wallet and not below `lowest`. Otherwise
    /// it gets the lowest returned place from `lowest` on, or else the next place that no authorization of this chain
    /// and wallet has had. `lowest` is how many transactions of the wallet are in the chain. A place in another wallet
    /// is returned, as in [`AuthorizationStore::fail_authorization`]: a wallet cannot continue after a gap.
    async fn assign_gas_place(
        &self,
        id: &AuthorizationId,
        wallet: Address,
        lowest: u64,
    ) -> Result<Option<u64>, StoreError>;

    /// Stores a transaction before it is sent. `false`, and nothing changes, when the authorization is not pending, or
    /// has no place. One that is stored already, by its hash, is not stored again.
    async fn add_submission(&self, id: &AuthorizationId, submission: Submission) -> Result<bool, StoreError>;

    /// Credits an executed authorization: the writes of [`PaymentStore::credit_payment`], and the new state of the
    /// authorization, in one operation. The caller has checked that the payment is this authorization's.
    ///
    /// [`credit_authorization`](crate::backend::decision::credit_authorization) has the refusals in order.
    async fn credit_authorization(
        &self,
        id: &AuthorizationId,
        credit: PaymentCredit,
    ) -> Result<AuthorizationCredited, StoreError>;

    /// Records that an authorization cannot be executed. `false`, and nothing changes, when it is not pending. If no
    /// transaction was signed for it, its place is returned.
    async fn fail_authorization(
        &self,
        id: &AuthorizationId,
        failure: SettlementFailure,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Records the amount that a usage authorization's request used, once. From then on, it is executed for that
    /// amount; if the amount is zero, it is not executed, and has [expired](SettlementFailure::Expired). Its record
    /// after that; `None`, and nothing changes, when it is not pending, or that is known already.
    ///
    /// [`use_authorization`](crate::backend::decision::use_authorization) decides.
    async fn use_authorization(
        &self,
        id: &AuthorizationId,
        used: Credits,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRecord>, StoreError>;

    /// The authorizations of this payer for usage that are pending, or were [not paid](AuthorizationRecord::is_unpaid).
    async fn unsettled_usage(&self, payer: &Address) -> Result<Vec<AuthorizationRecord>, StoreError>;

    /// The newest authorizations for usage that were [not paid](AuthorizationRecord::is_unpaid), at most `limit`.
    async fn unpaid_usage(&self, limit: u32) -> Result<Vec<AuthorizationRecord>, StoreError>;

    /// Makes an authorization that has failed pending again, claimed until `until`: it can be executed after all, or
    /// was. Its record after that; `None`, and nothing changes, when it has not failed.
    async fn reopen_authorization(
        &self,
        id: &AuthorizationId,
        until: Timestamp,
    ) -> Result<Option<AuthorizationRecord>, StoreError>;

    /// The authorization of this payer whose client gave it this id.
    async fn authorization_by_identifier(
        &self,
        payer: &Address,
        identifier: &IdentifierHash,
    ) -> Result<Option<AuthorizationRecord>, StoreError>;

    /// Uses up a wallet's sign-in, by the hash of its nonce; `false` when it was used before. It is remembered until
    /// `expires_at`, after which no sign-in with this nonce is accepted; then
    /// [`Store::forget_expired`](crate::Store::forget_expired) deletes it.
    ///
    /// It is kept among the used solutions of bot challenges
    /// ([`SignupStore::use_solution`](crate::store::SignupStore::use_solution)), so it must not equal one of these by
    /// chance: hash the nonce with a distinct prefix.
    async fn use_sign_in(&self, nonce: [u8; 32], expires_at: Timestamp) -> Result<bool, StoreError>;
}

/// An authorization to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuthorization {
    /// The authorization, already checked.
    pub signed: SignedAuthorization,
    /// The account to credit.
    pub account: AccountId,
    /// The credits that it buys.
    pub credits: Credits,
    /// The request that it came with, if that had no key.
    pub request: Option<Fingerprint>,
    /// The id that its client gave it.
    pub identifier: Option<IdentifierHash>,
    /// When it was accepted.
    pub received_at: Timestamp,
    /// The hold that it backs, if it is for the usage of its request.
    pub usage: Option<HoldId>,
}

/// The outcome of [`AuthorizationStore::open_authorization`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationOpened {
    /// It was stored.
    Opened(AuthorizationRecord),
    /// It was stored before, perhaps for another account. The existing record.
    Known(AuthorizationRecord),
    /// Another authorization of its payer has its id.
    IdentifierUsed,
    /// There is no such account, or it is revoked.
    NoSuchAccount,
}

/// The outcome of [`AuthorizationStore::credit_authorization`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationCredited {
    /// It was credited. The account after it.
    Account(Account),
    /// It was credited before, or has failed. The existing record.
    NotPending(AuthorizationRecord),
    /// The transaction was used before, or an open quote expects this payment. Nothing changed.
    TxUsed,
    /// There is no such authorization of this account, or the account is revoked.
    NoSuchAccount,
    /// The balance or a total would be out of range.
    OutOfRange,
}
