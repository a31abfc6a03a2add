//! Payments in MPP: challenges in refusals, and the credentials for them.

mod client;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{Request, Response, StatusCode};
use metering_core::offers::AuthorizationNonce;
use metering_core::{ApiKey, MeteringLayer, Store, SystemRandomness};
use serde_json::{Value, json};
use tower::{Layer, ServiceExt, service_fn};

use super::ledger::Call;
use super::scene::{Scene, assert_served, body, refusal};
use client::{Credential, Formula, Sends, answer, answered, ask, challenges, decoded, encoded, pay, receipt, request};

/// Lets the deliveries of responses be recorded.
async fn delivered() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// The credential is refused, and the refusal has a new challenge, since nothing was taken.
#[track_caller]
fn assert_refused(response: &Response<String>, what: &str) {
    assert_eq!(refusal(response), (402, "payment_refused".to_owned(), true), "{what}");
    assert_eq!(challenges(response).len(), 2, "{what}");
    assert!(!response.headers().contains_key("payment-receipt"), "{what}");
    assert!(!response.headers().contains_key("payment-response"), "{what}");
}

#[tokio::test(start_paused = true)]
async fn each_402_with_offers_has_challenges() {
    let scene = Scene::new().await;
    for (path, sends, amounts) in [
        ("/quote", Sends::Bearer, vec!["50000", "500000"]),
        ("/quote", Sends::ApiKey, vec!["50000", "500000"]),
        ("/quote", Sends::Nothing, vec!["50000", "500000"]),
        ("/dear", Sends::Nothing, vec!["500000"]),
    ] {
        let response = ask(&scene, path, sends).await;
        assert_eq!((response.status().as_u16(), refusal(&response).2), (402, true), "{sends:?}");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(body(&response)["type"], "https://paymentauth.org/problems/payment-required", "{sends:?}");
        let challenges = challenges(&response);
        let asked: Vec<_> = challenges.iter().map(|challenge| decoded(&challenge["request"])).collect();
        assert_eq!(asked.iter().map(|asked| &asked["amount"]).collect::<Vec<_>>(), amounts, "{sends:?}");
        for challenge in challenges {
            let own_header = challenge.get("header").map(String::as_str);
            assert_eq!(own_header, (sends == Sends::Bearer).then_some("Payment-Authorization"), "{sends:?}");
            assert_eq!((&*challenge["realm"], &*challenge["expires"]), ("api.example", "2026-11-21T12:05:00Z"));
            let hash = hex::encode(scene.key.hash().as_bytes());
            let opaque = decoded(&challenge["opaque"]);
            assert_eq!(opaque.get("key").is_some(), sends != Sends::Nothing, "{opaque}");
            assert!(!opaque.to_string().contains(&hash), "the hash of a key is hidden");
        }
    }
    // Whatever methods a client has: a 402 must have a challenge, and there is one method.
    for accepted in [None, Some("tempo/charge"), Some("*/*, evm/charge;q=0")] {
        let mut request = Request::get("/quote");
        if let Some(accepted) = accepted {
            request = request.header("accept-payment", accepted);
        }
        let response = scene.ask(request.body(String::new()).unwrap()).await;
        assert_eq!(refusal(&response), (402, "payment_required".to_owned(), true), "{accepted:?}");
        assert_eq!(challenges(&response).len(), 2, "{accepted:?}");
    }
    let unknown = format!("Bearer {}", ApiKey::generate(&SystemRandomness).expose());
    let refused = scene.ask(request("/quote", [("authorization", unknown)])).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["www-authenticate"]), (401, &"Bearer".parse().unwrap()));
    assert_eq!(refused.headers().get_all("www-authenticate").iter().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_pays_for_the_account_that_was_challenged() {
    for sends in Sends::ALL {
        let scene = Scene::new().await;
        let credential = answered(&scene, 1, "/quote", sends).await;
        let response = pay(&scene, "/quote", sends, &credential).await;
        assert_served(&response);
        let expected = json!({
            "method": "evm", "status": "success", "chainId": 84_532, "timestamp": "2026-11-21T12:00:00Z",
            "challengeId": credential.document["challenge"]["id"],
            "reference": scene.record(&credential.signed).await.unwrap().tx.unwrap().hash.to_string(),
        });
        assert_eq!(receipt(&response), expected, "{sends:?}");
        assert!(!response.headers().contains_key("payment-response"));
        assert_eq!(response.headers()["x-bds-credit-balance"], "0.03");
        let of_key = if sends == Sends::Nothing { "0" } else { "0.03" };
        assert_eq!(scene.balance(&scene.account).await, of_key, "{sends:?}");
        assert_eq!(scene.account_of(1).await.is_some(), sends == Sends::Nothing, "{sends:?}");
        scene.assert_credited_what_was_received().await;
    }
    // The other formula of the nonce, and the larger offer.
    let scene = Scene::new().await;
    let challenge = challenges(&ask(&scene, "/dear", Sends::Bearer).await).remove(0);
    assert_served(&pay(&scene, "/dear", Sends::Bearer, &answer(2, &challenge, Formula::List)).await);
    assert_eq!(scene.balance(&scene.account).await, "0.1");
}

#[tokio::test(start_paused = true)]
async fn forged_answers_take_nothing() {
    let scene = Scene::new().await;
    let credential = answered(&scene, 1, "/quote", Sends::Bearer).await;
    let challenge = challenges(&ask(&scene, "/dear", Sends::Bearer).await).remove(0);
    let asked = |pointer: &str, value: Value| {
        let mut asked = decoded(credential.document["challenge"]["request"].as_str().unwrap());
        *asked.pointer_mut(pointer).unwrap() = value;
        credential.with("/challenge/request", json!(encoded(&asked)))
    };
    let field = |name: &str, value: Value| credential.with(&format!("/challenge/{name}"), value);
    let nonce = AuthorizationNonce::from_bytes([7; 32]);
    let wrong_nonce = credential.signed_by_wallet_1(|authorization| authorization.nonce = nonce);
    let other_payload = answer(1, &challenge, Formula::List).document["payload"].clone();
    for (what, forged) in [
        ("the amount", asked("/amount", json!("1"))),
        ("the recipient", asked("/recipient", json!(scene.signed(2, 1, 1).authorization.from.to_checksummed()))),
        ("the chain", asked("/methodDetails/chainId", json!(1))),
        ("the realm", field("realm", json!("api.example.org"))),
        ("the expiry", field("expires", json!("2026-11-21T13:00:00Z"))),
        ("the id", field("id", json!(challenge["id"]))),
        ("the account", field("opaque", json!(challenge["opaque"]))),
        ("no account", field("opaque", json!(encoded(&json!({"unique": "1"}))))),
        ("an unknown header", field("header", json!("X-Payment-Two"))),
        ("the nonce", wrong_nonce),
        ("the credential of another challenge", credential.with("/payload", other_payload)),
        ("the signed amount", credential.with("/payload/value", json!("500000"))),
        ("the signature", credential.with("/payload/signature", json!(format!("0x{}", "1b".repeat(65))))),
    ] {
        assert_refused(&pay(&scene, "/quote", Sends::Bearer, &forged).await, what);
    }
    for (what, elsewhere) in [
        ("another secret", scene.with_challenges(2, "api.example")),
        ("another service", scene.with_challenges(1, "api.example.org")),
    ] {
        assert_refused(&pay(&elsewhere, "/quote", Sends::Bearer, &credential).await, what);
    }
    assert_eq!((scene.received(), scene.served(), scene.record(&credential.signed).await), (0, 0, None));
    assert_served(&pay(&scene, "/quote", Sends::Bearer, &credential).await);
}

#[tokio::test(start_paused = true)]
async fn answers_of_others_and_late_ones_take_nothing() {
    let scene = Scene::new().await;
    let other = scene.of_another_customer().await;
    for sends in [Sends::Bearer, Sends::ApiKey] {
        // Issued to one key, and sent with the key of another account.
        let credential = answered(&scene, 1, "/quote", sends).await;
        assert_refused(&pay(&other, "/quote", sends, &credential).await, "another account");
        // Issued without a key, and sent with one, by someone who has read it.
        let unbound = answered(&scene, 1, "/quote", Sends::Nothing).await;
        assert_refused(&pay(&other, "/quote", Sends::ApiKey, &unbound).await, "a key");
        assert_eq!(scene.record(&credential.signed).await, None);
    }
    let late = answered(&scene, 1, "/quote", Sends::Replaced).await;
    scene.wait(301).await;
    let refused = pay(&scene, "/quote", Sends::Replaced, &late).await;
    assert_refused(&refused, "late");
    // The next one is for the same key, whose place the payment took.
    let next = answer(1, &challenges(&refused)[0], Formula::List);
    assert_served(&pay(&scene, "/quote", Sends::Replaced, &next).await);
    assert_eq!(scene.balance(&scene.account).await, "0.03");
    let scene = Scene::new().await;
    // Whatever it signed: the challenge counts.
    let credential = answered(&scene, 1, "/quote", Sends::Nothing).await;
    let in_an_hour = scene.seconds() + 3_600;
    let later = credential.signed_by_wallet_1(|authorization| authorization.valid_before = in_an_hour);
    scene.wait(300).await;
    assert_refused(&pay(&scene, "/quote", Sends::Nothing, &later).await, "after the challenge expired");
    assert_eq!((scene.received(), scene.served()), (0, 0));
    // Its key was revoked meanwhile.
    let credential = answered(&scene, 1, "/quote", Sends::Replaced).await;
    scene.store.revoke_account(&scene.account, scene.clock.now()).await.unwrap();
    let refused = pay(&scene, "/quote", Sends::Replaced, &credential).await;
    assert_eq!(refusal(&refused), (401, "unauthorized".to_owned(), false));
    assert_eq!((scene.received(), scene.record(&credential.signed).await), (0, None));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_no_key() {
    for sends in [Sends::Replaced, Sends::Nothing] {
        let scene = Scene::new().await;
        let credential = answered(&scene, 1, "/quote", sends).await;
        assert_served(&pay(&scene, "/quote", sends, &credential).await);
        delivered().await;
        let again = pay(&scene, "/quote", sends, &credential).await;
        assert_eq!(refusal(&again), (409, "idempotency_key_used".to_owned(), false), "{sends:?}");
        // The data that others can read on the chain, or in the credential.
        let strangers = [
            pay(&scene, "/quote?symbol=BTC", sends, &credential).await,
            pay(&scene, "/dear", sends, &credential).await,
            pay(&scene.with_challenges(2, "api.example"), "/quote", sends, &credential).await,
            scene.send("/quote", None, Some(&credential.signed)).await,
            scene.send("/quote", Some(&scene.another_customer().await.0), Some(&credential.signed)).await,
        ];
        for (number, response) in strangers.iter().enumerate() {
            assert_eq!(refusal(response), (409, "payment_credited".to_owned(), false), "{sends:?} {number}");
            assert!(challenges(response).is_empty() && receipt(response).is_null(), "{sends:?} {number}");
        }
        scene.wait(15 * 60).await;
        let late = pay(&scene, "/quote", sends, &credential).await;
        assert_eq!(refusal(&late), (409, "payment_credited".to_owned(), false), "{sends:?}");
        assert_eq!((scene.served(), scene.received()), (1, 50_000));
        scene.assert_credited_what_was_received().await;
    }
    // Beside its key it can be sent again: the key pays.
    let scene = Scene::new().await;
    let credential = answered(&scene, 1, "/quote", Sends::Bearer).await;
    // The last call may cost more than the remaining balance.
    for left in ["0.03", "0.01", "-0.01"] {
        assert_served(&pay(&scene, "/quote", Sends::Bearer, &credential).await);
        assert_eq!(scene.balance(&scene.account).await, left);
    }
    let refused = pay(&scene, "/quote", Sends::Bearer, &credential).await;
    assert_eq!(refusal(&refused), (402, "insufficient_credits".to_owned(), false));
    assert!(challenges(&refused).is_empty(), "a client would pay again");
}

#[tokio::test(start_paused = true)]
async fn fifty_answers_at_once_are_credited_once() {
    for sends in Sends::ALL {
        let scene = Scene::new().await;
        let credential = answered(&scene, 1, "/quote", sends).await;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (scene, credential) = (scene.clone(), credential.clone());
            tasks.spawn(async move { pay(&scene, "/quote", sends, &credential).await });
        }
        let responses = tasks.join_all().await;
        assert!(responses.iter().all(|response| challenges(response).is_empty()), "{sends:?}");
        assert!(responses.iter().any(|response| response.status() == StatusCode::OK), "{sends:?}");
        // A key spends the credits that it bought, and a credential without one pays for one request.
        let expected = if matches!(sends, Sends::Replaced | Sends::Nothing) { 1 } else { 3 };
        assert_eq!(scene.served(), expected, "{sends:?}");
        assert_eq!(scene.received(), 50_000);
        scene.assert_credited_what_was_received().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_offered_while_an_answer_is_being_executed() {
    for sends in Sends::ALL {
        let scene = Scene::new().await;
        scene.node.mines.store(false, Ordering::SeqCst);
        let credential = answered(&scene, 1, "/quote", sends).await;
        let pending = pay(&scene, "/quote", sends, &credential).await;
        assert_eq!(refusal(&pending), (503, "settlement_pending".to_owned(), false), "{sends:?}");
        assert!(challenges(&pending).is_empty() && receipt(&pending).is_null());
        assert!(pending.headers().contains_key("retry-after"));
        scene.node.mine();
        // The challenge has expired by now, and the payment is known.
        scene.wait(300).await;
        assert_served(&pay(&scene, "/quote", sends, &credential).await);
        scene.assert_credited_what_was_received().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_others_executed_is_its_accounts() {
    for sends in Sends::ALL {
        let scene = Scene::new().await;
        let credential = answered(&scene, 1, "/quote", sends).await;
        scene.node.by_stranger(vec![Call::Execute(credential.signed.clone())]);
        scene.wait(1_000).await;
        assert_served(&pay(&scene, "/quote", sends, &credential).await);
        let of_key = if sends == Sends::Nothing { "0" } else { "0.03" };
        assert_eq!(scene.balance(&scene.account).await, of_key, "{sends:?}");
        scene.assert_credited_what_was_received().await;
    }
}

#[tokio::test(start_paused = true)]
async fn receipts_are_for_successful_responses_only() {
    for (status, left) in [(200, "0.03"), (204, "0.03"), (404, "0.03"), (500, "0.05"), (503, "0.05")] {
        let scene = Scene::new().await;
        let inner = service_fn(move |_: Request<String>| async move {
            let mut response = Response::new(String::new());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        });
        let served = MeteringLayer::new(Arc::clone(&scene.service)).layer(inner);
        let credential = answered(&scene, 1, "/quote", Sends::ApiKey).await;
        let key = ("x-api-key", scene.key.expose().to_owned());
        let response = served.clone().oneshot(request("/quote", [key, credential.line()])).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(receipt(&response).is_null(), status >= 300, "{status}");
        assert_eq!(scene.balance(&scene.account).await, left, "{status}");
        // x402's header reports the outcome of the payment in every response, and the balance after it.
        let sent =
            super::scene::payment(&super::scene::accepted(&scene.signed(2, 50_000, 1)), &scene.signed(2, 50_000, 1));
        let request = Request::get("/quote").header("payment-signature", sent).body(String::new()).unwrap();
        let response = served.oneshot(request).await.unwrap();
        let settled = super::scene::decoded(&response, "payment-response");
        assert_eq!(
            (&settled["success"], &settled["extra"]["credit_balance"]),
            (&json!(true), &json!(left)),
            "{status}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_credential_is_refused_with_another_challenge() {
    let scene = Scene::new().await;
    let credential = answered(&scene, 1, "/quote", Sends::Bearer).await;
    let (_, good) = credential.line();
    let no_payload = credential.with("/payload", json!({}));
    let lines = [
        ("payment-authorization", "Bearer x".to_owned()),
        ("payment-authorization", "Payment %%%".to_owned()),
        ("authorization", "Payment".to_owned()),
        ("authorization", good[..good.len() - 8].to_owned()),
        no_payload.line(),
    ];
    for line in lines {
        let response = scene.ask(request("/quote", [line.clone()])).await;
        assert_refused(&response, &format!("{line:?}"));
        assert!(!body(&response).to_string().contains(&good[10..60]), "it is not repeated");
    }
    let twice = request("/quote", [credential.line(), ("authorization", good.clone())]);
    assert_eq!(refusal(&scene.ask(twice).await).0, 400);
    // In the header for the key, although the challenge names another.
    let misplaced = scene.ask(request("/quote", [("authorization", good)])).await;
    assert_refused(&misplaced, "its place");
    assert_eq!((scene.received(), scene.served()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn without_keyless_payments_an_answer_still_stands_for_its_key() {
    let scene = Scene::new().await.with_keys_only();
    let credential = answered(&scene, 1, "/quote", Sends::Replaced).await;
    assert_served(&pay(&scene, "/quote", Sends::Replaced, &credential).await);
    assert_eq!(scene.balance(&scene.account).await, "0.03");
    assert_eq!(ask(&scene, "/quote", Sends::Nothing).await.status(), 401);
    let open = Scene::new().await;
    let unbound: Credential = answered(&open, 1, "/quote", Sends::Nothing).await;
    assert_eq!(pay(&scene, "/quote", Sends::Nothing, &unbound).await.status(), 401);
    assert_eq!(scene.received(), 50_000);
}
