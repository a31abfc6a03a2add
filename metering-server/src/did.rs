//! The service as a `did:web` (W3C CCG, did-method-web): with it, verifiers find the key that signed an offer or a receipt
//! of x402, by the `kid` of its JWS. These are the keys that sign receipts of requests.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use metering_log::keys::{JwkSet, JwsHeader, PrivateKey, sign_jws};
use metering_pay::offers::{StatementSignature, StatementSigner};
use serde_json::{Value, json};
use url::Url;

/// The DID of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Did(String);

impl Did {
    /// The DID of the service with this URL. `None` if the URL has a path, because the document is at the root of a host,
    /// or if its host cannot be part of a DID.
    pub(crate) fn of(public_url: &str) -> Option<Self> {
        let url = Url::parse(public_url).ok()?;
        let host = url.host_str().filter(|host| !host.contains(':') && url.path() == "/")?;
        let port = url.port().map(|port| format!("%3A{port}")).unwrap_or_default();
        Some(Self(format!("did:web:{host}{port}")))
    }

    /// The DID URL of a key.
    fn key(&self, kid: &str) -> String {
        format!("{}#{kid}", self.0)
    }

    /// The DID document (DID Core 1.0) that names these keys.
    pub(crate) fn document(&self, keys: &JwkSet) -> String {
        let (mut methods, mut names) = (Vec::new(), Vec::new());
        for (kid, key) in keys.iter() {
            let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.to_bytes()), "kid": kid});
            let id = self.key(kid);
            methods.push(json!({"id": id, "type": "JsonWebKey2020", "controller": self.0, "publicKeyJwk": jwk}));
            names.push(Value::from(id));
        }
        let context = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"];
        let document =
            json!({"@context": context, "id": self.0, "verificationMethod": methods, "assertionMethod": names});
        document.to_string()
    }
}

/// Signs offers and receipts of x402 as JWS.
#[derive(Debug)]
pub(crate) struct JwsSigner {
    key: PrivateKey,
    header: JwsHeader,
}

impl JwsSigner {
    pub(crate) fn new(did: &Did, key: PrivateKey) -> Self {
        let kid = did.key(&key.public().thumbprint());
        Self { key, header: JwsHeader { kid: Some(kid), typ: None } }
    }
}

impl StatementSigner for JwsSigner {
    fn sign(&self, _digest: [u8; 32], json: &[u8]) -> StatementSignature {
        StatementSignature::Jws(sign_jws(&self.header, json, &self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_log::keys::{Jws, PublicKey};

    #[test]
    fn hosts_without_a_path_have_a_did() {
        // public_url, its DID
        let table = [
            ("https://api.example.com", Some("did:web:api.example.com")),
            ("https://api.example.com/", Some("did:web:api.example.com")),
            ("https://api.example.com:443", Some("did:web:api.example.com")),
            ("http://127.0.0.1:8787", Some("did:web:127.0.0.1%3A8787")),
            ("https://api.example.com/v1", None),
            ("http://[::1]:8787", None),
            ("nowhere", None),
        ];
        for (url, expected) in table {
            assert_eq!(Did::of(url), expected.map(|did| Did(did.to_owned())), "{url}");
        }
    }

    #[test]
    fn the_document_has_the_key_that_a_jws_names() {
        let did = Did::of("https://api.example.com").unwrap();
        let [old, key] = [1, 2].map(|seed| PrivateKey::from_seed(&[seed; 32]));
        let document: Value = serde_json::from_str(&did.document(&JwkSet::new([old.public(), key.public()]))).unwrap();
        let StatementSignature::Jws(signed) = JwsSigner::new(&did, key).sign([0; 32], b"{}") else {
            panic!("not a JWS");
        };
        let jws = Jws::parse(&signed).unwrap();
        let kid = jws.header().kid.clone().unwrap();
        let methods = document["verificationMethod"].as_array().unwrap();
        let method = methods.iter().find(|method| method["id"] == kid).unwrap();
        let x = URL_SAFE_NO_PAD.decode(method["publicKeyJwk"]["x"].as_str().unwrap()).unwrap();
        let public = PublicKey::from_bytes(&x.try_into().unwrap()).unwrap();
        assert_eq!(jws.verify(public).unwrap(), b"{}");
        assert_eq!((&method["controller"], &document["assertionMethod"][1]), (&document["id"], &method["id"]));
        assert_eq!(methods.len(), 2, "what earlier keys signed stays verifiable");
    }
}
