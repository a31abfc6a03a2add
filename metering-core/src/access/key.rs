//! API keys and their checksum.

use sha2::Sha256;
use sha3::{Digest, Sha3_256};

use crate::access::hash_kind::HashKind;
use crate::lower_hex::is_lower_hex;
use crate::random::BASE62;
use crate::secret::{Secret, SecretHash, SecretKind};

const PREFIX: &str = "sk_live_";
/// 32 base-62 digits are 190 bits, too many to guess at any rate.
const SECRET_DIGITS: usize = 32;
const CHECKSUM_DIGITS: usize = 6;
const KEY_BYTES: usize = PREFIX.len() + SECRET_DIGITS + CHECKSUM_DIGITS;
/// Keys that were imported have 96 lower-case hex digits instead, without a checksum.
const IMPORTED_DIGITS: usize = 96;
/// So many lower-case hex digits are not the beginning of a key of ours by chance.
const TELLING_DIGITS: usize = 12;

/// An API key: `sk_live_`, 32 random base-62 digits, and the CRC-32 of both in six more digits.
///
/// The checksum is not a security measure. The checksum lets mistyped or truncated keys and random garbage be rejected
/// without a store lookup, and lets secret scanners recognise real keys.
///
/// A key that was imported from another service may be `sk_live_` and 96 lower-case hex digits instead, until it is
/// rotated. Such keys are never generated.
///
/// ```
/// use metering_core::{ApiKey, SystemRandomness};
///
/// let key = ApiKey::generate(&SystemRandomness);
/// assert_eq!(ApiKey::parse(key.expose())?.hash(), key.hash());
/// assert_eq!(format!("{key:?}"), "ApiKey(sk_live_…)");
/// # Ok::<(), metering_core::access::MalformedKey>(())
/// ```
pub type ApiKey = Secret<ApiKeyKind>;

/// The hash of an API key, by which a store finds its account: [`HashKind`] says which.
pub type KeyHash = SecretHash<ApiKeyKind>;

/// The kind of secret that an [`ApiKey`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiKeyKind {}

/// Why the text is not an API key. The text alone shows it; no store lookup is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedKey {
    /// The `Authorization` header has another scheme.
    #[error("the Authorization header must be 'Bearer', a space and the key")]
    Scheme,
    /// It does not start like a key.
    #[error("this is not an API key of this service (a key starts with sk_live_)")]
    Prefix,
    /// It is too short or too long.
    #[error("this is not an API key of this service (a key has 46 characters; this one is cut off or too long)")]
    Length,
    /// It is too short or too long for a key of the service that accounts were imported from.
    #[error(
        "this is not an API key of this service (a key of this form has 104 characters; this one is cut off or too long)"
    )]
    ImportedLength,
    /// It has characters that no key has.
    #[error("this is not an API key of this service (after sk_live_, a key has only letters and digits)")]
    Alphabet,
    /// Its checksum does not match.
    #[error("this is not an API key of this service (its checksum is wrong, so a character was mistyped or lost)")]
    Checksum,
}

impl SecretKind for ApiKeyKind {
    const NAME: &'static str = "ApiKey";
    const HASH_NAME: &'static str = "KeyHash";
    const PREFIX: &'static str = PREFIX;
    const RANDOM_DIGITS: usize = SECRET_DIGITS;
    const CHECKSUM_DIGITS: usize = CHECKSUM_DIGITS;
    type Malformed = MalformedKey;

    fn complete(text: &mut String) {
        let checksum = checksum(text.as_bytes());
        text.extend(checksum.map(char::from));
    }

    fn digest(text: &str) -> [u8; 32] {
        match hash_kind(text) {
            HashKind::Sha3 => Sha3_256::digest(text.as_bytes()).into(),
            HashKind::Sha256 => Sha256::digest(text.as_bytes()).into(),
        }
    }

    /// Four of the six digits of the checksum: see [`KeyHint`](crate::access::KeyHint).
    fn shown_end(text: &str) -> [u8; 4] {
        text.as_bytes().last_chunk().copied().unwrap_or_default()
    }

    fn check(text: &str) -> Result<(), MalformedKey> {
        if hash_kind(text) == HashKind::Sha256 {
            return Ok(());
        }
        let bytes = text.as_bytes();
        if !text.starts_with(PREFIX) {
            return Err(MalformedKey::Prefix);
        }
        if bytes.len() != KEY_BYTES {
            let digits = &text[PREFIX.len()..];
            let imported = digits.len() >= TELLING_DIGITS && is_lower_hex(digits);
            return Err(if imported { MalformedKey::ImportedLength } else { MalformedKey::Length });
        }
        let (body, digits) = bytes.split_at(KEY_BYTES - CHECKSUM_DIGITS);
        if !bytes[PREFIX.len()..].iter().all(u8::is_ascii_alphanumeric) {
            return Err(MalformedKey::Alphabet);
        }
        if digits == checksum(body) { Ok(()) } else { Err(MalformedKey::Checksum) }
    }
}

impl ApiKey {
    /// The function that makes its hash. The forms of keys never overlap, so each key has one hash.
    #[must_use]
    pub fn hash_kind(&self) -> HashKind {
        hash_kind(self.expose())
    }

    /// Parses the value of an `Authorization` header: `Bearer` (case-insensitive) and the key (RFC 9110, 11.1).
    ///
    /// ```
    /// use metering_core::access::MalformedKey;
    /// use metering_core::{ApiKey, SystemRandomness};
    ///
    /// let key = ApiKey::generate(&SystemRandomness);
    /// let sent = ApiKey::from_authorization(&format!("Bearer {}", key.expose()))?;
    /// assert_eq!(sent.hash(), key.hash());
    /// assert_eq!(ApiKey::from_authorization("Basic bWU6cHc=").err(), Some(MalformedKey::Scheme));
    /// # Ok::<(), MalformedKey>(())
    /// ```
    ///
    /// # Errors
    /// When the scheme is not `Bearer` or the rest is not a key.
    pub fn from_authorization(value: &str) -> Result<Self, MalformedKey> {
        let (scheme, rest) = value.split_once(' ').ok_or(MalformedKey::Scheme)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(MalformedKey::Scheme);
        }
        Self::parse(rest.trim_matches(' '))
    }
}

/// The kind of hash that a key of this form has. Only imported keys have theirs.
fn hash_kind(text: &str) -> HashKind {
    match text.strip_prefix(PREFIX) {
        Some(digits) if digits.len() == IMPORTED_DIGITS && is_lower_hex(digits) => HashKind::Sha256,
        _ => HashKind::Sha3,
    }
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_DIGITS] {
    let mut rest = crc32fast::hash(body);
    let mut digits = [b'0'; CHECKSUM_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

/// What is wrong with a key. Faults visible in its text are reported to any client. Whether a key ever existed is not
/// revealed: unknown and revoked keys get the same error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// The header is sent more than once, or is not text.
    #[error("send the API key once, as text, in one header")]
    Ambiguous,
    /// It is not a key.
    #[error(transparent)]
    Malformed(#[from] MalformedKey),
    /// It has the form of a key but is unknown or revoked.
    #[error("this API key is not live: it is unknown here, was revoked or replaced, or was switched off")]
    NotLive,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;
    use proptest::prelude::*;

    /// This must never change: issued keys must stay valid.
    const KEY: &str = "sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV28hqg7";

    #[test]
    fn the_format_of_issued_keys_never_changes() {
        let key = ApiKey::parse(KEY).unwrap();
        assert_eq!(hex::encode(key.hash().as_bytes()), hex::encode(Sha3_256::digest(KEY.as_bytes())));
    }

    #[test]
    fn imported_keys_have_no_checksum_and_are_hashed_with_sha256() {
        let digits = "0123456789abcdef".repeat(6);
        let text = format!("sk_live_{digits}");
        let key = ApiKey::parse(&text).unwrap();
        assert_eq!(key.hash_kind(), HashKind::Sha256);
        assert_eq!(hex::encode(key.hash().as_bytes()), hex::encode(Sha256::digest(text.as_bytes())));
        assert_eq!(ApiKey::parse(KEY).unwrap().hash_kind(), HashKind::Sha3);
        let refused = [
            format!("sk_live_{}", &digits[1..]),
            format!("sk_live_{digits}0"),
            format!("sk_live_{}A", &digits[1..]),
            format!("sk_live_{}g", &digits[1..]),
            format!("sk_test_{digits}"),
            digits,
        ];
        for text in refused {
            assert!(ApiKey::parse(&text).is_err(), "{text}");
        }
        let cut = |key: &str, kept: usize| ApiKey::parse(&key[..PREFIX.len() + kept]).unwrap_err();
        for kept in [12, 37, 39, 95] {
            assert_eq!(cut(&text, kept), MalformedKey::ImportedLength, "reports the length of the imported form");
        }
        assert_eq!((cut(&text, 3), cut(KEY, 30)), (MalformedKey::Length, MalformedKey::Length));
    }

    #[test]
    fn every_single_typo_is_caught() {
        let key = ApiKey::generate(&SystemRandomness);
        for position in 0..KEY_BYTES {
            let mut typo = key.expose().as_bytes().to_vec();
            typo[position] = if typo[position] == b'a' { b'b' } else { b'a' };
            let typo = String::from_utf8(typo).unwrap();
            assert!(ApiKey::parse(&typo).is_err(), "position {position}");
        }
    }

    #[test]
    fn the_bearer_scheme_is_read_in_any_case() {
        let table = [
            (format!("Bearer {KEY}"), true),
            (format!("bearer {KEY}"), true),
            (format!("BEARER   {KEY} "), true),
            (format!("Basic {KEY}"), false),
            (KEY.to_owned(), false),
            (format!("Bearer{KEY}"), false),
            (format!("Bearer {KEY}x"), false),
            ("Bearer ".to_owned(), false),
            (String::new(), false),
        ];
        for (value, valid) in table {
            assert_eq!(ApiKey::from_authorization(&value).is_ok(), valid, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_without_panic(text in "\\PC{0,60}") {
            prop_assert!(ApiKey::parse(&text).is_err());
            prop_assert!(ApiKey::from_authorization(&text).is_err());
        }
    }
}
