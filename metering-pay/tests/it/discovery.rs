//! The descriptions of routes in offers and the manifest.

use metering_pay::wire::x402::MAX_PAYMENT_REQUIRED_BYTES;
use metering_pay::{OfferSettings, SignedPayments};
use serde_json::{Value, json};

use super::scene::{SMALL, Scene, assert_served, decoded, refusal};

#[tokio::test(start_paused = true)]
async fn a_402_describes_its_route() {
    let scene = Scene::new().await;
    let described = |path: &'static str| {
        let scene = scene.clone();
        async move { decoded(&scene.send(path, None, None).await, "payment-required") }
    };
    let quote = described("/quote?symbol=ETH").await;
    let resource = json!({"url": "https://api.example/quote?symbol=ETH", "description": "A quote",
        "mimeType": "application/json"});
    assert_eq!(quote["resource"], resource);
    let bazaar = &quote["extensions"]["bazaar"];
    assert_eq!(bazaar["info"]["input"], json!({"type": "http", "method": "GET", "queryParams": {"symbol": "ETH"}}));
    assert_eq!(bazaar["info"]["output"], json!({"type": "json", "example": {"usd": "1.5"}}));
    assert_eq!(bazaar["schema"]["properties"]["input"]["required"], json!(["type", "method"]));
    // A route without a description or parameters is described as far as possible.
    let dear = described("/dear").await;
    assert_eq!(dear["resource"]["description"], "Credits for this request and later ones");
    assert_eq!(dear["extensions"]["bazaar"]["info"]["input"], json!({"type": "http", "method": "GET"}));
    // Other extensions are present too.
    assert!(dear["extensions"]["payment-identifier"]["info"].is_object(), "{dear}");
}

#[tokio::test(start_paused = true)]
async fn a_long_request_loses_the_description_of_its_route_first() {
    let scene = Scene::new().await;
    let response = scene.send(&format!("/quote?symbol={}", "x".repeat(1_000)), None, None).await;
    assert_eq!(refusal(&response), (402, "payment_required".to_owned(), true));
    assert!(response.headers()["payment-required"].len() <= MAX_PAYMENT_REQUIRED_BYTES);
    let required = decoded(&response, "payment-required");
    assert_eq!(required["extensions"].get("bazaar"), None);
    assert!(required["extensions"]["payment-identifier"].is_object(), "{required}");
}

#[tokio::test(start_paused = true)]
async fn offers_are_signed_and_so_is_the_receipt_of_what_was_served() {
    let scene = Scene::new().await;
    let extension = |document: &Value| document["extensions"]["offer-receipt"]["info"].clone();
    let unsigned = decoded(&scene.send("/quote", None, None).await, "payment-required");
    assert!(extension(&unsigned).is_null(), "{unsigned}");
    let scene = scene.with_signer(9);
    let offered = decoded(&scene.send("/quote", None, None).await, "payment-required");
    let offers = extension(&offered)["offers"].clone();
    assert_eq!(offers.as_array().unwrap().len(), offered["accepts"].as_array().unwrap().len());
    assert_eq!(offers[0]["payload"]["amount"], offered["accepts"][0]["amount"]);
    let served = scene.send("/quote", None, Some(&scene.signed(1, SMALL, 1))).await;
    assert_served(&served);
    let receipt = &extension(&decoded(&served, "payment-response"))["receipt"]["payload"];
    assert_eq!(receipt["resourceUrl"], "https://api.example/quote");
    assert_eq!(receipt["payer"], decoded(&served, "payment-response")["payer"]);
}

#[tokio::test(start_paused = true)]
async fn the_manifest_has_what_402s_offer() {
    let scene = Scene::new().await;
    let manifest = serde_json::to_value(scene.payments.manifest(&scene.service)).unwrap();
    let resources = ["/quote", "/dear", "/tiered", "/tokens"].map(|path| format!("https://api.example{path}"));
    assert_eq!(manifest["resources"], json!(resources));
    for (item, path) in manifest["items"].as_array().unwrap().iter().zip(["/quote", "/dear"]) {
        let offered = decoded(&scene.send(path, None, None).await, "payment-required");
        assert_eq!((&item["resource"], &item["accepts"]), (&offered["resource"], &offered["accepts"]), "{path}");
    }
    let nothing = SignedPayments::new(scene.store.clone(), scene.clock.clone(), "", OfferSettings::default());
    assert_eq!(serde_json::to_value(nothing.manifest(&scene.service)).unwrap(), Value::Null);
}
