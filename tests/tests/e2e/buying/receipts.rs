//! Receipts for purchases.

use metering_tests::chain::Chain;
use serde_json::{Value, json};

use crate::support::shop::{Kind, STARTER, Shop};

#[test]
fn each_purchase_has_one_receipt() {
    let seller = "[operator]\nname = 'Acme Data Ltd'\naddress = '''\n1 High Street\nLondon\n'''\ntax_id = 'GB 123'";
    let Some(shop) = Shop::with(Chain::setup(), "1", seller) else { return };
    let (customer, other) = (shop.customer(), shop.customer());
    let key = shop.signed_up(Kind::Token, &customer);
    let hash = shop.pay(Kind::Token, &customer, STARTER);
    let _ = shop.top_up(&key, Kind::Token, &hash, None).expect(200);
    let client = shop.server.client_with(&key);
    let list = client.get("/credits/receipts").expect(200).json();
    let receipts = list["receipts"].as_array().unwrap();
    assert_eq!((receipts.len(), &list["next"]), (2, &json!(null)));

    let top_up = &receipts[0];
    let chain_id = shop.chain.chain_id();
    let number = format!("R-{chain_id}-{}", hash[2..18].to_uppercase());
    assert_eq!((&top_up["number"], &top_up["status"]), (&json!(number), &json!("paid")));
    assert_eq!(top_up["payment"]["tx_hash"], json!(hash));
    assert_eq!(top_up["payment"]["payer"], json!(customer.checksummed()));
    assert_eq!(top_up["payment"]["recipient"], json!(shop.recipient.checksummed()));
    assert_eq!((&top_up["payment"]["token_amount"], &top_up["payment"]["token_symbol"]), (&json!("5"), &json!("USDC")));
    assert_eq!(top_up["payment"]["amount_atomic"], json!(STARTER.to_string()));
    assert_eq!(
        (top_up["credits"].to_string(), top_up["bonus_credits"].to_string()),
        ("10.5".to_owned(), "0.5".to_owned())
    );
    assert_eq!(top_up["plan_id"], "starter");
    let seller =
        json!({"name": "Acme Data Ltd", "address": ["1 High Street", "London"], "tax_id": "GB 123", "contact": null});
    assert_eq!(top_up["seller"], seller);
    for receipt in receipts {
        assert_eq!((&receipt["plan_id"], &receipt["plan_label"]), (&json!("starter"), &json!("Starter")));
        assert_eq!(receipt["bonus_credits"].to_string(), "0.5");
    }
    assert_ne!(receipts[1]["number"], top_up["number"]);

    let one = |client: &metering_tests::client::Client, number: &str| {
        client.get(&format!("/credits/receipt?number={number}"))
    };
    assert_eq!(&one(&client, &number).expect(200).json(), top_up);
    assert_eq!(&one(&client, &number.to_lowercase()).expect(200).json(), top_up, "in any case");
    let stranger = shop.server.client_with(&shop.signed_up(Kind::Token, &other));
    assert_eq!(one(&stranger, &number).expect(404).error(), "not_found");

    // Newest first, in parts.
    let first = client.get("/credits/receipts?limit=1").expect(200).json();
    assert_eq!(first["receipts"], json!([top_up]));
    let second = client.get(&format!("/credits/receipts?limit=1&before={}", first["next"])).expect(200).json();
    assert_eq!((&second["receipts"], &second["next"]), (&json!([receipts[1]]), &Value::Null));

    // The receipt stays as it is when the plan is removed.
    let _ = shop.site.admin(&["plan", "remove", "starter", "--chain-id", &chain_id.to_string()]);
    let later = client.get("/credits/receipts").expect(200).json();
    assert_eq!(later["receipts"], json!(receipts));
    shop.site.verify();
}
