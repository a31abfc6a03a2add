//! Quotes that another wallet pays.

use std::time::Duration;

use serde_json::{Value, json};

use super::{CLAIM, SIGNUP, Step, User, succeeded};
use crate::node::hash;
use crate::program::{OTHER, WALLET};

const QUOTE: &str = "signup-pay --plan starter --agent-name agent --quote-only --payer";
const NEW_QUOTE: &str = "POST /signup/pay/quote";

/// Prints the quote for the other wallet.
fn quote(user: &User, options: &str) -> crate::program::RunOutput {
    succeeded(user.run_without_wallet(&format!("{QUOTE} {OTHER} {options}")))
}

/// Claims with a hash, without the wallet.
fn claim(byte: u8) -> String {
    format!("signup-pay --tx {}", hash(byte))
}

/// The other wallet pays.
fn pay(user: &User, byte: u8) {
    user.state().node.sent.push(hash(byte));
}

#[test]
fn quote_is_printed_without_its_secret_and_claimed_by_tx_hash() {
    let user = User::new();
    let printed: Value = quote(&user, "--json").json();
    let found = ["amount_atomic", "amount_human", "payer", "status"].map(|name| &printed[name]);
    assert_eq!(json!(found), json!(["5003817", "5.003817", OTHER, "quoted"]));
    assert!(printed.get("signup_nonce").is_none());
    let again = quote(&user, "");
    assert!(again.stdout.contains("5.003817 USDC, exactly") && again.stderr.contains("--tx HASH"), "{again:?}");
    assert_eq!(user.count(NEW_QUOTE), 1);
    // This wallet never pays it.
    user.program.refuses(&[
        (SIGNUP, 2, "--tx HASH"),
        ("signup-pay --yes", 2, "--tx HASH"),
        ("signup-pay --plan coin --agent-name agent --quote-only", 5, "to be paid by another wallet"),
    ]);
    assert_eq!(user.sent(), 0);
    pay(&user, 0xab);
    succeeded(user.run_without_wallet(&claim(0xab)));
    user.is_settled();
}

#[test]
fn wrong_hash_leaves_the_quote_claimable() {
    let user = User::new();
    quote(&user, "");
    user.run_without_wallet(&format!("{} --wait 0", claim(0xaa))).failure(8);
    let mismatch = json!({ "error": "payment_mismatch", "message": "It pays 5 and not 5.003817." });
    user.next(CLAIM, Step::Respond(400, mismatch));
    let failure = user.run_without_wallet(&claim(0xbb)).failure(5);
    assert!(failure.contains("The quote is kept"), "{failure}");
    pay(&user, 0xcc);
    succeeded(user.run_without_wallet(&claim(0xcc)));
    user.is_settled();
}

#[test]
fn expired_quote_is_kept_on_record_for_late_payers() {
    let user = User::new();
    user.state().service.quotes_expire_in_seconds = 1;
    quote(&user, "");
    std::thread::sleep(Duration::from_millis(1_200));
    user.state().service.quotes_expire_in_seconds = 60;
    let _ = quote(&user, "").says("has expired");
    assert_eq!((user.set_aside(), user.count(NEW_QUOTE)), (vec!["expired".to_owned()], 2));
    // One that was paid is claimed.
    let user = User::new();
    user.state().service.quotes_expire_in_seconds = 0;
    quote(&user, "");
    pay(&user, 0xab);
    succeeded(user.run_without_wallet(&claim(0xab)));
    user.is_settled();
}

#[test]
fn claim_with_lost_key_explains_rotation() {
    let user = User::new();
    quote(&user, "");
    pay(&user, 0xab);
    user.is_killed(&claim(0xab), CLAIM, Step::HangAfter);
    let failure = user.run_without_wallet(&claim(0xab)).failure(5);
    assert!(failure.contains("metering rotate") && failure.contains(OTHER), "{failure}");
    assert_eq!(user.set_aside(), ["already_claimed"]);
}

#[test]
fn a_payment_without_a_quote_cannot_be_claimed() {
    let user = User::new();
    user.program.refuses(&[(&claim(0xab), 4, "--quote-only")]);
    // The local wallet is the payer if none is named.
    let own: Value = user.succeeds("signup-pay --plan coin --agent-name a --quote-only --json").json();
    assert_eq!(own["payer"], WALLET);
}
