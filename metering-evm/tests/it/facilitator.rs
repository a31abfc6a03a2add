//! Facilitators of x402 against a scripted one: the requests it gets, and how its responses are read.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use metering_core::chains::{TokenDomain, TokenUnits, TxHash, WalletSignature};
use metering_core::payments::TokenAmount;
use metering_evm::{FacilitatorSetupError, HttpFacilitator};
use metering_pay::offers::{Asset, Authorization, Facilitator, FacilitatorError, Listing, Offer, SignedAuthorization};
use metering_pay::wire::x402::Resource;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::scene::SHORT;

const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const PAYER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const PAY_TO: &str = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const NONCE: &str = "0x01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da";
const SIGNATURE: &str = "0x37ee65cd4e139b9478e44acabdd5f6802993591aaeb2f01a38b38069ba9501a513649d70b1d7e4b6ffa34836f9d218bdee8263d490cbe1fca234446e13c137801b";
const HASH: TxHash = TxHash::from_bytes([7; 32]);

const TOKEN: &str = "fac-0123456789";

/// What a facilitator responds.
#[derive(Clone)]
enum Script {
    Says(u16, String),
    Hangs,
    /// Begins a response and never finishes it.
    Stalls,
}

/// A facilitator on a free port. It stops when it is dropped.
struct Scripted {
    port: u16,
    received: Arc<Mutex<Vec<(String, HeaderMap, Value)>>>,
    task: JoinHandle<()>,
}

impl Scripted {
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&received);
        let handler = move |request: Request| {
            let (script, shared) = (script.clone(), Arc::clone(&shared));
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                let document = serde_json::from_slice(&body).unwrap();
                shared.lock().unwrap().push((parts.uri.to_string(), parts.headers, document));
                match script {
                    Script::Says(status, body) => Response::builder()
                        .status(status)
                        .header("location", "/elsewhere")
                        .body(Body::from(body))
                        .unwrap(),
                    Script::Hangs => std::future::pending().await,
                    Script::Stalls => Response::new(Body::from_stream(futures_util::stream::pending::<
                        Result<Vec<u8>, std::io::Error>,
                    >())),
                }
            }
        };
        let router = Router::new().fallback(handler);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, received, task }
    }

    fn client(&self) -> HttpFacilitator {
        HttpFacilitator::new(&format!("http://127.0.0.1:{}/x402/", self.port)).unwrap()
    }

    /// For a script that never ends.
    fn impatient_client(&self) -> HttpFacilitator {
        self.client().with_timeouts(SHORT, SHORT)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn signed() -> SignedAuthorization {
    let authorization = Authorization {
        from: PAYER.parse().unwrap(),
        to: PAY_TO.parse().unwrap(),
        value: TokenUnits::new(50_000),
        valid_after: 0,
        valid_before: 1_750_000_300,
        nonce: NONCE.parse().unwrap(),
    };
    let signature = WalletSignature::parse(SIGNATURE).unwrap();
    SignedAuthorization { chain_id: 84_532, token: USDC.parse().unwrap(), authorization, signature }
}

fn offer() -> Offer {
    let domain = TokenDomain {
        name: "USDC".to_owned(),
        version: "2".to_owned(),
        chain_id: 84_532,
        contract: USDC.parse().unwrap(),
    };
    let amount = TokenAmount::parse("0.05").unwrap();
    Offer::new(Asset { domain, decimals: 6 }, PAY_TO.parse().unwrap(), amount, "1".parse().unwrap()).unwrap()
}

async fn says(status: u16, body: &Value) -> Scripted {
    Scripted::start(Script::Says(status, body.to_string())).await
}

#[tokio::test]
async fn a_payment_is_sent_as_x402_writes_it() {
    let requirements = json!({
        "scheme": "exact", "network": "eip155:84532", "amount": "50000", "asset": USDC, "payTo": PAY_TO,
        "maxTimeoutSeconds": 300, "extra": { "name": "USDC", "version": "2", "paymentFlow": "upfront" },
    });
    let authorization = json!({
        "from": PAYER, "to": PAY_TO, "value": "50000", "validAfter": "0", "validBefore": "1750000300", "nonce": NONCE,
    });
    let expected = json!({
        "x402Version": 2,
        "paymentPayload": {
            "x402Version": 2,
            "payload": { "authorization": authorization, "signature": SIGNATURE },
            "accepted": requirements,
        },
        "paymentRequirements": requirements,
    });
    let both = json!({
        "isValid": true, "payer": PAYER, "invalidReason": null,
        "success": true, "transaction": HASH, "network": "eip155:84532", "errorReason": null,
    });
    let scripted = says(200, &both).await;
    let open = scripted.client();
    assert_eq!(open.verify(&signed(), &offer(), None).await, Ok(()));
    assert_eq!(open.with_token(TOKEN).unwrap().settle(&signed(), &offer(), None).await, Ok(HASH));
    let received = scripted.received.lock().unwrap();
    let [(verify, no_token, one), (settle, token, other)] = received.as_slice() else { panic!("two requests") };
    assert_eq!((verify.as_str(), settle.as_str()), ("/x402/verify", "/x402/settle"));
    assert_eq!((one, other), (&expected, &expected));
    assert_eq!((no_token.get("authorization"), no_token["content-type"].as_bytes()), (None, &b"application/json"[..]));
    assert_eq!(token["authorization"], format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn facilitators_get_the_listing_of_a_payment() {
    let resource = Resource {
        url: "https://api.example.com/quote".to_owned(),
        description: "Quote".to_owned(),
        mime_type: "application/json".to_owned(),
    };
    let bazaar = json!({"info": {"input": {"type": "http", "method": "GET"}}, "schema": {}});
    let listing = Listing { resource, bazaar: bazaar.clone() };
    let scripted = says(200, &json!({ "isValid": true })).await;
    assert_eq!(scripted.client().verify(&signed(), &offer(), Some(&listing)).await, Ok(()));
    let received = scripted.received.lock().unwrap();
    let payload = &received[0].2["paymentPayload"];
    assert_eq!(payload["extensions"], json!({ "bazaar": bazaar }));
    assert_eq!(payload["resource"]["url"], "https://api.example.com/quote");
}

/// The kind of a result, and its message.
fn outcome<T>(result: Result<T, FacilitatorError>) -> (&'static str, String) {
    match result {
        Ok(_) => ("ok", String::new()),
        Err(FacilitatorError::Refused(why)) => ("refused", why),
        Err(FacilitatorError::Unfinished(why)) => ("unfinished", why),
        Err(FacilitatorError::Unavailable(why)) => ("unavailable", why),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_verification_is_valid_refused_or_unavailable() {
    let refusal = json!({ "isValid": false, "invalidReason": "insufficient_funds", "invalidMessage": "has 3" });
    // status, response, outcome, message
    let table = [
        (200, json!({ "isValid": true }), "ok", ""),
        (200, refusal.clone(), "refused", "insufficient_funds: has 3"),
        (400, refusal, "refused", "insufficient_funds: has 3"),
        (200, json!({ "isValid": false }), "refused", "no reason"),
        (500, json!({ "isValid": true }), "unavailable", "500"),
        (200, json!({ "valid": true }), "unavailable", "malformed"),
        (200, json!("x".repeat(70_000)), "unavailable", "larger than"),
        (503, json!(null), "unavailable", "503"),
        (307, json!(null), "unavailable", "307"),
        (401, json!({ "error": "unauthorized" }), "unavailable", "401"),
    ];
    for (status, body, kind, text) in table {
        let scripted = says(status, &body).await;
        let (found, why) = outcome(scripted.client().verify(&signed(), &offer(), None).await);
        assert_eq!(found, kind, "{status} {why}");
        assert!(why.contains(text), "{why}");
        assert_eq!(scripted.received.lock().unwrap().len(), 1, "no redirect is followed");
    }
    for script in [Script::Hangs, Script::Stalls] {
        let scripted = Scripted::start(script).await;
        assert_eq!(outcome(scripted.impatient_client().verify(&signed(), &offer(), None).await).0, "unavailable");
    }
}

#[tokio::test]
async fn a_settlement_that_may_have_happened_is_unfinished() {
    let failed = |reason: &str, transaction: &str| json!({ "success": false, "errorReason": reason, "transaction": transaction, "network": "eip155:84532" });
    let hash = HASH.to_string();
    // status, response, outcome, message
    let table = [
        (200, json!({ "success": true, "transaction": hash }), "ok", ""),
        (200, json!({ "success": true, "transaction": "" }), "unfinished", "without a transaction"),
        (200, json!({ "success": true }), "unfinished", "without a transaction"),
        (200, failed("insufficient_funds", ""), "refused", "insufficient_funds"),
        (402, failed("invalid_exact_evm_signature", ""), "refused", "invalid_exact_evm_signature"),
        (200, failed("settlement_pending", &hash), "unfinished", "settlement_pending"),
        (200, failed("settlement_pending", ""), "unfinished", "settlement_pending"),
        (500, failed("unexpected_settle_error", ""), "unfinished", "unexpected_settle_error"),
        (400, failed("invalid_exact_evm_nonce_already_used", ""), "unfinished", "nonce_already_used"),
        (200, failed("duplicate_settlement", ""), "unfinished", "duplicate_settlement"),
        (200, failed("something_new", &hash), "unfinished", "something_new"),
        (200, json!({ "success": false }), "unfinished", "no reason"),
        (200, json!({}), "unfinished", "malformed"),
        (200, json!("x".repeat(70_000)), "unfinished", "larger than"),
        (500, json!(null), "unfinished", "500"),
        (504, json!(null), "unfinished", "504"),
        (409, json!(null), "unfinished", "409"),
        (408, json!(null), "unfinished", "408"),
        (401, json!({ "error": "unauthorized" }), "unavailable", "401"),
        (404, json!(null), "unavailable", "404"),
        (429, json!(null), "unavailable", "429"),
        (308, json!(null), "unavailable", "308"),
    ];
    for (status, body, kind, text) in table {
        let scripted = says(status, &body).await;
        let (found, why) = outcome(scripted.client().settle(&signed(), &offer(), None).await);
        assert_eq!(found, kind, "{status} {body} {why}");
        assert!(why.contains(text), "{why}");
        assert_eq!(scripted.received.lock().unwrap().len(), 1, "it is asked once");
    }
    for script in [Script::Hangs, Script::Stalls] {
        let scripted = Scripted::start(script).await;
        let (found, why) = outcome(scripted.impatient_client().settle(&signed(), &offer(), None).await);
        assert_eq!(found, "unfinished");
        assert!(why.contains("timed out"), "{why}");
    }
}

#[tokio::test]
async fn a_facilitator_that_cannot_be_reached_was_not_asked() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let client = HttpFacilitator::new(&format!("http://127.0.0.1:{port}")).unwrap();
    assert_eq!(outcome(client.verify(&signed(), &offer(), None).await).0, "unavailable");
    assert_eq!(outcome(client.settle(&signed(), &offer(), None).await).0, "unavailable");
}

#[tokio::test]
async fn secrets_are_not_shown() {
    let key = "topsecret-0123456789";
    let (r, s) = (&SIGNATURE[2..66], &SIGNATURE[66..130]);
    let echo = format!("{TOKEN} {key}\n{SIGNATURE} 27 0x{r} 0x{s} {}", "long ".repeat(100));
    let scripted = says(200, &json!({ "isValid": false, "invalidReason": echo })).await;
    let url = format!("http://127.0.0.1:{}/{key}?token={key}", scripted.port);
    let client = HttpFacilitator::new(&url).unwrap().with_token(TOKEN).unwrap();
    let error = client.verify(&signed(), &offer(), None).await.unwrap_err();
    let shown = format!("{error} {error:?} {client:?}");
    assert!(!shown.contains(TOKEN) && !shown.contains(key) && !shown.contains('\n'), "{shown}");
    assert!(!shown.contains(r) && !shown.contains(s) && !shown.contains(&SIGNATURE[120..]), "{shown}");
    assert!(shown.contains(&format!("127.0.0.1:{}", scripted.port)) && shown.len() < 1_000, "{shown}");
    assert_eq!(scripted.received.lock().unwrap()[0].0, format!("/{key}/verify?token={key}"));
}

#[test]
fn only_secure_urls_and_sendable_tokens_are_used() {
    for url in ["https://x402.org/facilitator", "http://localhost:1", "http://127.0.0.1:1/a", "http://[::1]:1"] {
        assert!(HttpFacilitator::new(url).is_ok(), "{url}");
    }
    for url in ["http://x402.org/facilitator", "x402.org", "ftp://localhost", "http://10.0.0.1", ""] {
        assert_eq!(HttpFacilitator::new(url).unwrap_err(), FacilitatorSetupError::Url, "{url}");
    }
    for token in ["", "a b", "a\nb", "é"] {
        let client = HttpFacilitator::new("https://x402.org").unwrap();
        assert_eq!(client.with_token(token).unwrap_err(), FacilitatorSetupError::Token, "{token:?}");
    }
}
