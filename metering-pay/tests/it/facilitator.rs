//! Payments that a facilitator executes.

use std::sync::atomic::Ordering;

use super::node::FacilitatorMood;
use super::scene::{SMALL, Scene, assert_served, decoded, refusal};

#[tokio::test(start_paused = true)]
async fn a_facilitator_is_asked_once_although_sources_lag() {
    for mood in [FacilitatorMood::Executes, FacilitatorMood::LosesResponse] {
        let scene = Scene::facilitated().await;
        *scene.node.facilitator.lock().unwrap() = mood;
        scene.node.lag.store(10, Ordering::SeqCst);
        let signed = scene.signed(1, SMALL, 1);
        let response = scene.send("/quote", None, Some(&signed)).await;
        assert_served(&response);
        assert_eq!(decoded(&response, "payment-response")["success"], true);
        assert_eq!(scene.node.settled.load(Ordering::SeqCst), 1, "{mood:?}");
        // When it verifies the payment, and when it settles it.
        let listed = scene.node.listed.lock().unwrap().clone();
        assert_eq!(listed.len(), 2);
        for listing in listed {
            assert_eq!(listing.resource.url, "https://api.example/quote");
            assert_eq!(listing.bazaar["info"]["input"]["method"], "GET");
        }
        scene.assert_credited_what_was_received().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_it_executed_and_then_refuses_is_not_failed() {
    let scene = Scene::facilitated().await;
    scene.node.lag.store(40, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    // The chain's source lags for longer than the facilitator's deadline, so it is called again, and refuses.
    let pending = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&pending), (503, "settlement_pending".to_owned(), false));
    scene.wait(60).await;
    assert!(scene.node.settled.load(Ordering::SeqCst) > 1);
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_fails_and_an_outage_does_not() {
    let scene = Scene::facilitated().await;
    *scene.node.facilitator.lock().unwrap() = FacilitatorMood::Refuses;
    let signed = scene.signed(1, SMALL, 1);
    let refused = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&refused), (402, "payment_refused".to_owned(), true));
    *scene.node.facilitator.lock().unwrap() = FacilitatorMood::Down;
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    *scene.node.facilitator.lock().unwrap() = FacilitatorMood::Executes;
    scene.wait(20).await;
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    scene.assert_credited_what_was_received().await;
}
