//! Limits per client address and per wallet in the middle of real purchases: a refused request loses nothing, and
//! clients that wait for `Retry-After` get through.

use std::thread;
use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::response::Response;
use serde_json::json;

use crate::support::shop::{Kind, Shop, claim, key_of};
use crate::support::wire::BASE;
use crate::support::wire::retry_after;

#[track_caller]
fn assert_limited(response: &Response) -> u64 {
    assert_eq!((response.status, response.error().as_str()), (429, "rate_limited"), "{}", response.text());
    retry_after(response)
}

fn request_quote(client: &Client, payer: &str) -> Response {
    let body = json!({"agent_name": "agent", "plan_id": "starter", "chain_id": 31337, "token_symbol": "USDC",
        "payer_address": payer});
    client.post("/signup/pay/quote", &body)
}

fn challenge(client: &Client, address: &str) -> Response {
    client.post("/api-key/recover/challenge", &json!({ "address": address }))
}

#[test]
fn quotes_claims_and_top_ups_share_one_rate_limit() {
    let Some(mut shop) = Shop::open() else { return };
    let (customer, next) = (shop.customer(), shop.customer());
    let (quote, later) = (shop.quote(Kind::Token, &customer.address()), shop.quote(Kind::Token, &next.address()));
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    let paid_later = shop.pay(Kind::Token, &next, later.units);
    let topped_up = shop.pay(Kind::Token, &customer, Kind::Token.price());
    let _ = shop.chain.mined(&topped_up);
    shop.restart_with(&[("METERING_LIMITS__SIGNUP_PER_IP", "3/1h")]);
    let key = key_of(&shop.claim(&quote, &hash).expect(200));
    let _ = shop.request_quote(Kind::Token, &shop.customer().address()).expect(201);
    // Requests refused for their content count as well.
    assert_eq!(shop.claim(&later, "0x12").expect(400).error(), "invalid_tx_hash");
    let before = shop.books();
    let refused = [
        shop.request_quote(Kind::Token, &next.address()),
        shop.claim(&later, &paid_later),
        shop.top_up(&key, Kind::Token, &topped_up, None),
        shop.client().send("POST", "/signup/pay/quote", Some(b"{")),
        shop.client().post("/credits/topup", &json!({})),
    ];
    for response in refused {
        assert!((1_190..=1_200).contains(&assert_limited(&response)), "{}", response.text());
    }
    assert_eq!(shop.books(), before);
    // Nothing else counts.
    for _ in 0..5 {
        for path in ["/credits/plans", "/health"] {
            let _ = shop.client().get(path).expect(200);
        }
        for path in ["/credits/balance", "/credits/usage", BASE] {
            let _ = shop.server.client_with(&key).get(path).expect(200);
        }
        let _ = challenge(&shop.client(), &customer.address()).expect(201);
    }
    shop.restart_with(&[]);
    let _ = shop.claim(&later, &paid_later).expect(200);
    let _ = shop.top_up(&key, Kind::Token, &topped_up, None).expect(200);
    shop.site.verify();
}

#[test]
fn client_that_honours_retry_after_succeeds_once() {
    let Some(mut shop) = Shop::open() else { return };
    let customer = shop.customer();
    let _ = shop.signed_up(Kind::Token, &customer);
    shop.restart_with(&[("METERING_LIMITS__RECOVERY_PER_IP", "2/6s")]);
    let client = shop.client();
    let (nonce, message) = shop.challenge(&customer.address());
    let signature = shop.chain.wallet().sign_message(&customer, &message);
    // Responses to a challenge count with the requests for one.
    assert_eq!(shop.verify(&customer.address(), &nonce, "0xab").expect(400).error(), "invalid_signature");
    let seconds = assert_limited(&shop.verify(&customer.address(), &nonce, &signature));
    assert!((1..=3).contains(&seconds), "{seconds}");
    // Refused requests do not extend the wait.
    for _ in 0..20 {
        assert!(assert_limited(&challenge(&client, &customer.address())) <= seconds);
    }
    thread::sleep(Duration::from_secs(seconds));
    let rotated = shop.verify(&customer.address(), &nonce, &signature).expect(200);
    assert_eq!(shop.balance(&key_of(&rotated)), "12.5");
    let _ = assert_limited(&challenge(&client, &customer.address()));
    // Signups have their own quota.
    let _ = shop.quote(Kind::Token, &shop.customer().address());
}

#[test]
fn only_trusted_proxies_can_distinguish_clients() {
    let Some(mut shop) = Shop::open() else { return };
    let payer = shop.customer().address();
    let quota = ("METERING_LIMITS__SIGNUP_PER_IP", "1/1h");
    for trusted in ["", "10.0.0.0/8, ::1"] {
        shop.restart_with(&[quota, ("METERING_HTTP__TRUSTED_PROXIES", trusted)]);
        let _ = request_quote(&shop.client(), &payer).expect(201);
        for header in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"] {
            for value in ["6.6.6.6", "for=6.6.6.6", "10.0.0.1", "::1"] {
                let _ = assert_limited(&request_quote(&shop.client().with_header(header, value), &payer));
            }
        }
    }
    shop.restart_with(&[quota, ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")]);
    let from =
        |lines: &[&str]| lines.iter().fold(shop.client(), |client, line| client.with_header("X-Forwarded-For", line));
    // lines, whether that client was counted before
    let table: [(&[&str], bool); 12] = [
        (&["1.1.1.1"], false),
        (&["1.1.1.1"], true),
        (&["2.2.2.2"], false),
        (&["9.9.9.9, 1.1.1.1"], true),
        (&["9.9.9.9", "1.1.1.1"], true),
        (&["2.2.2.2, 3.3.3.3, 10.1.2.3"], false),
        (&["3.3.3.3:4711"], true),
        (&["2001:db8:0:1::1"], false),
        (&["2001:db8:0:1:ffff::2"], true),
        (&["2001:db8:0:2::1"], false),
        // An unreadable address counts as the proxy's own.
        (&["unknown"], false),
        (&["4.4.4.4, _hidden"], true),
    ];
    for (lines, seen) in table {
        let response = request_quote(&from(lines), &payer);
        assert_eq!(response.status, if seen { 429 } else { 201 }, "{lines:?}: {}", response.text());
    }
}

#[test]
fn wallet_limit_ignores_spelling_and_address() {
    let Some(mut shop) = Shop::open() else { return };
    let (customer, other) = (shop.customer(), shop.customer());
    let quote = shop.quote(Kind::Token, &customer.address());
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    let _ = shop.chain.mined(&hash);
    shop.restart_with(&[("METERING_LIMITS__PER_WALLET", "3/1h"), ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1")]);
    let from = |address: &str| shop.client().with_header("X-Forwarded-For", address);
    let (lower, upper) = (customer.address(), format!("0x{}", customer.address()[2..].to_uppercase()));
    // An invalid address counts for no wallet.
    for _ in 0..5 {
        assert_eq!(request_quote(&from("1.1.1.1"), &lower[..41]).expect(400).error(), "validation_failed");
    }
    let _ = request_quote(&from("1.1.1.1"), &lower).expect(201);
    let _ = request_quote(&from("2.2.2.2"), customer.checksummed()).expect(201);
    // A claim names no wallet: anyone with the quote may claim.
    let key = key_of(&claim(&from("3.3.3.3"), &quote.nonce, &hash).expect(200));
    let issued = challenge(&from("4.4.4.4"), &upper).expect(201).json();
    for (number, address) in [&lower, &upper, customer.checksummed()].into_iter().enumerate() {
        let client = from(&format!("5.5.5.{number}"));
        assert!(assert_limited(&request_quote(&client, address)) > 1_000);
        assert!(assert_limited(&challenge(&client, address)) > 1_000);
    }
    let _ = request_quote(&from("5.5.5.1"), &other.address()).expect(201);
    // The owner's response to an open challenge gets through.
    let message = issued["message"].as_str().unwrap();
    let signature = shop.chain.wallet().sign_message(&customer, message);
    let rotated = shop.verify(&lower, issued["nonce"].as_str().unwrap(), &signature).expect(200);
    assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(shop.balance(&key_of(&rotated)), "12.5");
}
