//! The same payment more than once: by its payer, for other requests, and by strangers who read it on the chain.

use std::sync::atomic::Ordering;

use http::{Request, StatusCode};
use metering_core::offers::{AuthorizationState, SignedAuthorization};
use serde_json::json;

use super::scene::{SMALL, Scene, accepted, assert_served, body, decoded, encoded, payload, reason, refusal};

#[tokio::test(start_paused = true)]
async fn without_a_key_a_payment_serves_one_request() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    assert_served(&scene.send("/quote?symbol=ETH", None, Some(&signed)).await);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The same request: its response was delivered, and it is not charged again.
    let again = scene.send("/quote?symbol=ETH", None, Some(&signed)).await;
    assert_eq!(refusal(&again), (409, "idempotency_key_used".to_owned(), false));
    let message = body(&again)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("this payment") && !message.contains("Idempotency-Key"), "{message}");
    assert_eq!(decoded(&again, "payment-response")["success"], true, "the payment was credited all the same");
    // Others, from someone who read the payment on the chain.
    for path in ["/quote?symbol=BTC", "/quote", "/dear"] {
        let other = scene.send(path, None, Some(&signed)).await;
        assert_eq!(refusal(&other), (409, "payment_credited".to_owned(), false), "{path}");
        assert_eq!(reason(&other), "invalid_exact_evm_nonce_already_used");
    }
    scene.wait(15 * 60).await;
    let late = scene.send("/quote?symbol=ETH", None, Some(&signed)).await;
    assert_eq!(refusal(&late), (409, "payment_credited".to_owned(), false));
    assert_eq!((scene.served(), scene.balance_of(1).await), (1, "0.03".to_owned()));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_payment_belongs_to_the_account_that_brought_it_first() {
    let scene = Scene::new().await;
    let (thief, thiefs_account) = scene.another_customer().await;
    let signed = scene.signed(1, SMALL, 1);
    assert_served(&scene.send("/quote", Some(&scene.key), Some(&signed)).await);
    for key in [Some(&thief), None] {
        let response = scene.send("/quote", key, Some(&signed)).await;
        assert_eq!(refusal(&response), (409, "payment_credited".to_owned(), false));
    }
    assert_eq!((scene.balance(&thiefs_account).await, scene.account_of(1).await), ("0".to_owned(), None));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn fifty_at_once_are_credited_once() {
    for who in ["one key", "many keys", "no key"] {
        let scene = Scene::new().await;
        let signed = scene.signed(1, SMALL, 1);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (scene, signed) = (scene.clone(), signed.clone());
            let key = match who {
                "one key" => Some(scene.key.clone()),
                "many keys" => Some(scene.another_customer().await.0),
                _ => None,
            };
            tasks.spawn(async move { scene.send("/quote", key.as_ref(), Some(&signed)).await.status() });
        }
        let served = tasks.join_all().await.iter().filter(|status| **status == StatusCode::OK).count();
        // One key spends the credits that it bought: 0.05 pays for three calls, the last of which leaves the balance
        // below zero.
        assert_eq!(served, if who == "one key" { 3 } else { 1 }, "{who}");
        assert_eq!(scene.node.sent.load(Ordering::SeqCst), 1, "{who}");
        scene.assert_credited_what_was_received().await;
        assert_eq!(scene.received(), SMALL, "{who}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_is_no_offer_and_the_same_request_succeeds_later() {
    for keyed in [true, false] {
        let scene = Scene::new().await;
        scene.node.mines.store(false, Ordering::SeqCst);
        let (key, signed) = (keyed.then_some(&scene.key), scene.signed(1, SMALL, 1));
        for _ in 0..2 {
            let pending = scene.send("/quote", key, Some(&signed)).await;
            assert_eq!(refusal(&pending), (503, "settlement_pending".to_owned(), false));
            assert!(pending.headers().contains_key("retry-after"));
            assert_eq!(reason(&pending), "settlement_pending");
            let newest = scene.record(&signed).await.unwrap().submissions.last().unwrap().hash;
            assert_eq!(decoded(&pending, "payment-response")["transaction"], newest.to_string());
        }
        scene.node.mine();
        assert_served(&scene.send("/quote", key, Some(&signed)).await);
        assert_eq!(scene.record(&signed).await.unwrap().state, AuthorizationState::Credited);
        scene.assert_credited_what_was_received().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_transaction_is_replaced_at_its_place() {
    let scene = Scene::new().await;
    scene.node.mines.store(false, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    let record = scene.record(&signed).await.unwrap();
    assert_eq!((record.submissions.len(), record.gas.unwrap().nonce), (2, 0), "replaced once in 25 seconds");
    scene.node.mine();
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    let record = scene.record(&signed).await.unwrap();
    assert!(record.submissions.iter().any(|submission| Some(submission.hash) == record.tx.map(|tx| tx.hash)));
    assert_eq!(scene.node.ledger().world().gas_mined, 1);
}

/// A payment with an id.
fn with_id(signed: &SignedAuthorization, id: &str) -> Request<String> {
    let extension = json!({"payment-identifier": {"info": {"required": false, "id": id}, "schema": {}}});
    let document = json!({
        "x402Version": 2, "accepted": accepted(signed), "payload": payload(signed), "extensions": extension,
    });
    Request::get("/quote").header("payment-signature", encoded(&document)).body(String::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_id_is_of_one_payment_of_its_payer() {
    let scene = Scene::new().await;
    let (id, signed) = ("pay_0123456789abcdef", scene.signed(1, SMALL, 1));
    let first = scene.ask(with_id(&signed, id)).await;
    assert_served(&first);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The same payment with the same id: as without an id, and with the same receipt.
    let again = scene.ask(with_id(&signed, id)).await;
    assert_eq!(refusal(&again), (409, "idempotency_key_used".to_owned(), false));
    assert_eq!(decoded(&again, "payment-response"), decoded(&first, "payment-response"));
    // Another one, even if it is not valid: the id is looked up first.
    let mut unsigned = scene.signed(1, SMALL, 3);
    unsigned.signature = signed.signature.clone();
    for other in [scene.signed(1, SMALL, 2), scene.signed(1, SMALL + 1, 2), unsigned] {
        let response = scene.ask(with_id(&other, id)).await;
        assert_eq!(refusal(&response), (409, "conflict".to_owned(), false));
        assert_eq!(reason(&response), "invalid_payload");
        assert_eq!(scene.record(&other).await, None);
    }
    assert_eq!((scene.received(), scene.served()), (SMALL, 1));
    // Another id, no id, and the same id of another payer.
    assert_served(&scene.ask(with_id(&scene.signed(1, SMALL, 4), "pay_another_0123456789")).await);
    assert_served(&scene.send("/quote", None, Some(&scene.signed(1, SMALL, 5))).await);
    assert_served(&scene.ask(with_id(&scene.signed(2, SMALL, 6), id)).await);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn many_payments_with_one_id_take_one_payment() {
    let scene = Scene::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for nonce in 0..20 {
        let (scene, signed) = (scene.clone(), scene.signed(1, SMALL, nonce));
        tasks.spawn(async move { scene.ask(with_id(&signed, "pay_0123456789abcdef")).await.status().as_u16() });
    }
    let statuses = tasks.join_all().await;
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count(200), count(409), scene.received()), (1, 19, SMALL));
    scene.assert_credited_what_was_received().await;
}
