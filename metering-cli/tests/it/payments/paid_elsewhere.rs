//! Quotes that another wallet pays.

use std::time::Duration;

use serde_json::json;

use crate::fixture::{Fixture, OTHER, RunOutput, SIGNUP, WALLET};
use crate::stand_in::Step;

const QUOTE: [&str; 8] = ["signup-pay", "--plan", "starter", "--agent-name", "agent", "--quote-only", "--payer", OTHER];

fn hash(byte: &str) -> String {
    format!("0x{}", byte.repeat(32))
}

/// A fixture with a quote, and what was printed about it.
fn quoted() -> (Fixture, RunOutput) {
    let fixture = Fixture::new();
    let ran = fixture.run_without_wallet(&[&QUOTE[..], &["--json"]].concat()).success();
    (fixture, ran)
}

/// The other wallet pays.
fn pay(fixture: &Fixture, hash: &str) {
    fixture.stand_in.state().node.sent.push(hash.to_owned());
}

#[test]
fn quote_is_printed_without_its_secret_and_claimed_by_tx_hash() {
    let (fixture, ran) = quoted();
    let quote = ran.json();
    assert_eq!((quote["amount_atomic"].as_str(), quote["amount_human"].as_str()), (Some("5003817"), Some("5.003817")));
    assert_eq!((quote["payer"].as_str(), quote["status"].as_str()), (Some(OTHER), Some("quoted")));
    assert!(quote.get("signup_nonce").is_none());
    let again = fixture.run_without_wallet(&QUOTE).success();
    assert!(again.stdout.contains("5.003817 USDC, exactly") && again.stderr.contains("--tx HASH"), "{again:?}");
    assert_eq!(fixture.stand_in.count("POST /signup/pay/quote"), 1);
    pay(&fixture, &hash("ab"));
    fixture.run_without_wallet(&["signup-pay", "--tx", &hash("ab")]).success();
    fixture.is_settled();
}

#[test]
fn quote_for_another_wallet_is_never_paid_by_this_wallet() {
    let (fixture, _) = quoted();
    for args in [&SIGNUP[..], &["signup-pay", "--yes"]] {
        let failure = fixture.run(args).failure(2);
        assert!(failure.contains("--tx HASH"), "{failure}");
    }
    assert_eq!(fixture.sent(), 0);
    let failure = fixture.run(&["signup-pay", "--plan", "coin", "--agent-name", "agent", "--quote-only"]).failure(5);
    assert!(failure.contains("to be paid by another wallet"), "{failure}");
}

#[test]
fn wrong_hash_leaves_the_quote_claimable() {
    let (fixture, _) = quoted();
    fixture.run_without_wallet(&["signup-pay", "--tx", &hash("aa"), "--wait", "0"]).failure(8);
    let mismatch = json!({ "error": "payment_mismatch", "message": "It pays 5 and not 5.003817." });
    fixture.stand_in.next("POST /signup/pay/claim", Step::Respond(400, mismatch));
    let failure = fixture.run_without_wallet(&["signup-pay", "--tx", &hash("bb")]).failure(5);
    assert!(failure.contains("The quote is kept"), "{failure}");
    pay(&fixture, &hash("cc"));
    fixture.run_without_wallet(&["signup-pay", "--tx", &hash("cc")]).success();
    fixture.is_settled();
}

#[test]
fn expired_quote_is_kept_on_record_for_late_payers() {
    let fixture = Fixture::new();
    fixture.stand_in.state().service.quotes_expire_in_seconds = 1;
    fixture.run_without_wallet(&QUOTE).success();
    std::thread::sleep(Duration::from_millis(1_200));
    fixture.stand_in.state().service.quotes_expire_in_seconds = 60;
    let ran = fixture.run_without_wallet(&QUOTE).success();
    assert!(ran.stderr.contains("has expired"), "{ran:?}");
    assert_eq!(fixture.set_aside(), ["expired"]);
    assert_eq!(fixture.stand_in.count("POST /signup/pay/quote"), 2);
}

#[test]
fn an_expired_quote_that_was_paid_is_claimed() {
    let fixture = Fixture::new();
    fixture.stand_in.state().service.quotes_expire_in_seconds = 0;
    fixture.run_without_wallet(&QUOTE).success();
    pay(&fixture, &hash("ab"));
    fixture.run_without_wallet(&["signup-pay", "--tx", &hash("ab")]).success();
    fixture.is_settled();
}

#[test]
fn claim_with_lost_key_explains_rotation() {
    let (fixture, _) = quoted();
    pay(&fixture, &hash("ab"));
    let claim = ["signup-pay", "--tx", &hash("ab")];
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangAfter);
    fixture.run_and_kill(&claim);
    let failure = fixture.run_without_wallet(&claim).failure(5);
    assert!(failure.contains("metering rotate") && failure.contains(OTHER), "{failure}");
    assert_eq!(fixture.set_aside(), ["already_claimed"]);
}

#[test]
fn a_payment_without_a_quote_cannot_be_claimed() {
    let fixture = Fixture::new();
    let failure = fixture.run(&["signup-pay", "--tx", &hash("ab")]).failure(4);
    assert!(failure.contains("--quote-only"), "{failure}");
    let own = fixture.run(&["signup-pay", "--plan", "coin", "--agent-name", "a", "--quote-only", "--json"]).success();
    assert_eq!(own.json()["payer"], WALLET, "the local wallet is the payer if none is named");
}
