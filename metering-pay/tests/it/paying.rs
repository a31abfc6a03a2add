//! The responses that paying clients see, from the first 402 to the receipt.

use http::{Request, StatusCode};
use metering_core::money::LedgerKind;
use metering_core::payments::{ExchangeRates, RateList};
use metering_core::{ApiKey, PaymentStore, Store, SystemRandomness};
use serde_json::json;

use super::ledger::{CHAIN, TOKEN};
use super::scene::{
    LARGE, SMALL, Scene, accepted, assert_served, body, decoded, encoded, payload, payment, payment_v1, reason, refusal,
};

#[tokio::test(start_paused = true)]
async fn a_402_offers_what_covers_the_request_in_both_versions() {
    let scene = Scene::new().await;
    for (path, key, code, amounts) in [
        ("/quote", None, "payment_required", vec!["50000", "500000"]),
        ("/quote", Some(&scene.key), "insufficient_credits", vec!["50000", "500000"]),
        ("/dear", None, "payment_required", vec!["500000"]),
        ("/dear", Some(&scene.key), "insufficient_credits", vec!["500000"]),
    ] {
        let response = scene.send(path, key, None).await;
        assert_eq!(refusal(&response), (402, code.to_owned(), true), "{path}");
        let (v2, v1) = (decoded(&response, "payment-required"), body(&response));
        let offered = |accepts: &serde_json::Value, field: &str| {
            let amounts = accepts.as_array().unwrap().iter().map(|offer| offer[field].as_str().unwrap().to_owned());
            amounts.collect::<Vec<_>>()
        };
        assert_eq!(offered(&v2["accepts"], "amount"), amounts, "{path}");
        assert_eq!(offered(&v1["accepts"], "maxAmountRequired"), amounts, "{path}");
        assert_eq!((&v2["x402Version"], &v1["x402Version"]), (&json!(2), &json!(1)));
        assert_eq!(v2["resource"]["url"], format!("https://api.example{path}"));
        assert_eq!(v2["error"], code);
        assert_eq!(response.headers()["cache-control"], "no-store");
    }
    let first = &decoded(&scene.send("/quote", None, None).await, "payment-required")["accepts"][0];
    assert_eq!(*first, accepted(&scene.signed(1, SMALL, 1)));
    assert_served(&scene.send("/free", None, None).await);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_costs_more_than_it_allows_is_refused_before_it_is_paid() {
    let scene = Scene::new().await;
    let key = format!("Bearer {}", scene.key.expose());
    let signed = scene.signed(1, LARGE, 1);
    let paid = payment(&accepted(&signed), &signed);
    let ask = async |headers: &[(&str, &str)]| {
        let request =
            headers.iter().fold(Request::get("/dear"), |request, (name, value)| request.header(*name, *value));
        scene.ask(request.body(String::new()).unwrap()).await
    };
    let (own, of_payment) = (("authorization", key.as_str()), ("payment-signature", paid.as_str()));
    for headers in
        [&[own, of_payment, ("max-cost", "0.39")][..], &[of_payment, ("max-cost", "0.39999999")], &[("max-cost", "0")]]
    {
        let response = ask(headers).await;
        assert_eq!(refusal(&response), (412, "max_cost_exceeded".to_owned(), false), "{headers:?}");
        let body = body(&response);
        assert!(body["required"] == json!(0.4) && body["max_cost"].as_f64().unwrap() < 0.4, "{body}");
        let message = body["message"].as_str().unwrap();
        assert!(message.starts_with("This request costs 0.4 credits, more than the 0"), "{message}");
    }
    for headers in [&[own, of_payment, ("max-cost", "cheap")][..], &[own, ("max-cost", "1"), ("max-cost", "1")]] {
        let response = ask(headers).await;
        assert_eq!(refusal(&response), (400, "invalid_parameter".to_owned(), false), "{headers:?}");
        assert!(body(&response)["fields"]["Max-Cost"].is_string());
    }
    // A bad key is refused as such, whatever else is wrong.
    let mistyped = ("authorization", "Bearer sk_live_mistyped");
    for bound in ["0", "cheap"] {
        assert_eq!(refusal(&ask(&[mistyped, ("max-cost", bound)]).await).0, 401, "{bound}");
    }
    assert_eq!((scene.received(), scene.record(&signed).await), (0, None));
    assert_served(&ask(&[own, of_payment, ("max-cost", "0.4")]).await);
    assert_eq!(scene.balance(&scene.account).await, "0.1");
}

#[tokio::test(start_paused = true)]
async fn bad_keys_get_no_offers_and_their_payments_are_not_taken() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    let unknown = ApiKey::generate(&SystemRandomness);
    assert_eq!(refusal(&scene.send("/quote", Some(&unknown), None).await).0, 401);
    assert_eq!(refusal(&scene.send("/quote", Some(&unknown), Some(&signed)).await).0, 401);
    for paid in [false, true] {
        for mistyped in ["Bearer sk_live_mistyped", "Basic dXNlcg=="] {
            let mut request = Request::get("/quote").header("authorization", mistyped);
            if paid {
                request = request.header("payment-signature", payment(&accepted(&signed), &signed));
            }
            let response = scene.ask(request.body(String::new()).unwrap()).await;
            assert_eq!(refusal(&response), (401, "unauthorized".to_owned(), false), "{mistyped} {paid}");
        }
    }
    let scene = scene.with_keys_only();
    assert_eq!(refusal(&scene.send("/quote", None, None).await), (401, "unauthorized".to_owned(), false));
    assert_eq!(refusal(&scene.send("/quote", None, Some(&signed)).await).0, 401);
    assert_eq!(scene.received(), 0);
    assert_eq!(scene.record(&signed).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_payment_with_a_key_is_credited_once_and_the_request_is_charged() {
    let scene = Scene::new().await;
    let refused = scene.send("/quote?symbol=ETH", Some(&scene.key), None).await;
    let offer = decoded(&refused, "payment-required")["accepts"][0].clone();
    let signed = scene.signed(1, SMALL, 1);
    let request = Request::get("/quote?symbol=ETH")
        .header("authorization", format!("Bearer {}", scene.key.expose()))
        .header("payment-signature", payment(&offer, &signed));
    let response = scene.ask(request.body(String::new()).unwrap()).await;
    assert_served(&response);
    let receipt = decoded(&response, "payment-response");
    let tx = scene.record(&signed).await.unwrap().tx.unwrap();
    assert_eq!(
        receipt,
        json!({
            "success": true, "transaction": tx.hash.to_string(), "network": "eip155:84532", "amount": "50000",
            "payer": receipt["payer"], "extra": {"account": scene.account.as_str(), "credit_balance": "0.03"},
        })
    );
    assert_eq!(scene.balance(&scene.account).await, "0.03");
    // The same payment again: nothing more is credited, and the next request is charged to the balance.
    assert_served(&scene.send("/quote", Some(&scene.key), Some(&signed)).await);
    assert_eq!(scene.balance(&scene.account).await, "0.01");
    assert_served(&scene.send("/quote", Some(&scene.key), None).await);
    assert_eq!(scene.account_of(1).await, None, "the wallet needs no account");
    let ledger = scene.store.account_ledger(&scene.account, None, 10).await.unwrap().items;
    assert_eq!((ledger.len(), ledger[0].kind), (1, LedgerKind::PurchaseTopup));
    assert_eq!(ledger[0].payment.as_ref().unwrap().tx, tx);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn version_1_pays_too() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    let request = Request::get("/quote").header("x-payment", payment_v1(&signed)).body(String::new()).unwrap();
    let response = scene.ask(request).await;
    assert_served(&response);
    let receipt = decoded(&response, "x-payment-response");
    assert_eq!((&receipt["success"], &receipt["network"]), (&json!(true), &json!("base-sepolia")));
    assert!(!response.headers().contains_key("payment-response"));
    assert_eq!(scene.balance_of(1).await, "0.03");
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn version_1_is_told_why_it_is_refused_as_version_2_is() {
    let scene = Scene::new().await;
    for signed in [scene.signed(1, SMALL + 1, 1), scene.signed(77, SMALL, 1)] {
        let request = Request::get("/quote").header("x-payment", payment_v1(&signed)).body(String::new()).unwrap();
        let old = scene.ask(request).await;
        let new = scene.send("/quote", None, Some(&signed)).await;
        assert_eq!((old.status(), new.status()), (StatusCode::PAYMENT_REQUIRED, StatusCode::PAYMENT_REQUIRED));
        let (old, new) = (decoded(&old, "x-payment-response"), decoded(&new, "payment-response"));
        assert_eq!((&old["errorReason"], &old["payer"]), (&new["errorReason"], &new["payer"]), "{old} {new}");
        assert_eq!((&old["success"], &old["network"]), (&json!(false), &json!("base-sepolia")));
    }
    assert_eq!(scene.received(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_key_the_wallet_has_the_account() {
    let scene = Scene::new().await;
    let first = scene.signed(1, SMALL, 1);
    let response = scene.send("/quote", None, Some(&first)).await;
    assert_served(&response);
    let account = scene.account_of(1).await.unwrap().id;
    assert_eq!(decoded(&response, "payment-response")["extra"]["account"], account.as_str());
    let response = scene.send("/quote", None, Some(&scene.signed(1, SMALL, 2))).await;
    assert_served(&response);
    assert_eq!(decoded(&response, "payment-response")["extra"]["account"], account.as_str());
    assert_eq!(scene.balance_of(1).await, "0.06");
    assert_served(&scene.send("/quote", None, Some(&scene.signed(2, SMALL, 1))).await);
    assert_ne!(scene.account_of(2).await.unwrap().id, account);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn the_smallest_offer_does_not_buy_the_dearest_request() {
    let scene = Scene::new().await;
    for key in [None, Some(&scene.key)] {
        let response = scene.send("/dear", key, Some(&scene.signed(1, SMALL, 1))).await;
        assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
        assert_eq!(reason(&response), "invalid_exact_evm_payload_authorization_value_mismatch");
        let offered = &decoded(&response, "payment-required")["accepts"];
        assert_eq!((offered.as_array().unwrap().len(), &offered[0]["amount"]), (1, &json!("500000")));
    }
    assert_eq!((scene.received(), scene.account_of(1).await), (0, None));
    assert_served(&scene.send("/dear", None, Some(&scene.signed(1, LARGE, 2))).await);
    assert_eq!(scene.balance_of(1).await, "0.1");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_refused_by_name_and_nothing_is_taken() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    let good = payment(&accepted(&signed), &signed);
    let no_authorization = encoded(&json!({"x402Version": 2, "accepted": accepted(&signed), "payload": {}}));
    let old = encoded(&json!({"x402Version": 1, "accepted": accepted(&signed), "payload": payload(&signed)}));
    let mut afterwards = accepted(&signed);
    afterwards["extra"]["paymentFlow"] = json!("authorization");
    let afterwards = payment(&afterwards, &signed);
    for (header, code) in [
        ("", "invalid_payload"),
        ("%%%", "invalid_payload"),
        (&good[..good.len() - 8], "invalid_payload"),
        (no_authorization.as_str(), "invalid_payload"),
        (old.as_str(), "invalid_x402_version"),
        (afterwards.as_str(), "invalid_payload"),
    ] {
        let request = Request::get("/quote").header("payment-signature", header).body(String::new()).unwrap();
        let response = scene.ask(request).await;
        assert_eq!(refusal(&response), (400, "validation_failed".to_owned(), false), "{header}");
        assert_eq!(reason(&response), code, "{header}");
    }
    let mut elsewhere = accepted(&signed);
    elsewhere["network"] = json!("eip155:8453");
    let request = Request::get("/quote").header("payment-signature", payment(&elsewhere, &signed));
    let response = scene.ask(request.body(String::new()).unwrap()).await;
    assert_eq!((refusal(&response).0, reason(&response)), (402, "invalid_network".to_owned()));
    let twice = Request::get("/quote").header("payment-signature", &good).header("x-payment", payment_v1(&signed));
    assert_eq!(refusal(&scene.ask(twice.body(String::new()).unwrap()).await).0, 400);
    assert_eq!((scene.received(), scene.served()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_payment_has_a_value_if_a_plan_names_its_token() {
    for (has_plan, amount) in [(true, Some("0.43")), (false, None)] {
        let rates = ExchangeRates::new("EUR".parse().unwrap(), "ECB", None);
        rates.set(RateList::new("2026-11-20", [("USDC", "0.8612".parse().unwrap())]).unwrap());
        let scene = Scene::new().await.with_rates(rates);
        if has_plan {
            let plan = json!({
                "id": "starter", "chain_id": CHAIN, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
                "token_amount": "5", "token_contract": TOKEN.to_string(), "token_decimals": 6, "label": "Starter",
            });
            scene.store.put_plans(vec![serde_json::from_str(&plan.to_string()).unwrap()]).await.unwrap();
        }
        let signed = scene.signed(1, LARGE, 1);
        assert_served(&scene.send("/quote", Some(&scene.key), Some(&signed)).await);
        let record = scene.store.payments(None, 10).await.unwrap().items.remove(0);
        let value = record.value.unwrap();
        assert_eq!(value.currency.to_string(), "EUR");
        assert_eq!(value.converted.map(|one| one.amount.to_string()).as_deref(), amount, "{has_plan}");
    }
}
