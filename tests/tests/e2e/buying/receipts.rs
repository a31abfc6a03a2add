//! Receipts for purchases.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use metering_core::{Clock, SystemClock};
use metering_tests::chain::Chain;
use serde_json::{Value, json};

use crate::support::shop::{Kind, STARTER, Shop};
use crate::support::wait::until;

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

    // The receipt does not change when the plan is removed.
    let _ = shop.site.admin(&["plan", "remove", "starter", "--chain-id", &chain_id.to_string()]);
    let later = client.get("/credits/receipts").expect(200).json();
    assert_eq!(later["receipts"], json!(receipts));
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

    // The old one has no buyer, so it gets the current details, once.
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

/// A source of exchange rates on loopback, whose document can be changed.
#[derive(Clone, Default)]
struct Rates {
    document: Arc<Mutex<String>>,
    /// How often it was read.
    reads: Arc<AtomicUsize>,
}

impl Rates {
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (rates, url) = (Self::default(), format!("http://{}/eur.json", listener.local_addr().unwrap()));
        let served = rates.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let document = served.document.lock().unwrap().clone();
                let head =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", document.len());
                let _ = stream.write_all((head + &document).as_bytes());
                served.reads.fetch_add(1, Ordering::SeqCst);
            }
        });
        (rates, url)
    }

    /// Changes the document, and waits until the server has used it. A read under way may still get the old one, and the
    /// server reads again only when it has used what it read.
    fn change(&self, document: &str) {
        document.clone_into(&mut self.document.lock().unwrap());
        let before = self.reads.load(Ordering::SeqCst);
        until("the rates are read", || self.reads.load(Ordering::SeqCst) >= before + 3);
    }
}

#[test]
fn receipts_have_the_value_of_the_moment_of_the_credit() {
    let (rates, url) = Rates::start();
    let currency = format!(
        "[operator]\ntax_id = 'DE 1'\n[receipts]\nnumbering = 'consecutive'\nprefix = '{{year}}-'\n\
         [receipts.tax]\nname = 'VAT'\nrate = '0.19'\nreverse_charge = true\n\
         [receipts.currency]\ncode = 'EUR'\nsource = 'Rates Desk'\nurl = '{url}'\nevery = '1s'\nmax_age = '1d'"
    );
    let Some(shop) = Shop::with(Chain::setup(), "1", &currency) else { return };
    let customer = shop.customer();
    // An empty document has no rates. The purchase is credited all the same.
    let key = shop.signed_up(Kind::Token, &customer);
    let client = shop.server.client_with(&key);
    let values = || {
        let list = client.get("/credits/receipts").expect(200).json();
        let receipts = list["receipts"].as_array().unwrap();
        receipts.iter().map(|receipt| receipt["payment"]["value"].clone()).collect::<Vec<_>>()
    };
    let none = json!({"currency": "EUR", "amount": null, "rate": null, "rate_source": null, "rate_as_of": null});
    assert_eq!(values(), std::slice::from_ref(&none));

    let now = SystemClock.now().to_string();
    let document =
        |as_of: &str, rate: &str| format!(r#"{{"as_of": "{as_of}", "rates": {{"USDC": {rate}, "ETH": 1}}}}"#);
    let buy = || {
        let hash = shop.pay(Kind::Token, &customer, STARTER);
        let _ = shop.top_up(&key, Kind::Token, &hash, None).expect(200);
    };
    rates.change(&document(&now, "0.8612"));
    buy();
    let first = json!({
        "currency": "EUR", "amount": "4.31", "rate": "0.8612", "rate_source": "Rates Desk", "rate_as_of": now,
    });
    assert_eq!(values(), [first.clone(), none.clone()]);
    // The last rates stay while the source has only rubbish.
    rates.change("<html>");
    buy();
    assert_eq!(values(), [first.clone(), first.clone(), none.clone()]);
    rates.change(&document("2020-01-01", "1"));
    buy();
    assert_eq!(values(), [none.clone(), first.clone(), first.clone(), none.clone()], "these rates are too old");

    let receipts = client.get("/credits/receipts").expect(200).json()["receipts"].clone();
    let tax = json!({
        "name": "VAT", "percent": "19", "currency": "EUR", "gross": "4.31", "net": "3.62", "amount": "0.69", "note": null,
    });
    assert_eq!([&receipts[0]["tax"], &receipts[1]["tax"]], [&Value::Null, &tax], "without a value there is no tax");
    let numbers: Vec<_> = (0..4).map(|place| receipts[place]["number"].as_str().unwrap()).collect();
    let expected = [4, 3, 2, 1].map(|place| format!("{}-0000{place}", &now[..4]));
    assert_eq!(numbers, expected);
    for number in [numbers[1], receipts[1]["reference"].as_str().unwrap()] {
        let found = client.get(&format!("/credits/receipt?number={number}")).expect(200).json();
        assert_eq!(found, receipts[1], "{number}");
    }

    let records = shop.site.admin_json(&["payments", "records"]);
    let recorded: Vec<_> = records["payments"].as_array().unwrap().iter().map(|record| &record["value"]).collect();
    assert_eq!(recorded, [&none, &first, &first, &none]);
    let csv = shop.site.admin(&["export", "payments"]).stdout;
    assert_eq!(csv.matches(",EUR,4.31,0.8612,Rates Desk,").count(), 2, "{csv}");
    assert!(!shop.server.log().contains("eur.json"), "the URL may have a secret");
}
