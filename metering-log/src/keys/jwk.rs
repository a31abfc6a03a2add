//! JWK sets (RFC 7517) of Ed25519 keys (RFC 8037): where verifiers find the keys of receipts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::keys::key::{PrivateKey, PublicKey};

/// A key as JSON. A private one has `d`, which is never written.
#[derive(Serialize, Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(default, skip_serializing)]
    d: Option<Zeroizing<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    usage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
}

/// A JSON object with keys.
#[derive(Serialize, Deserialize)]
pub(crate) struct Jwks {
    pub(crate) keys: Vec<Jwk>,
}

/// Why a JWK cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwkError {
    /// The text is not JSON of this form. The error does not show the text, since it may contain a private key.
    #[error("not a JSON Web Key or key set (line {line})")]
    Json {
        /// Where reading failed.
        line: usize,
    },
    /// A key of Ed25519 whose members `x` or `d` are missing, damaged or do not belong together.
    #[error("the JSON Web Key has no valid Ed25519 key in x or d")]
    Malformed,
}

impl Jwk {
    /// Whether it is a key of Ed25519: sets may have others, which are ignored.
    pub(crate) fn is_ed25519(&self) -> bool {
        self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519")
    }

    pub(crate) fn public(&self) -> Result<PublicKey, JwkError> {
        PublicKey::from_bytes(&octets(self.x.as_deref())?).map_err(|_| JwkError::Malformed)
    }

    /// The private key, if it has one.
    pub(crate) fn private(&self) -> Result<Option<PrivateKey>, JwkError> {
        let Some(d) = &self.d else { return Ok(None) };
        let key = PrivateKey::from_seed(&Zeroizing::new(octets(Some(d.as_str()))?));
        if key.public() == self.public()? { Ok(Some(key)) } else { Err(JwkError::Malformed) }
    }
}

fn octets(text: Option<&str>) -> Result<[u8; 32], JwkError> {
    let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text.unwrap_or_default()).map_err(|_| JwkError::Malformed)?);
    <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| JwkError::Malformed)
}

/// A set of public keys, each with its name (`kid`): its thumbprint, unless it was published with another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    keys: Vec<(String, PublicKey)>,
}

impl JwkSet {
    /// The set of these keys, named by their thumbprints.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self { keys: keys.into_iter().map(|key| (key.thumbprint(), key)).collect() }
    }

    /// Reads a set. Keys other than Ed25519's are ignored, as RFC 7517 (section 5) requires.
    ///
    /// # Errors
    /// When the text is not a set, or an Ed25519 key in it is damaged.
    pub fn parse(text: &str) -> Result<Self, JwkError> {
        let set: Jwks = serde_json::from_str(text).map_err(|error| JwkError::Json { line: error.line() })?;
        let keys = set.keys.into_iter().filter(Jwk::is_ed25519).map(|jwk| {
            let key = jwk.public()?;
            Ok((jwk.kid.unwrap_or_else(|| key.thumbprint()), key))
        });
        Ok(Self { keys: keys.collect::<Result<Vec<_>, JwkError>>()? })
    }

    /// The set as JSON, to publish as `application/jwk-set+json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let keys = self.keys.iter().map(|(kid, key)| Jwk {
            kty: "OKP".to_owned(),
            crv: Some("Ed25519".to_owned()),
            x: Some(URL_SAFE_NO_PAD.encode(key.to_bytes())),
            d: None,
            kid: Some(kid.clone()),
            usage: Some("sig".to_owned()),
            alg: Some("EdDSA".to_owned()),
        });
        serde_json::to_string(&Jwks { keys: keys.collect() }).unwrap_or_default()
    }

    /// The key of this name: its `kid`, or its thumbprint.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PublicKey> {
        let named = |(kid, key): &&(String, PublicKey)| kid == name || key.thumbprint() == name;
        self.keys.iter().find(named).map(|(_, key)| *key)
    }

    /// Names and keys, in the order of the set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, PublicKey)> {
        self.keys.iter().map(|(kid, key)| (kid.as_str(), *key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8037, appendix A.1 to A.3.
    const PRIVATE: &str = r#"{"kty":"OKP","crv":"Ed25519",
        "d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

    fn example() -> Jwk {
        serde_json::from_str(PRIVATE).unwrap()
    }

    #[test]
    fn keys_and_thumbprints_are_those_of_rfc_8037() {
        let key = example().private().unwrap().unwrap();
        assert_eq!(key.public(), example().public().unwrap());
        assert_eq!(key.public().thumbprint(), THUMBPRINT);
    }

    #[test]
    fn sets_round_trip_and_have_no_private_key() {
        let key = example().public().unwrap();
        let set = JwkSet::new([key]);
        assert_eq!(JwkSet::parse(&set.to_json()), Ok(set.clone()));
        assert_eq!(set.find(THUMBPRINT), Some(key));
        assert_eq!(set.find("another"), None);
        let json = serde_json::to_string(&example()).unwrap();
        assert!(!json.contains("nWGx") && json.contains("11qYAYKx"));
    }

    #[test]
    fn other_keys_of_a_set_are_ignored() {
        let ours = r#"{"kty":"OKP","crv":"Ed25519","kid":"2026","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let rsa = r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#;
        let x25519 = r#"{"kty":"OKP","crv":"X25519","x":"AA"}"#;
        let set = JwkSet::parse(&format!(r#"{{"keys":[{rsa},{x25519},{ours}]}}"#)).unwrap();
        assert_eq!(set.iter().map(|(kid, _)| kid).collect::<Vec<_>>(), ["2026"]);
        assert_eq!(set.find("2026"), set.find(THUMBPRINT));
    }

    #[test]
    fn damaged_keys_are_refused_and_not_shown() {
        let swapped = PRIVATE.replace("nWGx", "nWGy");
        let jwk: Jwk = serde_json::from_str(&swapped).unwrap();
        assert_eq!(jwk.private().unwrap_err(), JwkError::Malformed);
        let short = format!(r#"{{"keys":[{}]}}"#, PRIVATE.replace("11qY", ""));
        assert_eq!(JwkSet::parse(&short), Err(JwkError::Malformed));
        assert_eq!(JwkSet::parse("{\n\"keys\":7}"), Err(JwkError::Json { line: 2 }));
        assert_eq!(JwkSet::parse(PRIVATE), Err(JwkError::Json { line: 3 }));
    }
}
