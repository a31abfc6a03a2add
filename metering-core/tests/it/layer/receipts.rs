//! Signed receipts: which responses have one, and its contents.

use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response, StatusCode};
use metering_core::access::KeyNumber;
use metering_core::receipts::{ReceiptError, ReceiptKind, ReceiptScope, ReceiptSigner, Statement};
use metering_core::service::Proxied;
use metering_core::{Charged, ClientSource, Clock, Credits, RequestId, UsageLine};
use tower::{Layer, ServiceExt, service_fn};

use super::scene::{Broken, PRICE, START, Scene, Signer, header};

const RECEIPT: &str = "metering-receipt";

async fn scene() -> (Scene, Arc<Signer>) {
    let signer = Arc::new(Signer::default());
    (Scene::new().await.with_receipts(signer.clone(), ReceiptScope::default()), signer)
}

/// A GET that prefers a receipt.
fn preferring(scene: &Scene, uri: &str) -> Request<String> {
    let mut request = scene.get(uri);
    request.headers_mut().insert("prefer", "wait=5, metering-receipt".parse().unwrap());
    request
}

#[tokio::test]
async fn a_receipt_is_for_clients_routes_and_accounts_that_ask() {
    // whether the account always gets them, the path, whether the client requests one, whether there is a receipt
    let table = [
        (false, "/price/42", false, false),
        (false, "/price/42", true, true),
        (false, "/lookup", false, true),
        (true, "/price/42", false, true),
        (true, "/price/42", true, true),
    ];
    for (always, path, asks, expected) in table {
        let scene = Scene::new().await;
        let scope = ReceiptScope::of_accounts(always.then(|| scene.account.clone()));
        let scene = scene.with_receipts(Arc::new(Signer::default()), scope);
        let request = if asks { preferring(&scene, path) } else { scene.get(path) };
        let response = scene.ask(request, StatusCode::OK).await;
        let case = (always, path, asks);
        assert_eq!(header(&response, RECEIPT), expected.then_some("charge 0.0013888889"), "{case:?}");
        assert_eq!(header(&response, "preference-applied"), asks.then_some(RECEIPT), "{case:?}");
    }
    let scene = Scene::new().await;
    let response = scene.ask(preferring(&scene, "/price/42"), StatusCode::OK).await;
    assert_eq!(header(&response, RECEIPT), None, "the service signs none");
}

#[tokio::test]
async fn a_receipt_states_the_charge() {
    let (scene, signer) = scene().await;
    let response = scene.ask(preferring(&scene, "/price/42"), StatusCode::OK).await;
    let source = ClientSource::Direct;
    let line = UsageLine { route_template: "/price/{block}".into(), http_method: "GET".into(), source };
    let charged = Statement {
        account: scene.account.clone(),
        key: KeyNumber::FIRST,
        request: header(&response, "x-request-id").unwrap().parse().unwrap(),
        kind: ReceiptKind::Charge,
        line,
        price_version: None,
        amount: Credits::from_atoms(PRICE),
        balance: Some(Credits::from_atoms(START - PRICE)),
        at: scene.clock.now(),
    };
    assert_eq!(signer.signed(), [charged]);
}

#[tokio::test]
async fn a_refunded_response_has_one_receipt_of_the_refund() {
    let (scene, signer) = scene().await;
    let refunds = async |request: Request<String>| {
        request.extensions().get::<Charged>().unwrap().refund().await.unwrap();
        Ok::<_, Broken>(Response::new("nothing found".to_owned()))
    };
    let responses = [
        scene.ask(preferring(&scene, "/price/42"), StatusCode::BAD_GATEWAY).await,
        scene.ask(preferring(&scene, "/price/42"), StatusCode::TOO_MANY_REQUESTS).await,
        scene.layer().layer(service_fn(refunds)).oneshot(preferring(&scene, "/price/42")).await.unwrap(),
    ];
    for response in responses {
        assert_eq!(header(&response, RECEIPT), Some("refund 0.0013888889"), "{}", response.status());
    }
    let signed = signer.signed();
    assert_eq!(signed.len(), 3);
    assert!(signed.iter().all(|signed| signed.balance == Some(Credits::from_atoms(START))), "{signed:?}");
}

#[tokio::test]
async fn a_response_that_costs_nothing_has_no_receipt() {
    let (scene, signer) = scene().await;
    let mut keyless = preferring(&scene, "/price/42");
    keyless.headers_mut().remove("authorization");
    let repeated = || {
        let mut request = preferring(&scene, "/price/42");
        let request_id = Some(RequestId::parse("of-the-proxy").unwrap());
        request.extensions_mut().insert(Proxied { request_id, ..Proxied::default() });
        request
    };
    scene.ask(repeated(), StatusCode::OK).await;
    assert_eq!(signer.signed().len(), 1);
    // the request, the inner service's status
    let table = [
        (keyless, StatusCode::OK),
        (preferring(&scene, "/price/x"), StatusCode::OK),
        (preferring(&scene, "/price/status"), StatusCode::OK),
        (repeated(), StatusCode::OK),
        (preferring(&scene, "/report"), StatusCode::BAD_GATEWAY),
        (preferring(&scene, "/report"), StatusCode::TOO_MANY_REQUESTS),
    ];
    for (request, status) in table {
        let path = request.uri().clone();
        let response = scene.ask(request, status).await;
        assert_eq!(header(&response, RECEIPT), None, "{path}");
    }
    assert_eq!(signer.signed(), []);
}

#[tokio::test]
async fn a_capture_has_its_receipt_in_the_head_or_after_it() {
    let (scene, signer) = scene().await;
    let report = |cost: Option<&'static str>| {
        move || {
            let mut response = Response::new("inner".to_owned());
            if let Some(cost) = cost {
                response.headers_mut().insert("x-cost", cost.parse().unwrap());
            }
            Ok(response)
        }
    };
    let captured = scene.send(scene.layer(), preferring(&scene, "/report"), report(Some("0.1"))).await.unwrap();
    assert_eq!(header(&captured, RECEIPT), Some("capture 0.1"));
    let charged = scene.seen_once().extensions().get::<Charged>().cloned().unwrap();
    assert!(!charged.owes_receipt().await);
    assert_eq!(charged.receipt().await, None);
    let in_head = signer.signed().remove(0);
    assert_eq!(in_head.balance, "0.9".parse().ok());

    // Anyone who has the request's id can have it signed again.
    let id = header(&captured, "x-bds-request-id").unwrap();
    let get = async |prefers| scene.service.holds().with_receipt(prefers).get(&scene.key, id).await.unwrap().receipt;
    assert_eq!((get(true).await.as_deref(), get(false).await), (Some("capture 0.1"), None));
    assert_eq!(signer.signed(), [Statement { balance: None, ..in_head }]);

    let held = scene.send(scene.layer(), preferring(&scene, "/report"), report(None)).await.unwrap();
    assert_eq!(header(&held, RECEIPT), None);
    let charged = scene.seen_once().extensions().get::<Charged>().cloned().unwrap();
    assert!(charged.owes_receipt().await);
    assert_eq!(charged.receipt().await, None, "nothing is captured yet");
    charged.capture("0.2".parse().unwrap()).await.unwrap();
    assert_eq!(charged.receipt().await.as_deref(), Some("capture 0.2"));
    assert_eq!(charged.receipt().await, None);
}

/// Does not sign.
#[derive(Debug)]
enum Faulty {
    Fails,
    Hangs,
}

#[async_trait]
impl ReceiptSigner for Faulty {
    async fn sign(&self, _: Statement) -> Result<String, ReceiptError> {
        match self {
            Self::Fails => Err(ReceiptError::Invalid("a test".to_owned())),
            Self::Hangs => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_whose_receipt_cannot_be_signed_is_sent_without_it() {
    for signer in [Faulty::Fails, Faulty::Hangs] {
        let scene = Scene::new().await.with_receipts(Arc::new(signer), ReceiptScope::default());
        let response = scene.ask(preferring(&scene, "/price/42"), StatusCode::OK).await;
        assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "inner"));
        assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
        assert_eq!((header(&response, RECEIPT), header(&response, "preference-applied")), (None, None));
    }
}
