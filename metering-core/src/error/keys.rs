//! Errors for callers whose changes their keys do not allow.

use crate::access::issued_key::Key;

/// Why the state of the keys does not allow a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyConflict {
    /// It is the account's first key.
    #[error(
        "This is the account's first key: it keeps all scopes, does not expire, and cannot be disabled or deleted. \
         Rotate it instead."
    )]
    FirstKey,
    /// It leaked.
    #[error("This key was reported as leaked, so its secret no longer works. Rotate it instead.")]
    Leaked,
    /// The account has reached its limit of keys.
    #[error("The account has reached its limit of keys. Delete one first.")]
    TooMany,
    /// The chain of keys would be too long.
    #[error(
        "A chain of keys has at most {} keys, and this key is the last of its chain. Use one of its parents instead.",
        Key::MAX_DEPTH
    )]
    TooDeep,
}
