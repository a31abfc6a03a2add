//! The part of the storage contract that is about signing up without paying.

use std::fmt;

use async_trait::async_trait;

use crate::account::Account;
use crate::clock::Timestamp;
use crate::signup::{SessionHash, SignupSession, UserCode};
use crate::store::{NewAccount, StoreError};

/// Where signup sessions are kept, and which solutions of bot challenges were used.
///
/// As in [`Store`](crate::Store), each method is one atomic fact, and expected answers are values.
#[async_trait]
pub trait SignupStore: Send + Sync + fmt::Debug {
    /// Keeps a session that is not approved. Refused when an account that is not revoked has its email address, and
    /// then when another session that is remembered has its user code. A token that is in use is an error.
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened, StoreError>;

    /// The session of that token, if it is remembered and was not redeemed.
    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>, StoreError>;

    /// The session of that user code, if it is remembered and was not redeemed.
    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>, StoreError>;

    /// Approves the session of that user code, if it is pending at `now` and its email address is still free.
    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved, StoreError>;

    /// Turns an approved session into an account, once: the account is made and the session gone in one fact.
    /// [`SignupRedeemed::NotApproved`], and nothing changes, when there is no such session or it is not redeemable at
    /// `now`; [`SignupRedeemed::EmailTaken`] when its email address was given away meanwhile. An id or a key that an
    /// account ever had is an error, and nothing changes.
    async fn redeem_signup(
        &self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError>;

    /// Uses a solution of a bot challenge up; `false` when it was used before. It is remembered until `expires_at`, when
    /// the challenge itself is over.
    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool, StoreError>;
}

/// The answer to [`SignupStore::open_signup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignupOpened {
    /// It is kept.
    Opened,
    /// An account has its email address.
    EmailTaken,
    /// Another session has its user code; draw another.
    CodeTaken,
}

/// The answer to [`SignupStore::approve_signup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignupApproved {
    /// It is approved now.
    Approved,
    /// There is no pending session of that code.
    NotPending,
    /// An account has its email address by now.
    EmailTaken,
}

/// The answer to [`SignupStore::redeem_signup`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignupRedeemed {
    /// The account.
    Account(Account),
    /// There is no session of that token that can be redeemed.
    NotApproved,
    /// An account has its email address by now.
    EmailTaken,
    /// The entries add up to more than a balance can hold.
    OutOfRange,
}
