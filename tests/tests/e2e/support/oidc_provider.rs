//! An OpenID Connect provider in this process: metadata, keys, and a token endpoint. No one signs in there: a test
//! grants codes for the claims that it needs. ID tokens are signed with ES256 (RFC 7518, section 3.4).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

pub(crate) const CLIENT_ID: &str = "console";
pub(crate) const CLIENT_SECRET: &str = "a secret of the tests";

/// A running provider. Dropping it ends it.
pub(crate) struct OidcProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// A key that signs ID tokens.
pub(crate) struct Key {
    id: String,
    pair: KeyPair,
}

/// The claims that a code is exchanged for.
struct Grant {
    challenge: String,
    id_token: String,
}

struct Shared {
    issuer: String,
    key: Mutex<Arc<Key>>,
    grants: Mutex<HashMap<String, Grant>>,
}

impl Key {
    pub(crate) fn new(id: &str) -> Arc<Self> {
        Arc::new(Self { id: id.to_owned(), pair: KeyPair::generate().unwrap() })
    }

    fn public(&self) -> Value {
        // Uncompressed: 4, x, y.
        let point = self.pair.der_bytes();
        let half = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": half(1..33), "y": half(33..65),
        })
    }

    fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT", "kid": self.id})), part(claims));
        let signature = fixed(&self.pair.sign(signed.as_bytes()).unwrap());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A signature as JWS has it, from its DER form: two integers in a sequence.
fn fixed(der: &[u8]) -> [u8; 64] {
    let (mut rest, mut signature) = (&der[2..], [0; 64]);
    for half in signature.chunks_mut(32) {
        let length = usize::from(rest[1]);
        let number = &rest[2..2 + length];
        let number = &number[length.saturating_sub(32)..];
        half[32 - number.len()..].copy_from_slice(number);
        rest = &rest[2 + length..];
    }
    signature
}

impl OidcProvider {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let issuer = format!("http://{address}/realms/acme");
        let shared = Arc::new(Shared { issuer, key: Mutex::new(Key::new("first")), grants: Mutex::default() });
        let routes = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, shared, runtime: Some(runtime) }
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// Signs with another key from now on, and publishes it alone.
    pub(crate) fn rotate(&self, id: &str) {
        *self.shared.key.lock().unwrap() = Key::new(id);
    }

    /// A code for an ID token with these claims, signed with the published key or another one.
    pub(crate) fn grant(&self, challenge: &str, claims: &Value, key: Option<&Key>) -> String {
        let published = Arc::clone(&self.shared.key.lock().unwrap());
        let grant = Grant { challenge: challenge.to_owned(), id_token: key.unwrap_or(&published).sign(claims) };
        let mut grants = self.shared.grants.lock().unwrap();
        let code = format!("code-{}-{}", self.address.port(), grants.len());
        grants.insert(code.clone(), grant);
        code
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let Shared { issuer, key, .. } = &*shared;
    match uri.path() {
        "/realms/acme/.well-known/openid-configuration" => with_json(&json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/auth"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/certs"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        })),
        "/realms/acme/certs" => with_json(&json!({"keys": [key.lock().unwrap().public()]})),
        "/realms/acme/token" => match shared.exchange(&headers, &body) {
            Ok(id_token) => with_json(&json!({"access_token": "at", "token_type": "Bearer", "id_token": id_token})),
            Err(error) => (StatusCode::BAD_REQUEST, with_json(&json!({"error": error}))).into_response(),
        },
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Shared {
    fn exchange(&self, headers: &HeaderMap, body: &[u8]) -> Result<String, &'static str> {
        let urlencoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let credentials = STANDARD.encode(format!("{}:{}", urlencoded(CLIENT_ID), urlencoded(CLIENT_SECRET)));
        let sent = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        if sent != Some(format!("Basic {credentials}").as_bytes()) {
            return Err("invalid_client");
        }
        let form: HashMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
        let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let grant = self.grants.lock().unwrap().remove(field("code")).ok_or("invalid_grant")?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
        let is_right = field("grant_type") == "authorization_code"
            && field("redirect_uri").ends_with("/admin/oidc/callback")
            && challenge == grant.challenge;
        if is_right { Ok(grant.id_token) } else { Err("invalid_grant") }
    }
}

fn with_json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
