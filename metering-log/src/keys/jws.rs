//! Signed statements: JWS in the compact form (RFC 7515) with Ed25519 (RFC 8037).
//!
//! There is one algorithm, so a statement cannot choose how it is verified.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::keys::jwk::JwkSet;
use crate::keys::key::{PrivateKey, PublicKey};

/// The header of a JWS, except for its algorithm. Other members are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JwsHeader {
    /// Which key signed: a thumbprint, or another name such as a DID URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    /// The kind of statement, so that one kind cannot pass for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typ: Option<String>,
}

/// The whole header.
#[derive(Serialize, Deserialize)]
struct Protected {
    alg: String,
    #[serde(flatten)]
    header: JwsHeader,
    /// Extensions that a verifier must understand (RFC 7515, section 4.1.11): none are supported.
    #[serde(default, skip_serializing)]
    crit: Option<serde_json::Value>,
}

/// Why a JWS is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// The text does not have three parts in base64url, or its header is not a JSON object with `alg`.
    #[error("not a JWS in the compact form")]
    Malformed,
    /// It was signed with another algorithm, or with none.
    #[error("the JWS is signed with {0:?}; only EdDSA (Ed25519) is accepted")]
    Algorithm(String),
    /// It has extensions that must be understood.
    #[error("the JWS has critical extensions, which are not supported")]
    Critical,
    /// The key set has no key of this name.
    #[error("no key {0:?} in the key set")]
    UnknownKey(String),
    /// The key did not make this signature over this header and payload.
    #[error("the signature of the JWS is not valid")]
    BadSignature,
}

/// Signs a payload: `header.payload.signature`, each in base64url.
///
/// ```
/// use metering_log::keys::{JwkSet, Jws, JwsHeader, PrivateKey, sign_jws};
///
/// let key = PrivateKey::from_seed(&[7; 32]);
/// let header = JwsHeader { kid: Some(key.public().thumbprint()), typ: Some("metering-receipt".to_owned()) };
/// let signed = sign_jws(&header, br#"{"amount":"1"}"#, &key);
///
/// let published = JwkSet::new([key.public()]);
/// assert_eq!(Jws::parse(&signed)?.verify_with(&published)?, br#"{"amount":"1"}"#);
/// # Ok::<(), metering_log::keys::JwsError>(())
/// ```
#[must_use]
pub fn sign_jws(header: &JwsHeader, payload: &[u8], key: &PrivateKey) -> String {
    let header = Protected { alg: "EdDSA".to_owned(), header: header.clone(), crit: None };
    let header = serde_json::to_string(&header).unwrap_or_default();
    let mut text = URL_SAFE_NO_PAD.encode(header);
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut text);
    let signature = key.sign(text.as_bytes());
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut text);
    text
}

/// A JWS whose signature has not been checked yet.
#[derive(Clone, Debug)]
pub struct Jws<'a> {
    header: JwsHeader,
    signed: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Reads the compact form.
    ///
    /// # Errors
    /// When the text is not a JWS, or not a kind that [`Jws::verify`] can check.
    pub fn parse(text: &'a str) -> Result<Self, JwsError> {
        let (signed, signature) = text.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwsError::Malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| JwsError::Malformed);
        let header: Protected = serde_json::from_slice(&decode(header)?).map_err(|_| JwsError::Malformed)?;
        // RFC 9864 names the same algorithm Ed25519.
        if !matches!(header.alg.as_str(), "EdDSA" | "Ed25519") {
            return Err(JwsError::Algorithm(header.alg));
        }
        if header.crit.is_some() {
            return Err(JwsError::Critical);
        }
        Ok(Self { header: header.header, signed, payload: decode(payload)?, signature: decode(signature)? })
    }

    /// Its header, not verified yet: use it only to find the key.
    #[must_use]
    pub fn header(&self) -> &JwsHeader {
        &self.header
    }

    /// The payload, if this key signed it.
    ///
    /// # Errors
    /// When this key did not sign it.
    pub fn verify(&self, key: PublicKey) -> Result<&[u8], JwsError> {
        key.verify(self.signed.as_bytes(), &self.signature).map_err(|_| JwsError::BadSignature)?;
        Ok(&self.payload)
    }

    /// The payload, if the key of the set that its header names signed it.
    ///
    /// # Errors
    /// When the header names no key of the set, or that key did not sign it.
    pub fn verify_with(&self, keys: &JwkSet) -> Result<&[u8], JwsError> {
        let name = self.header.kid.as_deref().unwrap_or_default();
        self.verify(keys.find(name).ok_or_else(|| JwsError::UnknownKey(name.to_owned()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8037, appendix A.1 and A.4.
    const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    const SIGNED: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPO\
        t7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn key() -> PrivateKey {
        PrivateKey::from_seed(&URL_SAFE_NO_PAD.decode(SEED).unwrap().try_into().unwrap())
    }

    fn with_header(header: &str) -> String {
        let signed = format!("{}.e30", URL_SAFE_NO_PAD.encode(header));
        let signature = URL_SAFE_NO_PAD.encode(key().sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    #[test]
    fn signing_is_that_of_rfc_8037() {
        assert_eq!(sign_jws(&JwsHeader::default(), b"Example of Ed25519 signing", &key()), SIGNED);
        assert_eq!(Jws::parse(SIGNED).unwrap().verify(key().public()), Ok(b"Example of Ed25519 signing".as_slice()));
    }

    #[test]
    fn any_changed_character_is_found() {
        for place in 0..SIGNED.len() {
            let mut damaged = SIGNED.as_bytes().to_vec();
            damaged[place] = if damaged[place] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(damaged).unwrap();
            let verified = Jws::parse(&damaged).and_then(|jws| jws.verify(key().public()).map(<[u8]>::to_vec));
            assert!(verified.is_err(), "{damaged}");
        }
    }

    #[test]
    fn statements_cannot_choose_how_they_are_verified() {
        for (header, expected) in [
            (r#"{"alg":"none"}"#, JwsError::Algorithm("none".to_owned())),
            (r#"{"alg":"HS256"}"#, JwsError::Algorithm("HS256".to_owned())),
            (r#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#, JwsError::Critical),
            (r#"{"kid":"x"}"#, JwsError::Malformed),
            (r#"["EdDSA"]"#, JwsError::Malformed),
        ] {
            assert_eq!(Jws::parse(&with_header(header)).unwrap_err(), expected, "{header}");
        }
        assert!(Jws::parse(&with_header(r#"{"alg":"Ed25519","jku":"https://example.com"}"#)).is_ok());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "a", "a.b", "...", "e30.e30.", &format!("{SIGNED}.e30"), &format!("{SIGNED}=")] {
            assert_eq!(Jws::parse(text).unwrap_err(), JwsError::Malformed, "{text:?}");
        }
    }

    #[test]
    fn keys_are_found_by_name() {
        let set = JwkSet::new([key().public()]);
        let named = |kid: &str| JwsHeader { kid: Some(kid.to_owned()), typ: None };
        let signed = sign_jws(&named(&key().public().thumbprint()), b"{}", &key());
        assert_eq!(Jws::parse(&signed).unwrap().verify_with(&set), Ok(b"{}".as_slice()));
        let signed = sign_jws(&named("another"), b"{}", &key());
        let unknown = JwsError::UnknownKey("another".to_owned());
        assert_eq!(Jws::parse(&signed).unwrap().verify_with(&set), Err(unknown));
        assert!(Jws::parse(SIGNED).unwrap().verify_with(&set).is_err());
    }
}
