//! Secrets that are issued once and stored only as a hash: API keys, quote nonces and session tokens.
//!
//! They differ in their prefix, their length, and how they are checked: see [`SecretKind`].

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::random::{Randomness, push_base62};

/// The differences between kinds of secrets.
pub trait SecretKind {
    /// The name of the secret's type, for `Debug`.
    const NAME: &'static str;
    /// The name of the hash's type, for `Debug`.
    const HASH_NAME: &'static str;
    /// The prefix of its text.
    const PREFIX: &'static str;
    /// How many random base-62 digits follow the prefix.
    const RANDOM_DIGITS: usize;
    /// How many digits of a checksum follow those.
    const CHECKSUM_DIGITS: usize = 0;
    /// Why a text is not such a secret.
    type Malformed;

    /// Appends the checksum to a new secret.
    fn complete(_text: &mut String) {}

    /// The hash by which stores find such a secret: SHA3-256, unless it was issued elsewhere.
    fn digest(text: &str) -> [u8; 32] {
        Sha3_256::digest(text.as_bytes()).into()
    }

    /// The last characters of a text, if they may be shown to its owner; otherwise zeros.
    fn shown_end(_text: &str) -> [u8; 4] {
        [0; 4]
    }

    /// Checks the form of a text.
    ///
    /// # Errors
    /// When it is not such a secret.
    fn check(text: &str) -> Result<(), Self::Malformed>;
}

/// A secret. Its text is wiped from memory on drop and never printed; [`Secret::expose`] is the only way to read it.
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::signups::SessionToken;
///
/// let token = SessionToken::generate(&SystemRandomness);
/// assert_eq!(SessionToken::parse(token.expose())?.hash(), token.hash());
/// assert_eq!(format!("{token:?}"), "SessionToken(sst_…)");
/// assert!(SessionToken::parse("sk_live_1234").is_err());
/// # Ok::<(), metering_core::signups::MalformedToken>(())
/// ```
#[derive(Clone)]
pub struct Secret<K> {
    text: Zeroizing<String>,
    kind: PhantomData<K>,
}

/// The hash of a secret, by which stores find its owner: its SHA3-256 (FIPS 202), except for keys of another service
/// ([`HashKind`](crate::access::HashKind)).
///
/// A fast hash is enough: secrets have at least 190 random bits, so they cannot be guessed.
///
/// Hashes of the same bytes are equal. A secret that was generated from a key, not from bytes, also has the key's
/// [`hint`](crate::access::KeyHint), to store with it.
#[derive(Clone, Copy)]
pub struct SecretHash<K> {
    bytes: [u8; 32],
    /// The value of [`SecretKind::shown_end`]; zeros if it was made of bytes.
    pub(crate) end: [u8; 4],
    kind: PhantomData<K>,
}

impl<K: SecretKind> Secret<K> {
    /// Generates a new one.
    #[must_use]
    pub fn generate(randomness: &dyn Randomness) -> Self {
        let bytes = K::PREFIX.len() + K::RANDOM_DIGITS + K::CHECKSUM_DIGITS;
        // Large enough from the start: growing it would leave a copy in memory.
        let mut text = Zeroizing::new(String::with_capacity(bytes));
        text.push_str(K::PREFIX);
        push_base62(randomness, K::RANDOM_DIGITS, &mut text);
        K::complete(&mut text);
        Self { text, kind: PhantomData }
    }

    /// Parses one. This checks its format only; only a store can tell whether it was issued.
    ///
    /// # Errors
    /// When the text is not such a secret.
    pub fn parse(text: &str) -> Result<Self, K::Malformed> {
        K::check(text)?;
        Ok(Self { text: Zeroizing::new(text.to_owned()), kind: PhantomData })
    }

    /// Its text, to show to its owner once.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Its hash, which a store keeps instead.
    #[must_use]
    pub fn hash(&self) -> SecretHash<K> {
        SecretHash { bytes: K::digest(&self.text), end: K::shown_end(&self.text), kind: PhantomData }
    }
}

impl<K> SecretHash<K> {
    /// A hash read back from a store.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { bytes, end: [0; 4], kind: PhantomData }
    }

    /// The 32 bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl<K> PartialEq for SecretHash<K> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<K> Eq for SecretHash<K> {}

impl<K> PartialOrd for SecretHash<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for SecretHash<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl<K> Hash for SecretHash<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl<K: SecretKind> fmt::Debug for Secret<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}…)", K::NAME, K::PREFIX)
    }
}

impl<K: SecretKind> fmt::Debug for SecretHash<K> {
    /// Shows the first four bytes: enough to tell two hashes apart in a log, too few to search a dump with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}…)", K::HASH_NAME, hex::encode(&self.bytes[..4]))
    }
}

/// Implements [`SecretKind`] for a secret that is only a prefix and 43 random digits. `$malformed` is a unit struct.
macro_rules! token {
    ($kind:ident: $secret:ident, $hash:ident, $prefix:literal, $malformed:ident) => {
        impl $crate::secret::SecretKind for $kind {
            const NAME: &'static str = stringify!($secret);
            const HASH_NAME: &'static str = stringify!($hash);
            const PREFIX: &'static str = $prefix;
            /// 43 base-62 digits are 256 bits.
            const RANDOM_DIGITS: usize = 43;
            type Malformed = $malformed;

            fn check(text: &str) -> Result<(), $malformed> {
                if $crate::secret::has_form::<Self>(text) { Ok(()) } else { Err($malformed) }
            }
        }
    };
}

pub(crate) use token;

/// Whether a text is exactly the prefix of a kind and its random digits.
pub(crate) fn has_form<K: SecretKind>(text: &str) -> bool {
    let digits = text.strip_prefix(K::PREFIX);
    digits.is_some_and(|digits| digits.len() == K::RANDOM_DIGITS && digits.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::ApiKey;
    use crate::payments::QuoteNonce;
    use crate::random::SystemRandomness;
    use crate::signups::SessionToken;

    fn is_generated_parsed_and_hidden<K: SecretKind>(parse: fn(&str) -> Result<Secret<K>, K::Malformed>)
    where
        K::Malformed: fmt::Debug,
    {
        let (a, b) = (Secret::<K>::generate(&SystemRandomness), Secret::<K>::generate(&SystemRandomness));
        assert_ne!(a.expose(), b.expose());
        assert_ne!(a.hash().as_bytes(), b.hash().as_bytes());
        assert_eq!(parse(a.expose()).unwrap().hash().as_bytes(), a.hash().as_bytes());
        assert_eq!(a.text.capacity(), a.text.len(), "it never grew");
        assert_eq!(format!("{a:?}"), format!("{}({}…)", K::NAME, K::PREFIX));
        assert_eq!(format!("{:?}", a.hash()), format!("{}({}…)", K::HASH_NAME, hex::encode(&a.hash().as_bytes()[..4])));
    }

    #[test]
    fn secrets_of_every_kind_parse_differ_and_are_not_printed() {
        is_generated_parsed_and_hidden(ApiKey::parse);
        is_generated_parsed_and_hidden(QuoteNonce::parse);
        is_generated_parsed_and_hidden(SessionToken::parse);
    }
}
