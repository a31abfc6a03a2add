//! Quotes that another wallet pays.

use std::time::Duration;

use serde_json::json;

use crate::desk::{Desk, OTHER, Ran, SIGNUP, WALLET};
use crate::stand_in::Turn;

const QUOTE: [&str; 8] = ["signup-pay", "--plan", "starter", "--agent-name", "agent", "--quote-only", "--payer", OTHER];

fn hash(byte: &str) -> String {
    format!("0x{}", byte.repeat(32))
}

/// A desk with a quote, and what was printed about it.
fn quoted() -> (Desk, Ran) {
    let desk = Desk::new();
    let ran = desk.run_without_wallet(&[&QUOTE[..], &["--json"]].concat()).success();
    (desk, ran)
}

/// The other wallet pays.
fn pay(desk: &Desk, hash: &str) {
    desk.stand_in.world().node.sent.push(hash.to_owned());
}

#[test]
fn a_quote_is_printed_without_its_secret_and_claimed_by_the_hash_of_its_payment() {
    let (desk, ran) = quoted();
    let quote = ran.json();
    assert_eq!((quote["amount_atomic"].as_str(), quote["amount_human"].as_str()), (Some("5003817"), Some("5.003817")));
    assert_eq!((quote["payer"].as_str(), quote["status"].as_str()), (Some(OTHER), Some("quoted")));
    assert!(quote.get("signup_nonce").is_none());
    let again = desk.run_without_wallet(&QUOTE).success();
    assert!(again.stdout.contains("5.003817 USDC, exactly") && again.stderr.contains("--tx HASH"), "{again:?}");
    assert_eq!(desk.stand_in.count("POST /signup/pay/quote"), 1);
    pay(&desk, &hash("ab"));
    desk.run_without_wallet(&["signup-pay", "--tx", &hash("ab")]).success();
    desk.is_settled();
}

#[test]
fn a_quote_for_another_wallet_is_never_paid_by_this_one() {
    let (desk, _) = quoted();
    for args in [&SIGNUP[..], &["signup-pay", "--yes"]] {
        let failure = desk.run(args).failure(2);
        assert!(failure.contains("--tx HASH"), "{failure}");
    }
    assert_eq!(desk.sent(), 0);
    let failure = desk.run(&["signup-pay", "--plan", "coin", "--agent-name", "agent", "--quote-only"]).failure(5);
    assert!(failure.contains("to be paid by another wallet"), "{failure}");
}

#[test]
fn a_wrong_hash_leaves_the_quote_to_be_claimed_with_the_right_one() {
    let (desk, _) = quoted();
    desk.run_without_wallet(&["signup-pay", "--tx", &hash("aa"), "--wait", "0"]).failure(8);
    let mismatch = json!({ "error": "payment_mismatch", "message": "It pays 5 and not 5.003817." });
    desk.stand_in.next("POST /signup/pay/claim", Turn::Answer(400, mismatch));
    let failure = desk.run_without_wallet(&["signup-pay", "--tx", &hash("bb")]).failure(5);
    assert!(failure.contains("The quote is kept"), "{failure}");
    pay(&desk, &hash("cc"));
    desk.run_without_wallet(&["signup-pay", "--tx", &hash("cc")]).success();
    desk.is_settled();
}

#[test]
fn an_expired_quote_is_kept_on_record_for_who_paid_it_late() {
    let desk = Desk::new();
    desk.stand_in.world().service.quotes_expire_in_seconds = 1;
    desk.run_without_wallet(&QUOTE).success();
    std::thread::sleep(Duration::from_millis(1_200));
    desk.stand_in.world().service.quotes_expire_in_seconds = 60;
    let ran = desk.run_without_wallet(&QUOTE).success();
    assert!(ran.stderr.contains("has expired"), "{ran:?}");
    assert_eq!(desk.set_aside(), ["expired"]);
    assert_eq!(desk.stand_in.count("POST /signup/pay/quote"), 2);
}

#[test]
fn an_expired_quote_that_was_paid_is_claimed() {
    let desk = Desk::new();
    desk.stand_in.world().service.quotes_expire_in_seconds = 0;
    desk.run_without_wallet(&QUOTE).success();
    pay(&desk, &hash("ab"));
    desk.run_without_wallet(&["signup-pay", "--tx", &hash("ab")]).success();
    desk.is_settled();
}

#[test]
fn a_claim_that_lost_its_key_says_how_the_wallet_gets_another() {
    let (desk, _) = quoted();
    pay(&desk, &hash("ab"));
    let claim = ["signup-pay", "--tx", &hash("ab")];
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangAfter);
    desk.run_and_kill(&claim);
    let failure = desk.run_without_wallet(&claim).failure(5);
    assert!(failure.contains("metering rotate") && failure.contains(OTHER), "{failure}");
    assert_eq!(desk.set_aside(), ["already_claimed"]);
}

#[test]
fn a_payment_without_a_quote_cannot_be_claimed() {
    let desk = Desk::new();
    let failure = desk.run(&["signup-pay", "--tx", &hash("ab")]).failure(4);
    assert!(failure.contains("--quote-only"), "{failure}");
    let own = desk.run(&["signup-pay", "--plan", "coin", "--agent-name", "a", "--quote-only", "--json"]).success();
    assert_eq!(own.json()["payer"], WALLET, "the local wallet is the payer if none is named");
}
