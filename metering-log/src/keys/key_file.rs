//! Keys in files, with rotation: new keys are added at the end, and the last private one signs.

use crate::keys::jwk::{Jwk, JwkError, JwkSet, Jwks};
use crate::keys::key::{PrivateKey, PublicKey};

/// The keys of an operator: one signs, and all are published, so that earlier signatures stay verifiable.
///
/// A file has keys in PEM (`PRIVATE KEY`, PKCS #8; `PUBLIC KEY`), one after another, or is a JWK or JWK set. To rotate, add
/// a new private key after the others. For a key that no longer signs, the public part is enough.
///
/// ```
/// use metering_log::keys::{KeyRing, PrivateKey};
///
/// let [old, new] = [7, 8].map(|seed| PrivateKey::from_seed(&[seed; 32]));
/// let file = format!("{}{}", old.public().to_pem()?, *new.to_pem()?);
/// let ring = KeyRing::parse([file.as_str()])?;
/// assert_eq!(ring.signing().public(), new.public());
/// assert!(ring.published().find(&old.public().thumbprint()).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyRing {
    signing: PrivateKey,
    published: Vec<PublicKey>,
}

/// Why a file's keys cannot be used. No error shows the file's contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// There is no private key to sign with.
    #[error("no private key: expected an Ed25519 key in PEM (PRIVATE KEY) or as JWK")]
    NoPrivateKey,
    /// A PEM block is not a readable key.
    #[error("the key at line {line} is not an Ed25519 key in PEM: expected PRIVATE KEY (PKCS #8) or PUBLIC KEY")]
    Pem {
        /// Where the block begins, in its file.
        line: usize,
    },
    /// A JWK cannot be used.
    #[error(transparent)]
    Jwk(#[from] JwkError),
    /// A JWK is not an Ed25519 key.
    #[error("a JSON Web Key is not an Ed25519 key: expected kty OKP and crv Ed25519")]
    OtherKey,
}

enum Key {
    Private(PrivateKey),
    Public(PublicKey),
}

impl KeyRing {
    /// Reads the texts of one or more files, in this order: of a folder, sorted by name, so that the last name signs.
    ///
    /// # Errors
    /// When there is no private key, or one of the keys cannot be read.
    pub fn parse<'a>(files: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyFileError> {
        let mut signing = None;
        let mut published = Vec::new();
        for file in files {
            let keys = if file.trim_start().starts_with('{') { read_json(file) } else { read_pem(file) };
            for key in keys? {
                let public = match key {
                    Key::Private(key) => {
                        let public = key.public();
                        signing = Some(key);
                        public
                    }
                    Key::Public(key) => key,
                };
                if !published.contains(&public) {
                    published.push(public);
                }
            }
        }
        Ok(Self { signing: signing.ok_or(KeyFileError::NoPrivateKey)?, published })
    }

    /// The key that signs.
    #[must_use]
    pub fn signing(&self) -> &PrivateKey {
        &self.signing
    }

    /// All public keys, to publish.
    #[must_use]
    pub fn published(&self) -> JwkSet {
        JwkSet::new(self.published.iter().copied())
    }
}

fn read_json(file: &str) -> Result<Vec<Key>, KeyFileError> {
    let keys = match serde_json::from_str::<Jwks>(file) {
        Ok(set) => set.keys,
        Err(_) => vec![serde_json::from_str(file).map_err(|error| JwkError::Json { line: error.line() })?],
    };
    let read = |jwk: &Jwk| {
        if !jwk.is_ed25519() {
            return Err(KeyFileError::OtherKey);
        }
        Ok(jwk.private()?.map_or(Key::Public(jwk.public()?), Key::Private))
    };
    keys.iter().map(read).collect()
}

fn read_pem(file: &str) -> Result<Vec<Key>, KeyFileError> {
    let mut keys = Vec::new();
    let mut done = 0;
    while let Some(found) = file[done..].find("-----BEGIN ") {
        let begin = done + found;
        // To the end of the line that ends the block: what follows may be a comment.
        let last_line = file[begin..].find("-----END ").map_or(file.len(), |end| begin + end);
        done = file[last_line..].find('\n').map_or(file.len(), |end| last_line + end);
        let block = file[begin..done].trim_end();
        let key = if block.starts_with("-----BEGIN PUBLIC KEY-----") {
            PublicKey::from_pem(block).map(Key::Public)
        } else {
            PrivateKey::from_pem(block).map(Key::Private)
        };
        let line = file[..begin].matches('\n').count() + 1;
        keys.push(key.map_err(|_| KeyFileError::Pem { line })?);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::from_seed(&[seed; 32])
    }

    fn pem(seed: u8) -> String {
        key(seed).to_pem().unwrap().to_string()
    }

    fn names(ring: &KeyRing) -> Vec<String> {
        ring.published().iter().map(|(kid, _)| kid.to_owned()).collect()
    }

    #[test]
    fn the_last_private_key_signs_and_all_are_published() {
        let expected = [1, 2, 3].map(|seed| key(seed).public().thumbprint());
        let one_file = format!("{}# made in 2026\n\n{}{}", pem(1), pem(2), pem(3));
        let (first, rest) = (format!("# made in 2025\n{}", pem(1)), format!("{}{}", pem(2), pem(3)));
        for files in
            [vec![one_file.as_str()], vec![first.as_str(), rest.as_str()], vec![first.as_str(), rest.as_str(), ""]]
        {
            let ring = KeyRing::parse(files).unwrap();
            assert_eq!(ring.signing().public(), key(3).public());
            assert_eq!(names(&ring), expected);
        }
        // A public key at the end is published but does not sign.
        let retired = format!("{}{}{}", pem(1), pem(2), key(3).public().to_pem().unwrap());
        let ring = KeyRing::parse([retired.as_str()]).unwrap();
        assert_eq!(ring.signing().public(), key(2).public());
        assert_eq!(names(&ring), expected);
    }

    #[test]
    fn keys_are_read_as_jwk_too() {
        let jwk = r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let set = format!("\n{{\"keys\":[{jwk}]}}");
        for file in [jwk, &set] {
            let ring = KeyRing::parse([file]).unwrap();
            assert_eq!(names(&ring), ["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"]);
        }
        let other = r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#;
        assert_eq!(KeyRing::parse([other]).unwrap_err(), KeyFileError::OtherKey);
    }

    #[test]
    fn unusable_files_are_named_without_their_content() {
        let public = key(1).public().to_pem().unwrap();
        assert_eq!(KeyRing::parse([]).unwrap_err(), KeyFileError::NoPrivateKey);
        assert_eq!(KeyRing::parse([""]).unwrap_err(), KeyFileError::NoPrivateKey);
        assert_eq!(KeyRing::parse([public.as_str()]).unwrap_err(), KeyFileError::NoPrivateKey);
        let damaged = format!("{}{}", pem(1), pem(2).replace("MC4C", "MC4D"));
        assert_eq!(KeyRing::parse([damaged.as_str()]).unwrap_err(), KeyFileError::Pem { line: 4 });
        let error = KeyRing::parse([r#"{"kty":"OKP","d":5}"#]).unwrap_err();
        assert_eq!(error, KeyFileError::Jwk(JwkError::Json { line: 1 }));
    }

    #[test]
    fn debug_shows_no_private_key() {
        let shown = format!("{:?}", KeyRing::parse([pem(7).as_str()]).unwrap());
        assert!(!shown.contains(pem(7).lines().nth(1).unwrap()));
        assert!(shown.contains(&key(7).public().thumbprint()));
    }
}
