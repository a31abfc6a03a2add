//! Which hash function made a stored key hash.
//!
//! Looking up a key never needs it: the key's form determines how it is hashed. It is stored so that an export can name
//! the kind of each hash, and so that operators can see which keys still come from another service.

use crate::named_enum::named_enum;

named_enum! {
    /// The function that made the hash of an API key.
    ///
    /// ```
    /// use metering_core::access::HashKind;
    ///
    /// assert_eq!("sha256".parse(), Ok(HashKind::Sha256));
    /// assert_eq!(HashKind::default().to_string(), "sha3-256");
    /// ```
    #[derive(Default)]
    pub enum HashKind {
        /// SHA3-256 (FIPS 202): keys that were made here.
        #[default]
        Sha3 = "sha3-256",
        /// SHA-256 (FIPS 180-4): keys without a checksum, imported from another service.
        Sha256 = "sha256",
    }
    parsed as HashKindError
}

/// The text is not the name of a hash function that keys can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be sha3-256 (keys of this service) or sha256 (sk_live_ and 96 lower-case hex digits)")]
pub struct HashKindError;
