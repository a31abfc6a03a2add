//! The part of the storage contract for OAuth.

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyNumber;
use crate::clock::Timestamp;
use crate::oauth::{Grant, GrantId, OAuthClient};
use crate::store::{Store, StoreError};

/// Stores clients that registered, and grants.
///
/// The key of a grant is changed like other keys. A code or a refresh token is used in one transaction with the change of its
/// key ([`in_transaction`](crate::store::in_transaction)).
#[async_trait]
pub trait OAuthStore: Store {
    /// Stores a client that registers. When there are `most` of them, it replaces the one that expires first, which has
    /// no token, and a flood of registrations must not keep others from registering. `false`, and nothing changes, when
    /// all expire later than it.
    async fn register_oauth_client(&self, client: OAuthClient, most: u64) -> Result<bool, StoreError>;

    /// The registered client with this id, expired or not.
    async fn oauth_client(&self, id: &str) -> Result<Option<OAuthClient>, StoreError>;

    /// Keeps a registered client until then. Does nothing if it is gone.
    async fn keep_oauth_client(&self, id: &str, until: Timestamp) -> Result<(), StoreError>;

    /// Stores a grant, in place of the one with its id.
    async fn put_oauth_grant(&self, grant: Grant) -> Result<(), StoreError>;

    /// The grant with this id, expired or not.
    async fn oauth_grant(&self, id: &GrantId) -> Result<Option<Grant>, StoreError>;

    /// The grant whose last access token has this hash.
    async fn oauth_grant_of(&self, secret: &KeyHash) -> Result<Option<Grant>, StoreError>;

    /// The grants of an account, expired or not.
    async fn oauth_grants(&self, account: &AccountId) -> Result<Vec<Grant>, StoreError>;

    /// Deletes a grant, and returns whether there was one. Its key is kept.
    async fn delete_oauth_grant(&self, id: &GrantId) -> Result<bool, StoreError>;

    /// The newest secret of a key that does not expire, unless it is revoked. The key of a grant has none until its owner
    /// rotates it: access tokens expire.
    async fn lasting_secret(&self, account: &AccountId, key: KeyNumber) -> Result<Option<KeyHash>, StoreError>;

    /// Makes the secret of a key expire then. Does nothing if there is no such secret.
    async fn expire_secret(&self, secret: &KeyHash, at: Timestamp) -> Result<(), StoreError>;
}
