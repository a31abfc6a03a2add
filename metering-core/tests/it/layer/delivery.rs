//! The charge of a request that is not served, and how the layer respects the inner service's readiness.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use metering_core::Charged;
use tower::{Layer, Service as _, ServiceExt, service_fn};

use super::scene::{Broken, Outcome, PRICE, START, Scene, header, json};

#[tokio::test]
async fn response_with_a_free_status_is_refunded() {
    let (listed, default) = ("/lookup", "/price/42");
    // the route, the inner service's status, whether the charge is refunded
    let table = [
        (default, 200, false),
        (default, 404, false),
        (default, 429, true),
        (default, 500, true),
        (default, 501, true),
        (default, 502, true),
        (default, 503, true),
        (default, 504, true),
        (listed, 404, true),
        (listed, 500, false),
        (listed, 502, true),
    ];
    for (path, status, refunded) in table {
        let scene = Scene::new().await;
        let response = scene.ask(scene.get(path), StatusCode::from_u16(status).unwrap()).await;
        assert_eq!(
            (response.status().as_u16(), response.body().as_str()),
            (status, "inner"),
            "the response is the inner service's"
        );
        let (balance, shown) = if refunded { (START, "1") } else { (START - PRICE, "0.9986111111") };
        assert_eq!(scene.balance().await, balance, "{status}");
        assert_eq!(header(&response, "x-bds-credit-balance"), Some(shown), "{status}");
        assert_eq!(header(&response, "x-bds-credit-charged") == Some("0"), refunded, "{status}");
        // A refund forgets the idempotency key, so a retry is charged and served.
        let again = |scene: &Scene| {
            let mut request = scene.get(path);
            request.headers_mut().insert("idempotency-key", http::HeaderValue::from_static("k1"));
            request
        };
        let _ = scene.ask(again(&scene), StatusCode::from_u16(status).unwrap()).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let retried = scene.ask(again(&scene), StatusCode::OK).await;
        assert_eq!(retried.status(), if refunded { 200 } else { 409 }, "{path} {status}");
    }
}

#[tokio::test]
async fn free_status_releases_a_hold_whatever_the_response_reports() {
    // the inner service's status, the amount it captures itself, the request's cost
    for (status, captured, cost) in [(404, None, "0.1"), (500, None, "0"), (429, None, "0"), (500, Some("0.2"), "0.2")]
    {
        let scene = Scene::new().await;
        let inner = service_fn(move |request: Request<String>| async move {
            if let (Some(charged), Some(cost)) = (request.extensions().get::<Charged>(), captured) {
                let _ = charged.capture(cost.parse().unwrap()).await.unwrap();
            }
            let response = Response::builder().status(status).header("x-cost", "0.1").body("inner".to_owned());
            Ok::<_, Infallible>(response.unwrap())
        });
        let response = scene.layer().layer(inner).oneshot(scene.get("/report")).await.unwrap();
        assert_eq!((response.status().as_u16(), response.body().as_str()), (status, "inner"));
        assert_eq!(header(&response, "x-bds-credit-charged"), Some(cost), "{status} {captured:?}");
        let cost: metering_core::Credits = cost.parse().unwrap();
        assert_eq!(scene.balance().await, START - cost.atoms(), "{status} {captured:?}");
    }
}

#[tokio::test]
async fn inner_error_is_refunded_and_passed_on() {
    let scene = Scene::new().await;
    let outcome = scene.send(scene.layer(), scene.get("/price/42"), || Err(Broken)).await;
    assert_eq!(outcome.unwrap_err(), Broken);
    assert_eq!(scene.seen_once().uri().path(), "/price/42");
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn a_refund_outlives_a_client_that_goes_away() {
    let scene = Scene::new().await;
    {
        let mut call = pin!(scene.ask(scene.get("/price/42"), StatusCode::BAD_GATEWAY));
        poll_fn(|context| {
            let answered = call.as_mut().poll(context).is_ready();
            assert!(!answered, "the refund is not recorded yet");
            let served = !scene.seen.lock().unwrap().is_empty();
            if served { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert_eq!(scene.balance().await, START - PRICE);
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn unrecorded_refund_is_reported_to_the_client() {
    let scene = Scene::new().await;
    let service = Arc::clone(&scene.service);
    let inner = service_fn(move |_: Request<String>| {
        let service = Arc::clone(&service);
        async move {
            service.meter().drain().await;
            let response = Response::builder().status(503).body("inner".to_owned());
            Ok::<_, Broken>(response.unwrap())
        }
    });
    let response = scene.layer().layer(inner).oneshot(scene.get("/price/42")).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(json(&response)["error"], "internal_error");
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
    assert_eq!(scene.balance().await, START - PRICE);
}

#[tokio::test]
async fn inner_service_refunds_a_response_that_should_cost_nothing() {
    let scene = Scene::new().await;
    let inner = service_fn(async |request: Request<String>| {
        let charged = request.extensions().get::<Charged>().unwrap();
        charged.refund().await.unwrap();
        charged.refund().await.unwrap();
        Ok::<_, Broken>(Response::new("nothing found".to_owned()))
    });
    let response = scene.layer().layer(inner).oneshot(scene.get("/price/42")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0"));
    assert_eq!(header(&response, "x-bds-credit-balance"), Some("1"));
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn charge_can_be_refunded_after_the_head_of_the_response() {
    let scene = Scene::new().await;
    let response = scene.ask(scene.get("/price/42"), StatusCode::OK).await;
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
    let charged = scene.seen_once().extensions().get::<Charged>().cloned().unwrap();
    charged.refund().await.unwrap();
    charged.refund().await.unwrap();
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn query_too_long_in_normal_form_is_refunded() {
    let scene = Scene::new().await;
    let response = scene.ask(scene.get(&format!("/price/42?unit={}", "'".repeat(30_000))), StatusCode::OK).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json(&response)["fields"]["query"], "is too long");
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0"));
    assert!(scene.seen.lock().unwrap().is_empty());
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn drained_meter_refuses_with_retry_after() {
    let scene = Scene::new().await;
    scene.service.meter().drain().await;
    let response = scene.ask(scene.get("/price/42"), StatusCode::OK).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json(&response)["error"], "shutting_down");
    assert_eq!(header(&response, "retry-after"), Some("1"));
}

/// Panics if it is called without having reported ready first, as a service may.
#[derive(Debug, Default)]
struct Strict {
    ready: bool,
}

impl Clone for Strict {
    /// A clone is another service, which has not reported ready yet.
    fn clone(&self) -> Self {
        Self { ready: false }
    }
}

impl tower::Service<Request<String>> for Strict {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        ready(Ok(Response::new(String::new())))
    }
}

#[tokio::test]
async fn ready_inner_service_is_the_one_called() {
    let scene = Scene::new().await;
    let mut metered = scene.layer().pass_others().layer(Strict::default());
    for path in ["/price/1", "/health", "/price/2"] {
        let response = metered.ready().await.unwrap().call(scene.get(path)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
    assert_eq!(scene.balance().await, START - 2 * PRICE);
}

#[tokio::test]
async fn unready_inner_service_is_never_charged() {
    #[derive(Clone)]
    struct Busy;
    impl tower::Service<Request<String>> for Busy {
        type Response = Response<String>;
        type Error = Broken;
        type Future = Ready<Outcome>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
            Poll::Ready(Err(Broken))
        }

        fn call(&mut self, _: Request<String>) -> Self::Future {
            unreachable!("the service was never ready")
        }
    }
    let scene = Scene::new().await;
    assert_eq!(scene.layer().layer(Busy).oneshot(scene.get("/price/42")).await.unwrap_err(), Broken);
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn idempotency_key_buys_one_response() {
    let scene = Scene::new().await;
    let keyed = || {
        let mut request = scene.get("/price/42");
        request.headers_mut().insert("idempotency-key", "\"once\"".parse().unwrap());
        request
    };
    let failed = scene.ask(keyed(), StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!((failed.status().as_u16(), scene.balance().await), (503, START), "the refund also forgets the key");
    assert_eq!(scene.ask(keyed(), StatusCode::OK).await.status(), 200);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let again = scene.ask(keyed(), StatusCode::OK).await;
    assert_eq!((again.status().as_u16(), &json(&again)["error"]), (409, &"idempotency_key_used".into()));
    assert_eq!(scene.balance().await, START - PRICE);
    assert_eq!(scene.seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_response_that_switches_protocols_is_charged_and_passes_with_its_request_as_it_was() {
    let scene = Scene::new().await;
    let mut request = scene.get("/price/42");
    for (name, value) in [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", "a2V5")] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request.extensions_mut().insert("an extension of the framework");
    let response = scene.ask(request, StatusCode::SWITCHING_PROTOCOLS).await;
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
    assert_eq!(scene.balance().await, START - PRICE);
    let seen = scene.seen_once();
    assert_eq!(seen.headers()["upgrade"], "websocket");
    assert_eq!(seen.headers()["connection"], "Upgrade");
    assert_eq!(seen.extensions().get(), Some(&"an extension of the framework"));
}
