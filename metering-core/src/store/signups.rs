//! The part of the storage contract for free signups.

use async_trait::async_trait;

use crate::access::account::Account;
use crate::clock::Timestamp;
use crate::signups::signup::{SessionHash, SignupSession, UserCode};
use crate::store::{NewAccount, Store, StoreError};

/// Stores signup sessions, and the used solutions of bot challenges.
///
/// As in [`Store`], each method is one atomic operation, and expected outcomes are values.
///
/// ```
/// use std::time::Duration;
///
/// use metering_core::{Clock, MemoryStore, SignupStore, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let expires_at = SystemClock.now().saturating_add(Duration::from_secs(600));
/// assert!(store.use_solution([7; 32], expires_at).await?);
/// assert!(!store.use_solution([7; 32], expires_at).await?); // a solution counts once
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait SignupStore: Store {
    /// Stores a session that is not approved, unless [`open_signup`](crate::store::backend::decision::open_signup)
    /// refuses it.
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened, StoreError>;

    /// The session with that token, if it is stored and not redeemed.
    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>, StoreError>;

    /// The session with that user code, if it is stored and not redeemed.
    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>, StoreError>;

    /// Approves the session with that user code, if it is pending at `now` and its email address is still free.
    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved, StoreError>;

    /// Turns an approved session into an account, once: creates the account and removes the session in one operation.
    /// An id or a key that any account ever had is an error, and nothing changes.
    /// [`redeem_signup`](crate::store::backend::decision::redeem_signup) has the refusals in order.
    async fn redeem_signup(
        &self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError>;

    /// Marks a solution of a bot challenge as used; `false` when it was used before. The mark is kept until
    /// `expires_at`, when the challenge itself expires.
    async fn use_solution(&self, solution: [u8; 32], expires_at: Timestamp) -> Result<bool, StoreError>;
}

/// The outcome of [`SignupStore::open_signup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignupOpened {
    /// It was stored.
    Opened,
    /// An account has its email address.
    EmailTaken,
    /// Another session has its user code; generate a new one.
    CodeTaken,
}

/// The outcome of [`SignupStore::approve_signup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignupApproved {
    /// It was approved.
    Approved,
    /// No pending session has that code.
    NotPending,
    /// An account now has its email address.
    EmailTaken,
}

/// The outcome of [`SignupStore::redeem_signup`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignupRedeemed {
    /// The new account.
    Account(Account),
    /// No redeemable session has that token.
    NotApproved,
    /// An account now has its email address.
    EmailTaken,
    /// The entries add up to more than a balance can hold.
    OutOfRange,
}
