//! Payments for the usage of a request (the scheme `upto`), from the offer to the transfer.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use metering_core::chains::TokenUnits;
use metering_core::charging::HoldId;
use metering_core::offers::{
    Authorization, AuthorizationNonce, AuthorizationState, Permit, SignedAuthorization, UPTO_PROXY,
};
use metering_core::store::{AuthorizationOpened, AuthorizationStore, NewAuthorization};
use metering_core::{Charged, MeteringLayer, Store};
use serde_json::{Value, json};
use tower::{Layer, ServiceExt, service_fn};

use super::ledger::{CHAIN, Call, GAS, RECIPIENT, TOKEN};
use super::scene::{SMALL, Scene, assert_served, body, decoded, encoded, reason};
use super::wallet::Wallet;

/// The most that a request to `/tokens` costs, in units.
const MOST: u128 = 20_000;

/// A permit of a wallet for the most, valid for an hour.
fn permit(scene: &Scene, wallet: u8, nonce: u8) -> SignedAuthorization {
    let wallet = Wallet::of(wallet);
    signed(&wallet, wallet.authorization(MOST, nonce, scene.seconds()), scene.seconds() + 3_600)
}

fn signed(wallet: &Wallet, authorization: Authorization, valid_before: u64) -> SignedAuthorization {
    let authorization = Authorization { valid_after: 0, valid_before, ..authorization };
    let unsigned = wallet.sign(authorization);
    let signature = wallet.sign_digest(Permit { signed: &unsigned, facilitator: GAS }.digest());
    SignedAuthorization { signature, ..unsigned }
}

/// The value of `PAYMENT-SIGNATURE`.
fn payment(signed: &SignedAuthorization) -> Value {
    let Authorization { from, to, value, valid_after, valid_before, nonce } = signed.authorization;
    let (token, value) = (signed.token.to_checksummed(), value.get().to_string());
    json!({
        "x402Version": 2,
        "accepted": {
            "scheme": "upto", "network": format!("eip155:{CHAIN}"), "amount": value, "asset": token,
            "payTo": RECIPIENT.to_checksummed(), "maxTimeoutSeconds": 3_600,
            "extra": {"name": "USDC", "version": "2", "facilitatorAddress": GAS.to_checksummed()},
        },
        "payload": {
            "signature": format!("0x{}", hex::encode(signed.signature.as_bytes())),
            "permit2Authorization": {
                "permitted": {"token": token, "amount": value}, "from": from.to_checksummed(),
                "spender": UPTO_PROXY.to_checksummed(), "nonce": nonce.to_string(),
                "deadline": valid_before.to_string(),
                "witness": {"to": to.to_checksummed(), "facilitator": GAS.to_checksummed(),
                    "validAfter": valid_after.to_string()},
            },
        },
    })
}

fn request(path: &str, payment: &Value) -> Request<String> {
    Request::get(path).header("payment-signature", encoded(payment)).body(String::new()).unwrap()
}

/// Asks for `/tokens`, which costs this; without a cost, it is known later.
async fn ask(
    scene: &Scene,
    signed: &SignedAuthorization,
    cost: Option<&'static str>,
) -> (Response<String>, Option<Charged>) {
    let charged: Arc<Mutex<Option<Charged>>> = Arc::default();
    let seen = Arc::clone(&charged);
    let inner = service_fn(move |request: Request<String>| {
        *seen.lock().unwrap() = request.extensions().get::<Charged>().cloned();
        let response = Response::builder();
        let response = match cost {
            Some(cost) => response.header("x-cost", cost),
            None => response,
        };
        let response = response.body("served".to_owned()).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    let layer = MeteringLayer::new(Arc::clone(&scene.service));
    let response = layer.layer(inner).oneshot(request("/tokens", &payment(signed))).await.unwrap();
    let charged = charged.lock().unwrap().take();
    (response, charged)
}

async fn state(scene: &Scene, signed: &SignedAuthorization) -> AuthorizationState {
    scene.record(signed).await.expect("it is stored").state
}

fn accepts(response: &Response<String>) -> Vec<Value> {
    decoded(response, "payment-required")["accepts"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn only_routes_priced_by_usage_offer_it_and_only_if_the_service_settles_itself() {
    let scene = Scene::new().await.with_usage();
    let offered = accepts(&scene.send("/tokens", None, None).await);
    let expected = json!({
        "scheme": "upto", "network": "eip155:84532", "amount": "20000", "asset": TOKEN.to_checksummed(),
        "payTo": RECIPIENT.to_checksummed(), "maxTimeoutSeconds": 3_600,
        "extra": {"name": "USDC", "version": "2", "paymentFlow": "authorization",
            "facilitatorAddress": GAS.to_checksummed()},
    });
    assert_eq!((offered[0]["scheme"].as_str(), offered.last()), (Some("exact"), Some(&expected)));
    let is_fixed = |offers: Vec<Value>| offers.iter().all(|offer| offer["scheme"] == "exact");
    assert!(is_fixed(accepts(&scene.send("/quote", None, None).await)));
    assert!(is_fixed(accepts(&scene.send("/tokens", Some(&scene.key), None).await)), "a key's balance pays");
    assert!(is_fixed(accepts(&Scene::new().await.send("/tokens", None, None).await)), "it is off by default");
    let facilitated = Scene::facilitated().await.with_usage();
    assert!(is_fixed(accepts(&facilitated.send("/tokens", None, None).await)));
}

#[tokio::test(start_paused = true)]
async fn exactly_what_was_used_is_transferred_once() {
    let scene = Scene::new().await.with_usage();
    let signed = permit(&scene, 1, 1);
    let (response, _) = ask(&scene, &signed, Some("0.0031")).await;
    assert_served(&response);
    let settled = decoded(&response, "payment-response");
    let record = scene.record(&signed).await.unwrap();
    let tx = record.tx.unwrap().hash.to_string();
    let parts = (&settled["success"], &settled["amount"], &settled["transaction"], &settled["network"]);
    assert_eq!(parts, (&json!(true), &json!("3100"), &json!(tx), &json!("eip155:84532")));
    assert_eq!(settled["payer"], Wallet::of(1).address.to_checksummed());
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((header("x-bds-credit-charged"), header("x-bds-credit-balance")), ("0.0031".to_owned(), "0".to_owned()));
    assert_eq!((scene.received(), record.state), (3_100, AuthorizationState::Credited));
    // The same payment pays for nothing more.
    let (again, _) = ask(&scene, &signed, Some("0.0031")).await;
    assert_eq!((again.status(), body(&again)["error"].clone()), (StatusCode::CONFLICT, json!("payment_credited")));
    scene.keep_up().await;
    assert_eq!((scene.received(), scene.balance_of(1).await), (3_100, "0".to_owned()));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_transferred_for_nothing_and_never_more_than_was_signed() {
    let scene = Scene::new().await.with_usage();
    let (response, _) = ask(&scene, &permit(&scene, 1, 1), Some("0")).await;
    assert_served(&response);
    let settled = decoded(&response, "payment-response");
    let parts = (&settled["success"], &settled["amount"], &settled["transaction"]);
    assert_eq!(parts, (&json!(true), &json!("0"), &json!("")));
    assert_eq!((scene.received(), scene.node.sent.load(Ordering::SeqCst)), (0, 0));
    let (response, _) = ask(&scene, &permit(&scene, 1, 2), Some("5")).await;
    assert_eq!(decoded(&response, "payment-response")["amount"], "20000");
    scene.keep_up().await;
    assert_eq!((scene.received(), scene.balance_of(1).await), (MOST, "0".to_owned()));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_settled_when_it_has_ended() {
    let scene = Scene::new().await.with_usage();
    let signed = permit(&scene, 1, 1);
    let (response, charged) = ask(&scene, &signed, None).await;
    assert_served(&response);
    let settled = decoded(&response, "payment-response");
    assert_eq!((&settled["success"], &settled["errorReason"]), (&json!(false), &json!("settlement_pending")));
    assert_eq!(scene.received(), 0);
    charged.unwrap().capture("0.007".parse().unwrap()).await.unwrap();
    scene.wait(5).await;
    assert_eq!((scene.received(), state(&scene, &signed).await), (7_000, AuthorizationState::Credited));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_call_is_the_last_what_was_used_is_transferred_once() {
    for calls in 0..20 {
        let scene = Scene::new().await.with_usage();
        let signed = permit(&scene, 1, 1);
        scene.node.calls_left.store(calls, Ordering::SeqCst);
        let asked = tokio::time::timeout(Duration::from_secs(40), ask(&scene, &signed, Some("0.0031"))).await;
        scene.node.mine();
        let was_served = asked.is_ok_and(|(response, _)| response.status() == StatusCode::OK);
        let next = scene.restarted();
        for _ in 0..4 {
            next.wait(61).await;
            next.payments.settle_authorizations().await.unwrap();
            next.node.mine();
        }
        next.wait(60).await;
        let expected = if was_served { 3_100 } else { scene.received() };
        assert_eq!(next.received(), expected, "after {calls} calls");
        assert!(expected == 0 || expected == 3_100, "after {calls} calls");
        next.assert_credited_what_was_received().await;
    }
}

#[tokio::test(start_paused = true)]
async fn payments_that_do_not_fit_are_refused_and_nothing_is_stored() {
    let scene = Scene::new().await.with_usage();
    let good = permit(&scene, 1, 1);
    let wallet = Wallet::of(1);
    let of = |authorization| signed(&wallet, authorization, scene.seconds() + 3_600);
    let authorization = good.authorization;
    let short = signed(&wallet, authorization, scene.seconds() + 300);
    let mut forged = good.clone();
    forged.signature = Wallet::of(2).sign_digest([7; 32]);
    let mut other = payment(&good);
    other["payload"]["permit2Authorization"]["witness"]["facilitator"] = json!(RECIPIENT.to_checksummed());
    let mut spender = payment(&good);
    spender["payload"]["permit2Authorization"]["spender"] = json!(RECIPIENT.to_checksummed());
    let more = payment(&of(Authorization { value: TokenUnits::new(MOST + 1), ..authorization }));
    let recipient = payment(&of(Authorization { to: GAS, ..authorization }));
    // path, payment, code
    let table = [
        ("/tokens", other, "upto_facilitator_mismatch"),
        ("/tokens", spender, "invalid_permit2_spender"),
        ("/tokens", more, "permit2_amount_mismatch"),
        ("/tokens", recipient, "invalid_permit2_recipient_mismatch"),
        ("/tokens", payment(&short), "permit2_deadline_expired"),
        ("/tokens", payment(&forged), "invalid_permit2_signature"),
        ("/quote", payment(&good), "invalid_payment_requirements"),
    ];
    for (path, payment, code) in table {
        let response = scene.ask(request(path, &payment)).await;
        assert!([400, 402].contains(&response.status().as_u16()), "{code}: {response:?}");
        assert_eq!(reason(&response), code);
    }
    let without = Scene::new().await;
    let response = without.ask(request("/tokens", &payment(&permit(&without, 1, 1)))).await;
    assert_eq!(
        (response.status(), reason(&response).as_str()),
        (StatusCode::PAYMENT_REQUIRED, "invalid_payment_requirements")
    );
    let keyed = Request::get("/tokens").header("x-api-key", scene.key.expose());
    let keyed = keyed.header("payment-signature", encoded(&payment(&good))).body(String::new()).unwrap();
    assert_eq!(reason(&scene.ask(keyed).await), "invalid_payment_requirements");
    assert_eq!((scene.record(&good).await, scene.served()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wallet_must_have_the_most_and_let_permit2_transfer_it() {
    let scene = Scene::new().await.with_usage();
    scene.node.ledger().allowances.insert(Wallet::of(1).address, MOST - 1);
    let response = scene.ask(request("/tokens", &payment(&permit(&scene, 1, 1)))).await;
    let error = body(&response)["error"].clone();
    assert_eq!((response.status().as_u16(), error), (412, json!("permit2_allowance_required")));
    assert_eq!(reason(&response), "permit2_allowance_required");
    scene.node.ledger().genesis.insert(Wallet::of(2).address, MOST - 1);
    let response = scene.ask(request("/tokens", &payment(&permit(&scene, 2, 1)))).await;
    assert_eq!(reason(&response), "insufficient_funds");
    let cancelled = permit(&scene, 3, 1);
    scene.node.by_stranger(vec![Call::Cancel(Wallet::of(3).address, AuthorizationNonce::from_bytes([1; 32]))]);
    let response = scene.ask(request("/tokens", &payment(&cancelled))).await;
    assert_eq!(reason(&response), "permit2_invalid_nonce");
    assert_eq!(scene.served(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wallet_cannot_promise_its_tokens_twice() {
    let scene = Scene::new().await.with_usage();
    scene.node.ledger().genesis.insert(Wallet::of(1).address, MOST * 3 / 2);
    let (first, second) = (permit(&scene, 1, 1), permit(&scene, 1, 2));
    let (served, charged) = ask(&scene, &first, None).await;
    assert_served(&served);
    let (refused, _) = ask(&scene, &second, None).await;
    assert_eq!((refused.status(), reason(&refused).as_str()), (StatusCode::PAYMENT_REQUIRED, "insufficient_funds"));
    assert!(matches!(state(&scene, &second).await, AuthorizationState::Failed { .. }));
    charged.unwrap().capture("0.001".parse().unwrap()).await.unwrap();
    scene.wait(5).await;
    let (served, _) = ask(&scene, &permit(&scene, 1, 3), Some("0.001")).await;
    assert_served(&served);
    assert_eq!(scene.received(), 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_nonce_pays_once_whatever_the_token() {
    let scene = Scene::new().await.with_usage();
    let signed = permit(&scene, 1, 1);
    let new = NewAuthorization {
        signed: SignedAuthorization { token: RECIPIENT, ..signed.clone() },
        account: scene.account.clone(),
        credits: "0.02".parse().unwrap(),
        request: None,
        identifier: None,
        received_at: scene.clock.now(),
        usage: Some(HoldId::from_bytes([7; 16])),
    };
    let opened = scene.store.open_authorization(new, Duration::from_secs(60)).await.unwrap();
    assert!(matches!(opened, AuthorizationOpened::Opened(_)), "{opened:?}");
    let (refused, charged) = ask(&scene, &signed, Some("0.001")).await;
    assert_eq!((reason(&refused).as_str(), charged.is_none()), ("permit2_invalid_nonce", true));
    assert!(matches!(state(&scene, &signed).await, AuthorizationState::Failed { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_time_for_a_hold_begins_after_slow_checks() {
    let scene = Scene::new().await.with_usage();
    let (signed, asked_at) = (permit(&scene, 1, 1), scene.clock.now());
    *scene.node.slowness.lock().unwrap() = Duration::from_secs(40);
    let (served, _charged) = ask(&scene, &signed, None).await;
    assert_served(&served);
    let received_at = scene.record(&signed).await.unwrap().received_at;
    assert!(received_at >= asked_at.saturating_add(Duration::from_secs(120)), "{received_at:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_transferred_is_tried_until_the_deadline_and_then_owed() {
    let scene = Scene::new().await.with_usage();
    let (signed, payer) = (permit(&scene, 1, 1), Wallet::of(1).address);
    let (_, charged) = ask(&scene, &signed, None).await;
    scene.node.by_stranger(vec![Call::Transfer(payer, GAS, 10_000_000)]);
    charged.unwrap().capture("0.004".parse().unwrap()).await.unwrap();
    scene.wait(1_800).await;
    assert_eq!((state(&scene, &signed).await, scene.received()), (AuthorizationState::Pending, 0));
    assert_eq!(scene.balance_of(1).await, "-0.004");
    scene.wait(2_400).await;
    assert!(scene.record(&signed).await.unwrap().is_unpaid());
    assert_eq!(scene.payments.unpaid_usage(), 1);
    assert_eq!(scene.store.unpaid_usage(9).await.unwrap().len(), 1);
    scene.node.by_stranger(vec![Call::Transfer(GAS, payer, 10_000_000)]);
    let (refused, _) = ask(&scene, &permit(&scene, 1, 2), Some("0.001")).await;
    assert_eq!(refused.status(), StatusCode::PAYMENT_REQUIRED);
    assert!(body(&refused)["message"].as_str().unwrap().contains("owes 0.004"), "{refused:?}");
    // A fixed amount pays the debt.
    assert_served(&scene.send("/quote", None, Some(&scene.signed(1, SMALL, 3))).await);
    let (served, _) = ask(&scene, &permit(&scene, 1, 4), Some("0.001")).await;
    assert_served(&served);
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_becomes_payable_again_is_transferred() {
    let scene = Scene::new().await.with_usage();
    let (signed, payer) = (permit(&scene, 1, 1), Wallet::of(1).address);
    let (_, charged) = ask(&scene, &signed, None).await;
    scene.node.by_stranger(vec![Call::Transfer(payer, GAS, 10_000_000)]);
    charged.unwrap().capture("0.004".parse().unwrap()).await.unwrap();
    scene.wait(300).await;
    scene.node.by_stranger(vec![Call::Transfer(GAS, payer, 10_000_000)]);
    scene.wait(60).await;
    assert_eq!((state(&scene, &signed).await, scene.received()), (AuthorizationState::Credited, 4_000));
    assert_eq!(scene.balance_of(1).await, "0");
    scene.assert_credited_what_was_received().await;
}
