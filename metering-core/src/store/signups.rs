//! The part of the storage contract for free signups.

use async_trait::async_trait;

use crate::access::account::Account;
use crate::access::email::Email;
use crate::access::key::KeyHash;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::signups::link::{EmailLink, LinkHash};
use crate::signups::signup::{SessionHash, SignupSession, UserCode};
use crate::store::{NewAccount, Store, StoreError};

/// Stores signup sessions, the used solutions of bot challenges, and the links that are sent by email.
///
/// As in [`Store`], each method is one atomic operation, and expected outcomes are values.
///
/// ```
/// use std::time::Duration;
///
/// use metering_core::store::SignupStore;
/// use metering_core::{Clock, SystemClock};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = SqliteStore::in_memory()?;
/// let expires_at = SystemClock.now().saturating_add(Duration::from_secs(600));
/// assert!(store.use_solution([7; 32], expires_at).await?);
/// assert!(!store.use_solution([7; 32], expires_at).await?); // a solution counts once
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait SignupStore: Store {
    /// Stores a session that is not approved, unless [`open_signup`](crate::backend::decision::open_signup)
    /// refuses it.
    async fn open_signup(&self, session: SignupSession) -> Result<SignupOpened, StoreError>;

    /// The session with that token, if it is stored and not yet redeemed.
    async fn signup(&self, token: &SessionHash) -> Result<Option<SignupSession>, StoreError>;

    /// The session with that user code, if it is stored and not redeemed.
    async fn signup_of_code(&self, code: &UserCode) -> Result<Option<SignupSession>, StoreError>;

    /// Approves the session with that user code, if it is pending at `now` and its email address is still free.
    async fn approve_signup(&self, code: &UserCode, now: Timestamp) -> Result<SignupApproved, StoreError>;

    /// Turns an approved session into an account, once: creates the account and removes the session in one operation.
    /// An id or a key that any account ever had is an error, and nothing changes.
    /// [`redeem_signup`](crate::backend::decision::redeem_signup) has the refusals in order.
    async fn redeem_signup(
        &self,
        token: &SessionHash,
        account: NewAccount,
        now: Timestamp,
    ) -> Result<SignupRedeemed, StoreError>;

    /// The account that holds an email address, unless it is revoked.
    async fn account_by_email(&self, email: &Email) -> Result<Option<Account>, StoreError>;

    /// Stores a link that is sent by email, in place of the account's older one for the same purpose. `false`, and
    /// nothing changes, when [`open_email_link`](crate::backend::decision::open_email_link) refuses it.
    async fn open_email_link(&self, link: EmailLink) -> Result<bool, StoreError>;

    /// The link with this token, live or not. It is unchanged.
    async fn email_link(&self, token: &LinkHash) -> Result<Option<EmailLink>, StoreError>;

    /// Uses up a link that is live at `now`, marks the email address of its account as verified, and grants the free
    /// credits that the account waits for: all in one operation. If several accounts wait for one address, exactly one
    /// gets it, and the credits with it. [`verify_email`](crate::backend::decision::verify_email) has the refusals in
    /// order; a refusal changes nothing.
    async fn verify_email(&self, token: &LinkHash, now: Timestamp) -> Result<EmailVerified, StoreError>;

    /// Uses up a link that is live at `now` and replaces the key of its account, as [`Store::replace_key`] does.
    /// `None`, and nothing changes, when the link is not live or its account is revoked.
    async fn recover_key(&self, token: &LinkHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError>;

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

/// The outcome of [`SignupStore::verify_email`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmailVerified {
    /// It was verified.
    Account {
        /// The account afterwards.
        account: Account,
        /// The free credits that it got.
        granted: Credits,
    },
    /// There is no such link, it expired, or its account is revoked or already verified.
    NotLive,
    /// Another account holds the address.
    EmailTaken,
    /// The balance or a total could not hold the free credits.
    OutOfRange,
}
