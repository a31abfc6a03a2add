//! Limits per client address and per wallet in the middle of real purchases: a refused request loses nothing, and
//! clients that wait for `Retry-After` get through.

use std::thread;
use std::time::Duration;

use metering_tests::answer::Answer;
use metering_tests::client::Client;
use serde_json::json;

use crate::market::{Kind, Market, claim, key_of};
use crate::market_settings::retry_after;
use crate::wire::BASE;

#[track_caller]
fn is_limited(answer: &Answer) -> u64 {
    assert_eq!((answer.status, answer.error().as_str()), (429, "rate_limited"), "{}", answer.text());
    retry_after(answer)
}

fn ask(client: &Client, payer: &str) -> Answer {
    let body = json!({"agent_name": "agent", "plan_id": "starter", "chain_id": 31337, "token_symbol": "USDC",
        "payer_address": payer});
    client.post("/signup/pay/quote", &body)
}

fn challenge(client: &Client, address: &str) -> Answer {
    client.post("/api-key/recover/challenge", &json!({ "address": address }))
}

#[test]
fn quotes_claims_and_top_ups_share_a_quota_and_a_refused_one_loses_nothing() {
    let Some(mut market) = Market::open() else { return };
    let (customer, next) = (market.customer(), market.customer());
    let (quote, later) = (market.quote(Kind::Token, &customer.address()), market.quote(Kind::Token, &next.address()));
    let hash = market.pay(Kind::Token, &customer, quote.units);
    let paid_later = market.pay(Kind::Token, &next, later.units);
    let topped_up = market.pay(Kind::Token, &customer, Kind::Token.price());
    let _ = market.chain.mined(&topped_up);
    market.reopen(&[("METERING_LIMITS__SIGNUP_PER_IP", "3/1h")]);
    let key = key_of(&market.claim(&quote, &hash).expect(200));
    let _ = market.ask(Kind::Token, &market.customer().address()).expect(201);
    // Requests refused for their content count as well.
    assert_eq!(market.claim(&later, "0x12").expect(400).error(), "invalid_tx_hash");
    let before = market.books();
    let refused = [
        market.ask(Kind::Token, &next.address()),
        market.claim(&later, &paid_later),
        market.top_up(&key, Kind::Token, &topped_up, None),
        market.client().send("POST", "/signup/pay/quote", Some(b"{")),
        market.client().post("/credits/topup", &json!({})),
    ];
    for answer in refused {
        assert!((1_190..=1_200).contains(&is_limited(&answer)), "{}", answer.text());
    }
    assert_eq!(market.books(), before);
    // Nothing else counts.
    for _ in 0..5 {
        for path in ["/credits/plans", "/health"] {
            let _ = market.client().get(path).expect(200);
        }
        for path in ["/credits/balance", "/credits/usage", BASE] {
            let _ = market.server.client_with(&key).get(path).expect(200);
        }
        let _ = challenge(&market.client(), &customer.address()).expect(201);
    }
    market.reopen(&[]);
    let _ = market.claim(&later, &paid_later).expect(200);
    let _ = market.top_up(&key, Kind::Token, &topped_up, None).expect(200);
    market.site.verify();
}

#[test]
fn who_waits_as_long_as_they_are_told_gets_through_once() {
    let Some(mut market) = Market::open() else { return };
    let customer = market.customer();
    let _ = market.signed_up(Kind::Token, &customer);
    market.reopen(&[("METERING_LIMITS__RECOVERY_PER_IP", "2/6s")]);
    let client = market.client();
    let (nonce, message) = market.challenge(&customer.address());
    let signature = market.chain.wallet().sign_message(&customer, &message);
    // Responses to a challenge count with the requests for one.
    assert_eq!(market.verify(&customer.address(), &nonce, "0xab").expect(400).error(), "invalid_signature");
    let seconds = is_limited(&market.verify(&customer.address(), &nonce, &signature));
    assert!((1..=3).contains(&seconds), "{seconds}");
    // Refused requests do not extend the wait.
    for _ in 0..20 {
        assert!(is_limited(&challenge(&client, &customer.address())) <= seconds);
    }
    thread::sleep(Duration::from_secs(seconds));
    let rotated = market.verify(&customer.address(), &nonce, &signature).expect(200);
    assert_eq!(market.balance(&key_of(&rotated)), "12.5");
    let _ = is_limited(&challenge(&client, &customer.address()));
    // Signups have their own quota.
    let _ = market.quote(Kind::Token, &market.customer().address());
}

#[test]
fn only_a_trusted_proxy_tells_clients_apart() {
    let Some(mut market) = Market::open() else { return };
    let payer = market.customer().address();
    let quota = ("METERING_LIMITS__SIGNUP_PER_IP", "1/1h");
    for trusted in ["", "10.0.0.0/8, ::1"] {
        market.reopen(&[quota, ("METERING_HTTP__TRUSTED_PROXIES", trusted)]);
        let _ = ask(&market.client(), &payer).expect(201);
        for header in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"] {
            for value in ["6.6.6.6", "for=6.6.6.6", "10.0.0.1", "::1"] {
                let _ = is_limited(&ask(&market.client().with_header(header, value), &payer));
            }
        }
    }
    market.reopen(&[quota, ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")]);
    let from =
        |lines: &[&str]| lines.iter().fold(market.client(), |client, line| client.with_header("X-Forwarded-For", line));
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
        let answer = ask(&from(lines), &payer);
        assert_eq!(answer.status, if seen { 429 } else { 201 }, "{lines:?}: {}", answer.text());
    }
}

#[test]
fn a_wallet_has_one_quota_in_any_spelling_and_from_anywhere() {
    let Some(mut market) = Market::open() else { return };
    let (customer, other) = (market.customer(), market.customer());
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    let _ = market.chain.mined(&hash);
    market.reopen(&[("METERING_LIMITS__PER_WALLET", "3/1h"), ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1")]);
    let from = |address: &str| market.client().with_header("X-Forwarded-For", address);
    let (lower, upper) = (customer.address(), format!("0x{}", customer.address()[2..].to_uppercase()));
    // An invalid address counts for no wallet.
    for _ in 0..5 {
        assert_eq!(ask(&from("1.1.1.1"), &lower[..41]).expect(400).error(), "validation_failed");
    }
    let _ = ask(&from("1.1.1.1"), &lower).expect(201);
    let _ = ask(&from("2.2.2.2"), customer.checksummed()).expect(201);
    // A claim names no wallet: anyone with the quote may claim.
    let key = key_of(&claim(&from("3.3.3.3"), &quote.nonce, &hash).expect(200));
    let asked = challenge(&from("4.4.4.4"), &upper).expect(201).json();
    for (number, address) in [&lower, &upper, customer.checksummed()].into_iter().enumerate() {
        let client = from(&format!("5.5.5.{number}"));
        assert!(is_limited(&ask(&client, address)) > 1_000);
        assert!(is_limited(&challenge(&client, address)) > 1_000);
    }
    let _ = ask(&from("5.5.5.1"), &other.address()).expect(201);
    // The owner's response to an open challenge gets through.
    let message = asked["message"].as_str().unwrap();
    let signature = market.chain.wallet().sign_message(&customer, message);
    let rotated = market.verify(&lower, asked["nonce"].as_str().unwrap(), &signature).expect(200);
    assert_eq!(market.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(market.balance(&key_of(&rotated)), "12.5");
}
