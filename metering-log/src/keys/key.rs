//! A private or public key of Ed25519 (RFC 8032).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A private key. It is wiped from memory on drop and never printed.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

/// The bytes or the text are not a key of Ed25519.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an Ed25519 key")]
pub struct MalformedKey;

impl PrivateKey {
    /// The key of a seed: 32 random bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a key in PEM (PKCS #8, RFC 8410), as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// When the text is another kind of key, encrypted or damaged.
    pub fn from_pem(text: &str) -> Result<Self, MalformedKey> {
        SigningKey::from_pkcs8_pem(text).map(Self).map_err(|_| MalformedKey)
    }

    /// The key in PEM (PKCS #8), for a file that only its owner can read.
    ///
    /// # Errors
    /// None is known.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, MalformedKey> {
        // Without the public key, which OpenSSL does not read here.
        let key = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        key.to_pkcs8_pem(LineEnding::LF).map_err(|_| MalformedKey)
    }

    /// Its public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.public())
    }
}

/// A public key. Its text is its thumbprint (RFC 7638), by which key sets and receipts name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(VerifyingKey);

/// This key did not make the signature over this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature is not one of this key")]
pub struct BadSignature;

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// When there is no such key, or anyone could sign for it.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, MalformedKey> {
        VerifyingKey::from_bytes(bytes).ok().filter(|key| !key.is_weak()).map(Self).ok_or(MalformedKey)
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Reads a key in PEM (`SubjectPublicKeyInfo`, RFC 8410).
    ///
    /// # Errors
    /// When the text is another kind of key, or damaged.
    pub fn from_pem(text: &str) -> Result<Self, MalformedKey> {
        Self::from_bytes(&VerifyingKey::from_public_key_pem(text).map_err(|_| MalformedKey)?.to_bytes())
    }

    /// The key in PEM.
    ///
    /// # Errors
    /// None is known.
    pub fn to_pem(self) -> Result<String, MalformedKey> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|_| MalformedKey)
    }

    /// Checks a signature, as strictly as RFC 8032 allows: no two signatures of one message are accepted as the same.
    ///
    /// # Errors
    /// When this key did not make it over this message.
    pub fn verify(self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let signature = Signature::from_slice(signature).map_err(|_| BadSignature)?;
        self.0.verify_strict(message, &signature).map_err(|_| BadSignature)
    }

    /// Its thumbprint (RFC 7638; RFC 8037, appendix A.3), in base64url.
    #[must_use]
    pub fn thumbprint(self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.to_bytes());
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        URL_SAFE_NO_PAD.encode(Sha256::digest(members.as_bytes()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.thumbprint())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410, section 10.3 and 10.1.
    const PRIVATE_PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC_PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn pem_round_trips_as_in_rfc_8410() {
        let key = PrivateKey::from_pem(PRIVATE_PEM).unwrap();
        assert_eq!(*key.to_pem().unwrap(), PRIVATE_PEM);
        assert_eq!(key.public().to_pem().unwrap(), PUBLIC_PEM);
        assert_eq!(PublicKey::from_pem(PUBLIC_PEM).unwrap(), key.public());
    }

    #[test]
    fn other_pem_is_refused() {
        for text in ["", "no key", PUBLIC_PEM, &PRIVATE_PEM.replace("MC4C", "MC4D"), &PRIVATE_PEM[1..]] {
            assert_eq!(PrivateKey::from_pem(text).unwrap_err(), MalformedKey);
        }
        assert_eq!(PublicKey::from_pem(PRIVATE_PEM), Err(MalformedKey));
    }

    #[test]
    fn signatures_are_of_one_key_and_message() {
        let key = PrivateKey::from_seed(&[7; 32]);
        let signature = key.sign(b"message");
        assert_eq!(key.public().verify(b"message", &signature), Ok(()));
        assert_eq!(key.public().verify(b"massage", &signature), Err(BadSignature));
        assert_eq!(PrivateKey::from_seed(&[8; 32]).public().verify(b"message", &signature), Err(BadSignature));
        assert_eq!(key.public().verify(b"message", &signature[..63]), Err(BadSignature));
        for bit in 0..512 {
            let mut damaged = signature;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.public().verify(b"message", &damaged), Err(BadSignature), "bit {bit}");
        }
    }

    #[test]
    fn keys_for_which_anybody_can_sign_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        assert_eq!(PublicKey::from_bytes(&one), Err(MalformedKey));
        assert_eq!(PublicKey::from_bytes(&[0; 32]), Err(MalformedKey));
    }

    #[test]
    fn debug_shows_no_private_key() {
        let key = PrivateKey::from_seed(&[7; 32]);
        assert_eq!(format!("{key:?}"), format!("PrivateKey({})", key.public().thumbprint()));
    }
}
