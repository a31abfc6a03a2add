//! A client of MPP: reads challenges, and sends credentials for them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, Response};
use metering_core::chains::TokenUnits;
use metering_core::offers::{Authorization, AuthorizationNonce, SignedAuthorization};
use metering_core::{ApiKey, Timestamp};
use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

use crate::scene::{Scene, payload};
use crate::wallet::Wallet;

/// How the nonce is derived from the challenge.
#[derive(Debug, Clone, Copy)]
pub(super) enum Formula {
    /// Like npm's mppx 0.11.
    Concatenated,
    /// Like `PyPI`'s pympp 0.16.
    List,
}

/// Where a request has its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    Bearer,
    ApiKey,
    /// In `Authorization`, where a client that does not implement the parameter `header` puts its credential instead.
    Replaced,
    Nothing,
}

/// A credential, and the authorization in it.
#[derive(Debug, Clone)]
pub(super) struct Credential {
    pub(super) document: Value,
    pub(super) signed: SignedAuthorization,
}

impl Sends {
    pub(super) const ALL: [Self; 4] = [Self::Bearer, Self::ApiKey, Self::Replaced, Self::Nothing];

    fn line(self, key: &ApiKey) -> Option<(&'static str, String)> {
        match self {
            Self::Bearer | Self::Replaced => Some(("authorization", format!("Bearer {}", key.expose()))),
            Self::ApiKey => Some(("x-api-key", key.expose().to_owned())),
            Self::Nothing => None,
        }
    }
}

impl Credential {
    /// The same credential, with another message signed by wallet 1.
    pub(super) fn signed_by_wallet_1(&self, change: impl Fn(&mut Authorization)) -> Self {
        let mut authorization = self.signed.authorization;
        change(&mut authorization);
        let signed = Wallet::of(1).sign(authorization);
        let mut document = self.document.clone();
        document["payload"] = signed_payload(&signed);
        Self { document, signed }
    }

    /// The credential with another value in a place.
    pub(super) fn with(&self, pointer: &str, value: Value) -> Self {
        let mut altered = self.clone();
        *altered.document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        altered
    }

    /// As sent by clients that do not implement the parameter `header`.
    pub(super) fn without_header(&self) -> Self {
        let mut altered = self.clone();
        altered.document["challenge"].as_object_mut().unwrap().remove("header");
        altered
    }

    pub(super) fn line(&self) -> (&'static str, String) {
        let name = self.document["challenge"].get("header").map_or("authorization", |_| "payment-authorization");
        (name, format!("Payment {}", encoded(&self.document)))
    }
}

/// A request of a client of MPP.
pub(super) fn request(path: &str, lines: impl IntoIterator<Item = (&'static str, String)>) -> Request<String> {
    let mut request = Request::get(path).header("accept-payment", "tempo/charge;q=0.5, evm/charge");
    for (name, value) in lines {
        request = request.header(name, value);
    }
    request.body(String::new()).unwrap()
}

/// Asks for the first time.
pub(super) async fn ask(scene: &Scene, path: &str, sends: Sends) -> Response<String> {
    scene.ask(request(path, sends.line(&scene.key))).await
}

/// Asks with a credential.
pub(super) async fn pay(scene: &Scene, path: &str, sends: Sends, credential: &Credential) -> Response<String> {
    let key = if sends == Sends::Replaced { None } else { sends.line(&scene.key) };
    scene.ask(request(path, key.into_iter().chain([credential.line()]))).await
}

/// Sends a request, and has a wallet sign a credential for its first challenge.
pub(super) async fn answered(scene: &Scene, wallet: u8, path: &str, sends: Sends) -> Credential {
    let refused = ask(scene, path, sends).await;
    let credential = answer(wallet, &challenges(&refused)[0], Formula::Concatenated);
    if sends == Sends::Replaced { credential.without_header() } else { credential }
}

/// The parameters of the challenges in a response.
pub(super) fn challenges(response: &Response<String>) -> Vec<BTreeMap<String, String>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.trim_matches('"').to_owned())
    };
    let lines = response.headers().get_all("www-authenticate").into_iter();
    let list = |line: &str| line.strip_prefix("Payment ").unwrap().split(", ").map(pair).collect();
    lines.map(|line| list(line.to_str().unwrap())).collect()
}

pub(super) fn decoded(text: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

pub(super) fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// The receipt; null if there is none.
pub(super) fn receipt(response: &Response<String>) -> Value {
    response.headers().get("payment-receipt").map_or(Value::Null, |value| decoded(value.to_str().unwrap()))
}

pub(super) fn answer(wallet: u8, challenge: &BTreeMap<String, String>, formula: Formula) -> Credential {
    let wallet = Wallet::of(wallet);
    let (id, realm, asked) = (&challenge["id"], &challenge["realm"], decoded(&challenge["request"]));
    let hashed = match formula {
        Formula::Concatenated => format!("{id}{realm}"),
        Formula::List => json!([id, realm]).to_string(),
    };
    let expires: Timestamp = challenge["expires"].parse().unwrap();
    let signed = wallet.sign(Authorization {
        from: wallet.address,
        to: asked["recipient"].as_str().unwrap().parse().unwrap(),
        value: TokenUnits::new(asked["amount"].as_str().unwrap().parse().unwrap()),
        valid_after: 0,
        valid_before: u64::try_from(expires.unix_seconds()).unwrap(),
        nonce: AuthorizationNonce::from_bytes(Keccak256::digest(hashed).into()),
    });
    let source = format!("did:pkh:eip155:84532:{}", wallet.address.to_checksummed());
    let document = json!({"challenge": challenge, "payload": signed_payload(&signed), "source": source});
    Credential { document, signed }
}

fn signed_payload(signed: &SignedAuthorization) -> Value {
    let payload = payload(signed);
    let mut flat = payload["authorization"].clone();
    flat["type"] = json!("authorization");
    flat["signature"] = payload["signature"].clone();
    flat
}
