//! The part of the storage contract for sessions of browsers.

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::browser_session::{BrowserSession, BrowserSessionId, BrowserTokenHash, NewBrowserSession};
use crate::signups::link::LinkHash;
use crate::store::{Store, StoreError};

/// Stores the sessions of browsers.
///
/// Whether the key of a session is live is not decided here: callers look up its secret
/// ([`KeyStore::key_holder`](crate::store::KeyStore::key_holder)) with each request, so a rotation or a revocation ends
/// sessions immediately, in every process.
#[async_trait]
pub trait BrowserSessionStore: Store {
    /// Stores a session, and ends the account's least recently used ones if it has too many. `false`, and nothing
    /// changes, when [`open_browser_session`](crate::backend::decision::open_browser_session) refuses it.
    async fn open_browser_session(&self, session: BrowserSession) -> Result<bool, StoreError>;

    /// Uses up a link that was sent by email, and stores a session of the first key of its account. `None`, and nothing
    /// changes, when [`sign_in_by_link`](crate::backend::decision::sign_in_by_link) refuses it.
    async fn sign_in_by_link(
        &self,
        link: &LinkHash,
        new: NewBrowserSession,
    ) -> Result<Option<BrowserSession>, StoreError>;

    /// The session with this token, expired or not.
    async fn browser_session(&self, token: &BrowserTokenHash) -> Result<Option<BrowserSession>, StoreError>;

    /// Writes when a session was last used, and until when it lasts. Does nothing if it has been ended.
    async fn use_browser_session(&self, session: &BrowserSession) -> Result<(), StoreError>;

    /// The sessions of an account, expired ones too, the most recently used first.
    async fn browser_sessions(&self, account: &AccountId) -> Result<Vec<BrowserSession>, StoreError>;

    /// Ends those sessions of an account, and returns how many there were.
    async fn end_browser_sessions(&self, account: &AccountId, ids: &[BrowserSessionId]) -> Result<u64, StoreError>;
}
