//! Requests that are served before their charge is decided.

use metering_core::RateLimits;

use super::*;
use crate::stopped_clock::StoppedClock;

/// A scene whose store has no thread, and has charged the key just now. Further commits wait.
async fn charged_before() -> Scene {
    let clock = Arc::new(StoppedClock(SystemClock.now()));
    let scene = Scene::over(Gated::passing(1), clock, START).await;
    let response = scene.send(scene.request("GET", "/price"), OK).await.unwrap().unwrap();
    assert_eq!((response.status(), scene.calls()), (StatusCode::OK, 1));
    scene
}

/// Sends a request that reaches the inner service before its commit is through.
async fn started(scene: &Scene, inner: Inner) -> JoinHandle<Result<Response<String>, Broken>> {
    let sent = scene.send(scene.request("GET", "/price"), inner);
    scene.until(|scene| scene.calls() == 2).await;
    go_on().await;
    assert!(!sent.is_finished(), "the charge is not decided");
    sent
}

async fn adjust(scene: &Scene, atoms: i64) {
    let entry = NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_atoms(atoms), "by another node");
    scene.store.post_entry(&scene.account, entry, SystemClock.now()).await.unwrap();
}

/// A change in the store from elsewhere, which makes it refuse the next charge.
#[derive(Debug, Clone, Copy)]
enum Change {
    Revoked,
    Spent,
    RateLimited,
}

impl Change {
    async fn make(self, scene: &Scene) {
        match self {
            Self::Revoked => drop(scene.store.revoke_account(&scene.account, SystemClock.now()).await.unwrap()),
            Self::Spent => adjust(scene, PRICE - START).await,
            Self::RateLimited => {
                let limits = RateLimits::per_minute(1);
                drop(scene.store.set_limits(&scene.account, limits).await.unwrap());
            }
        }
    }
}

#[tokio::test]
async fn response_waits_for_the_decision_and_says_what_the_store_decided() {
    let scene = charged_before().await;
    let sent = started(&scene, OK).await;
    adjust(&scene, -500 * PRICE).await;
    scene.store.open(1);
    let response = sent.await.unwrap().unwrap();
    assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "inner"));
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
    assert_eq!(header(&response, "metering-receipt"), Some("charge 0.0013888889"));
    let balance = START - 2 * PRICE - 500 * PRICE;
    let shown = Credits::from_atoms(balance).to_string();
    assert_eq!((header(&response, "x-bds-credit-balance"), scene.balance().await), (Some(&*shown), balance));
}

#[tokio::test]
async fn refusal_after_the_start_is_that_of_a_request_that_waited() {
    for (change, status) in [(Change::Revoked, 401), (Change::Spent, 402), (Change::RateLimited, 429)] {
        for inner in [OK, Inner::Refunds, Inner::Fails, Inner::Responds(StatusCode::BAD_GATEWAY)] {
            let scene = charged_before().await;
            let sent = started(&scene, inner).await;
            change.make(&scene).await;
            scene.store.open(2);
            let mut late = sent.await.unwrap().unwrap();
            let waits = MeteringLayer::new(Arc::clone(&scene.service));
            let waited = scene.send_through(waits, scene.request("GET", "/price"), inner);
            let mut waited = waited.await.unwrap().unwrap();
            assert_eq!((late.status().as_u16(), scene.calls()), (status, 2), "{change:?}");
            for response in [&mut late, &mut waited] {
                response.headers_mut().remove("x-request-id");
            }
            assert_eq!((late.headers(), late.body()), (waited.headers(), waited.body()), "{change:?}");
            assert_eq!(scene.refunds(), 0, "nothing was charged");
            assert_eq!(scene.service.meter().stats().refused_early.load(Ordering::Relaxed), 1);
        }
    }
}

#[tokio::test]
async fn response_is_dropped_when_the_commit_fails() {
    let scene = charged_before().await;
    let sent = started(&scene, OK).await;
    scene.store.fail_next(StoreError::OutcomeUnknown("the connection broke".to_owned()));
    scene.store.open(1);
    let response = sent.await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), &json(&response)["error"]), (503, &"outcome_unknown".into()));
    assert_eq!(header(&response, "x-inner"), None);
    assert_eq!(scene.service.meter().stats().failed_early.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn refund_follows_the_decision() {
    for (inner, status) in [(Inner::Refunds, 200), (Inner::Responds(StatusCode::BAD_GATEWAY), 502)] {
        let scene = charged_before().await;
        let sent = started(&scene, inner).await;
        assert_eq!(scene.refunds(), 0, "{status}");
        scene.store.open(2);
        let response = sent.await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), scene.refunds()), (status, 1));
        assert_eq!((header(&response, "x-bds-credit-charged"), scene.balance().await), (Some("0"), START - PRICE));
        assert_eq!(header(&response, "metering-receipt"), Some("refund 0.0013888889"));
    }
}

#[tokio::test]
async fn refund_of_a_client_that_goes_away_waits_for_the_decision() {
    let scene = charged_before().await;
    let sent = started(&scene, Inner::Responds(StatusCode::BAD_GATEWAY)).await;
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
    scene.store.open(2);
    scene.until(|scene| scene.refunds() == 1).await;
    assert_eq!(scene.balance().await, START - PRICE);
}

#[tokio::test]
async fn other_requests_wait_for_the_decision() {
    // method, path, idempotency key
    for (method, path, idempotency_key) in [("POST", "/order", None), ("GET", "/price", Some("once"))] {
        let scene = charged_before().await;
        let mut request = scene.request(method, path);
        if let Some(key) = idempotency_key {
            request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        }
        let sent = scene.send(request, OK);
        scene.until(|scene| scene.store.batches().len() == 2).await;
        go_on().await;
        assert_eq!(scene.calls(), 1, "{method} {path}");
        // The delivery of an idempotency key is recorded too.
        scene.store.open(2);
        assert_eq!(sent.await.unwrap().unwrap().status(), StatusCode::OK);
    }
}
