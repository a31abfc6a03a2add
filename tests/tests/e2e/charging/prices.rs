//! Prices: the charge for a request, to the last atom.

use metering_tests::site::Site;
use serde_json::json;

use crate::support::wire::{BASE_CALL, CREDIT, STREAM, amount, balance};

#[test]
fn response_without_credits_says_how_to_buy() {
    let site = Site::new();
    let account = site.account("0");
    let plan = [
        ["plan", "set", "starter", "--chain-id", "8453"].as_slice(),
        &["--label", "Starter", "--credits", "10", "--payment-kind", "native_value"],
        &["--token-symbol", "ETH", "--token-amount", "0.0025", "--token-decimals", "18"],
    ];
    let _ = site.admin_json(&plan.concat());
    let recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let server = site
        .server()
        .set("METERING_CHAINS__BASE__CHAIN_ID", "8453")
        .set("METERING_CHAINS__BASE__RECIPIENT", recipient)
        .set("METERING_PUBLIC_URL", "https://meter.example/")
        .start();
    let refused = server.client_with(&account.api_key).get("/mpp/ethPrice").expect(402);
    let start = "{\"error\":\"insufficient_credits\",\"message\":\"";
    assert!(refused.text().starts_with(start), "{}", refused.text());
    let middle = "\"credit_balance\":0,\"required\":0.0006944444,\"plans_url\":\"https://meter.example/credits/plans\",\
                  \"topup_url\":\"https://meter.example/credits/topup\",\"plans\":[{\"id\":\"starter\",";
    assert!(refused.text().contains(middle), "{}", refused.text());
    let (body, plans) = (refused.json(), server.client().get("/credits/plans").expect(200).json());
    for key in ["plans", "chains", "terms_url", "terms_version", "primary_chain_id", "primary_recipient", "epoch_unit"]
    {
        assert_eq!(body[key], plans[key], "{key}");
    }
    assert_eq!(body["plans"][0]["recipient"], recipient);
    assert_eq!(body["plans"][0]["token_amount"], "0.0025");
    assert_eq!(body["epoch_unit"]["epochs_per_credit"], json!(7200));
    assert_eq!(body["primary_chain_id"], json!(8453));
    assert_eq!(body["docs"], "https://meter.example/docs/guides/errors#402-credits");
    let without_key = server.client().get("/credits/balance").expect(401).json();
    assert_eq!(without_key["docs"], "https://meter.example/docs/guides/errors#401-the-key");
}

#[test]
fn route_costs_its_weight_times_its_multiplier() {
    let series = |seconds: &str| format!("/mpp/timeSeries/0xaa/0xbb/{seconds}/60");
    // path, price in base calls
    let table = [
        ("/mpp/pool/0xaa/metadata".to_owned(), 1),
        ("/mpp/ethPrice".to_owned(), 5),
        ("/mpp/ethPrice/1".to_owned(), 10),
        ("/mpp/token/price/0xaa/0xbb".to_owned(), 5),
        ("/mpp/token/price/0xaa/0xbb/1".to_owned(), 10),
        ("/mpp/tokenPrices/all/0xaa".to_owned(), 10),
        ("/mpp/dailyActiveTokens?page=1&size=2&metadata=true".to_owned(), 1),
        (series("0"), 5),
        (series("1"), 5),
        (series("600"), 5),
        (series("601"), 10),
        (series("1800"), 10),
        (series("1801"), 20),
        (series("3600"), 20),
        (series("3601"), 40),
        (series("7200"), 40),
        (series("14400"), 80),
        (series("21600"), 160),
        (series("43200"), 320),
        (series("86400"), 640),
        (series("172800"), 1_280),
        (series("345600"), 2_560),
        (series("604800"), 5_120),
        (series("604801"), 10_240),
        (series("9223372036854775807"), 10_240),
    ];
    let (_site, account, server) = Site::serving("100");
    let client = server.client_with(&account.api_key);
    let mut left = 100 * CREDIT;
    for (path, base_calls) in table {
        let response = client.get(&path);
        assert!(response.status < 500, "{path}: {response:?}");
        let price = base_calls * BASE_CALL;
        left -= price;
        assert_eq!(response.header("x-bds-credit-charged"), Some(amount(price).as_str()), "{path}: {response:?}");
        assert_eq!(response.header("x-bds-credit-balance"), Some(amount(left).as_str()), "{path}");
    }
    let stream = client.open(STREAM);
    assert_eq!((stream.status, stream.header("x-bds-credit-charged")), (200, Some("0.01")));
    left -= CREDIT / 100;
    assert_eq!(stream.header("x-bds-credit-balance"), Some(amount(left).as_str()));
    assert_eq!(balance(&client), amount(left));
}
