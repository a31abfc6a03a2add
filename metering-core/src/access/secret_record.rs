use crate::access::account::AccountId;
use crate::access::hash_kind::HashKind;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyNumber;
use crate::clock::Timestamp;

/// A secret that a key has or had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRecord {
    /// Its hash.
    pub hash: KeyHash,
    /// The function that made the hash.
    pub hash_kind: HashKind,
    /// The account.
    pub account: AccountId,
    /// The key.
    pub key: KeyNumber,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it stops working, if it was replaced with a grace period.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}
