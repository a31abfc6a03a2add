//! The secret that binds challenges to this service.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::wire::mpp::{INTENT, METHOD};

/// As long as the output of SHA-256.
const MIN_BYTES: usize = 32;
/// Separates the secrets that are derived for challenges from all others.
const PURPOSE: &[u8] = b"metering: the secret of payment challenges";
/// Separates the masks of keys from the ids of challenges, which start with a realm. A realm is never empty.
const MASK_PURPOSE: &[u8] = b"|key|";

/// The secret that the ids of challenges are made with. All nodes of a service need the same one. It is wiped from
/// memory on drop and never printed.
///
/// ```
/// use metering_pay::wire::mpp::ChallengeSecret;
///
/// let secret = ChallengeSecret::new(&[7; 32])?;
/// assert_eq!(format!("{secret:?}"), "ChallengeSecret(…)");
/// assert!(ChallengeSecret::new(b"short").is_err());
/// # Ok::<(), metering_pay::wire::mpp::ShortChallengeSecret>(())
/// ```
#[derive(Clone)]
pub struct ChallengeSecret(Zeroizing<Vec<u8>>);

/// The secret is too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret of payment challenges must have at least {MIN_BYTES} bytes")]
pub struct ShortChallengeSecret;

/// The data that an id binds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'c> {
    pub(super) realm: &'c str,
    pub(super) request: &'c str,
    pub(super) expires: &'c str,
    pub(super) header: Option<&'c str>,
    pub(super) opaque: &'c str,
}

impl ChallengeSecret {
    /// The secret with these bytes, which must be unpredictable.
    ///
    /// # Errors
    /// When there are fewer than 32 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, ShortChallengeSecret> {
        if bytes.len() < MIN_BYTES { Err(ShortChallengeSecret) } else { Ok(Self(Zeroizing::new(bytes.to_vec()))) }
    }

    /// A secret derived from another one, such as a wallet's private key, without revealing it. Nodes with the same
    /// secret derive the same one.
    ///
    /// ```
    /// use metering_pay::wire::mpp::ChallengeSecret;
    ///
    /// let derived = ChallengeSecret::derived_from(&[7; 32])?;
    /// assert_eq!(format!("{derived:?}"), "ChallengeSecret(…)");
    /// assert!(ChallengeSecret::derived_from(b"short").is_err());
    /// # Ok::<(), metering_pay::wire::mpp::ShortChallengeSecret>(())
    /// ```
    ///
    /// # Errors
    /// When the other secret has fewer than 32 bytes.
    pub fn derived_from(secret: &[u8]) -> Result<Self, ShortChallengeSecret> {
        let derived = Self::new(secret)?.hmac().chain_update(PURPOSE).finalize().into_bytes();
        Ok(Self(Zeroizing::new(derived.to_vec())))
    }

    /// Hides the hash of a key in a challenge, or reveals it again. `unique` is the text that no other challenge has.
    pub(super) fn mask(&self, unique: &str, bytes: &[u8; 32]) -> [u8; 32] {
        let mask = self.hmac().chain_update(MASK_PURPOSE).chain_update(unique).finalize().into_bytes();
        std::array::from_fn(|index| bytes[index] ^ mask[index])
    }

    /// The secret of the vectors.
    #[cfg(test)]
    pub(super) fn of_vectors() -> Self {
        Self(Zeroizing::new(b"test-secret".to_vec()))
    }

    /// The id of a challenge: 43 digits.
    pub(super) fn id(&self, bound: Bound<'_>) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(bound).finalize().into_bytes())
    }

    /// Whether the id belongs to this challenge. Takes the same time for every wrong id.
    pub(super) fn issued(&self, id: &str, bound: Bound<'_>) -> bool {
        // Refuses padding and other spellings of the same bytes, since the nonce is a hash of the text.
        URL_SAFE_NO_PAD.decode(id).is_ok_and(|id| self.mac(bound).verify_slice(&id).is_ok())
    }

    /// The fields in the order of the published servers. None has a vertical bar: callers check that.
    fn mac(&self, bound: Bound<'_>) -> Hmac<Sha256> {
        let Bound { realm, request, expires, header, opaque } = bound;
        let mut mac = self.hmac();
        // The empty field is the digest of the request's body, which is not bound.
        let fields = [realm, METHOD, INTENT, request, expires, ""].into_iter().chain(header).chain([opaque]);
        for (index, field) in fields.enumerate() {
            if index > 0 {
                mac.update(b"|");
            }
            mac.update(field.as_bytes());
        }
        mac
    }

    fn hmac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any length")
    }
}

impl fmt::Debug for ChallengeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChallengeSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_secrets_and_masks_differ_with_everything_that_they_depend_on() {
        let [one, two] = [[1; 32], [2; 32]].map(|bytes| ChallengeSecret::new(&bytes).unwrap());
        let derived = ChallengeSecret::derived_from(&[1; 32]).unwrap();
        assert_ne!(derived.0, one.0);
        assert_eq!(derived.0, ChallengeSecret::derived_from(&[1; 32]).unwrap().0);
        assert_ne!(derived.0, ChallengeSecret::derived_from(&[2; 32]).unwrap().0);
        let hidden = one.mask("a", &[9; 32]);
        assert_eq!(one.mask("a", &hidden), [9; 32]);
        for other in [one.mask("b", &[9; 32]), two.mask("a", &[9; 32]), one.mask("a", &[8; 32]), [9; 32]] {
            assert_ne!(hidden, other);
        }
    }
}
