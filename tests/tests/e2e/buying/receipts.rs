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

#[test]
fn receipts_keep_the_buyer_of_their_purchase() {
    let Some(shop) = Shop::with(Chain::setup(), "1", "") else { return };
    let customer = shop.customer();
    let key = shop.signed_up(Kind::Token, &customer);
    let client = shop.server.client_with(&key);
    let set = |details: &Value| client.send("PUT", "/credits/buyer", Some(details.to_string().as_bytes()));
    let receipts = || client.get("/credits/receipts").expect(200).json()["receipts"].clone();
    let old = receipts()[0]["number"].as_str().unwrap().to_owned();
    let add = |number: &str| client.post(&format!("/credits/receipt/buyer?number={number}"), &json!({}));
    assert_eq!(client.get("/credits/buyer").expect(200).json()["buyer"], Value::Null);
    assert!(add(&old).expect(400).json()["fields"]["number"].as_str().unwrap().contains("before they are set"));

    let acme = json!({"name": "Acme & Söhne", "address": ["Weg 1", "10115 Berlin"], "tax_id": "DE 123"});
    assert_eq!(set(&acme).expect(200).json()["buyer"], acme);
    assert_eq!(receipts()[0]["buyer"], Value::Null, "it was bought before");
    let hash = shop.pay(Kind::Token, &customer, STARTER);
    let _ = shop.top_up(&key, Kind::Token, &hash, None).expect(200);
    let plain = json!({"name": "Plain", "address": [], "tax_id": null});
    let _ = set(&plain).expect(200);
    assert_eq!(receipts()[0]["buyer"], acme, "a change is for later purchases");

    // The old one names nobody, so it gets the details of now, once.
    assert_eq!(add(&old).expect(200).json()["buyer"], plain);
    assert_eq!(add(&old).expect(200).json()["buyer"], plain, "a repeated request changes nothing");
    let _ = set(&acme).expect(200);
    assert!(
        add(&old).expect(400).json()["fields"]["number"]
            .as_str()
            .unwrap()
            .contains("already has other billing details")
    );
    assert_eq!(client.get("/credits/buyer").expect(200).json()["buyer"], acme);
    let _ = set(&json!({"name": null})).expect(200);
    assert_eq!((&receipts()[0]["buyer"], &receipts()[1]["buyer"]), (&acme, &plain));

    // Only the first key says who buys.
    let reader = client.post("/keys", &json!({"name": "reader", "scopes": ["read"]})).expect(201).json();
    let reader = shop.server.client_with(reader["key"].as_str().unwrap());
    let _ = reader.get("/credits/buyer").expect(200);
    let _ = reader.send("PUT", "/credits/buyer", Some(br#"{"name": "x"}"#)).expect(403);
    shop.site.verify();
}

#[test]
fn a_receipt_is_a_pdf_file_too() {
    let Some(shop) = Shop::with(Chain::setup(), "1", "[operator]\nname = 'Acme Data Ltd'") else { return };
    let key = shop.signed_up(Kind::Token, &shop.customer());
    let client = shop.server.client_with(&key);
    let number = client.get("/credits/receipts").expect(200).json()["receipts"][0]["number"].clone();
    let number = number.as_str().unwrap();
    let file = || client.get(&format!("/credits/receipt.pdf?number={number}")).expect(200);
    let first = file();
    assert_eq!(first.header("content-type"), Some("application/pdf"));
    let disposition = format!("attachment; filename=\"{number}.pdf\"");
    assert_eq!(first.header("content-disposition"), Some(disposition.as_str()));
    assert!(first.body.starts_with(b"%PDF-1.7"));
    assert_eq!(first.body, file().body, "always the same");
    let unknown = "/credits/receipt.pdf?number=R-1-ABABABABABABABAB";
    assert_eq!(client.get(unknown).expect(404).error(), "not_found");
    let _ = client.get("/credits/receipt.pdf?number=1").expect(400);
}
