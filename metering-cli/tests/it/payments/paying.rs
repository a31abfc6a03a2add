//! `signup-pay` when nothing goes wrong, and what it needs beforehand.

use serde_json::{Value, json};

use super::service::RECIPIENT;
use super::{CLAIM, SIGNUP, User, succeeded, wallet};
use crate::program::{OTHER_KEY, WALLET};

const NEW_QUOTE: &str = "POST /signup/pay/quote";

#[test]
fn paying_gives_a_key_that_is_stored_and_not_shown() {
    for plan in ["starter", "coin"] {
        let user = User::new();
        let printed: Value =
            user.succeeds(&SIGNUP.replace("starter --agent", &format!("{plan} --json --agent"))).json();
        let found = ["tx_hash", "status", "plan_id", "profile"].map(|name| &printed[name]);
        assert_eq!(json!(found), json!([user.state().node.sent[0], "approved", plan, "default"]));
        user.is_settled();
    }
}

#[test]
fn payment_is_shown_before_it_is_made() {
    let user = User::new();
    let refused = user.program.run(&SIGNUP.replace(" --yes", "")).failure(2);
    assert!(refused.contains("--yes") && !user.is_paying(), "without a terminal: {refused}");
    assert!(user.state().requests.is_empty());
    let ran = user.succeeds(SIGNUP);
    for part in ["starter: 10 credits and a bonus of 0.5", "5.003817 USDC", RECIPIENT, WALLET, "devnet (chain 31337)"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    assert!(ran.stderr.contains("Fee     at most 0.00"), "{ran:?}");
    assert!(ran.stdout.starts_with("Paid 5.003817 USDC to 0x5aAe"), "{ran:?}");
}

#[test]
fn wallet_and_chain_are_required() {
    let user = User::new();
    let failure = user.run_without_wallet(SIGNUP).failure(2);
    assert!(failure.contains("METERING_CLIENT_WALLET_KEY") && failure.contains("--keystore"), "{failure}");
    let without_chain = |hint: Option<String>| {
        user.state().service.rpc_hint = hint;
        user.program.run_without("METERING_CLIENT_RPC_URL", SIGNUP)
    };
    let failure = without_chain(None).failure(2);
    assert!(failure.contains("--rpc-url"), "{failure}");
    assert_eq!(user.sent(), 0);
    let chain = Some(format!("{}/chain", user.stand_in.url()));
    without_chain(chain.clone()).failure(2);
    std::fs::remove_file(user.program.profile("default", "payment.json")).unwrap();
    succeeded(without_chain(chain));
}

#[test]
fn invalid_key_is_not_printed() {
    let user = User::new();
    let wrong = [("METERING_CLIENT_WALLET_KEY", "0xdeadbeefdeadbeef")];
    assert!(!user.program.run_with(&wrong, SIGNUP).expect(2).shows("deadbeef"));
    let ran = user.program.run(&format!("{SIGNUP} --rpc-url wss://rpc.example/deadbeef")).expect(2);
    assert!(!ran.says("JSON-RPC URL must be").shows("deadbeef"));
    user.program.refuses(&[(&format!("{SIGNUP} --keystore wallet.json"), 2, "two wallets")]);
}

#[test]
fn existing_key_is_replaced_only_on_request() {
    let user = User::with_account(None);
    let before = user.key();
    user.program.refuses(&[(SIGNUP, 5, "--replace-key")]);
    assert_eq!((user.key(), user.sent()), (before.clone(), 0));
    user.succeeds(&format!("{SIGNUP} --replace-key"));
    assert_ne!(user.key(), before);
    assert_eq!(user.sent(), 1);
    // A wallet with an account is advised to rotate.
    let user = User::new();
    user.state().service.open_account(Some(wallet()));
    user.program.refuses(&[(SIGNUP, 5, "metering rotate")]);
    assert!(!user.is_paying());
}

#[test]
fn underfunded_wallet_pays_later_with_the_same_quote() {
    let user = User::new();
    user.state().node.balance = 5_003_816;
    user.program.refuses(&[(SIGNUP, 1, "Fund the wallet")]);
    assert_eq!(user.sent(), 0);
    user.state().node.balance = 10_u128.pow(20);
    user.succeeds("signup-pay --yes");
    user.is_settled();
    assert_eq!(user.count(NEW_QUOTE), 1);
}

#[test]
fn unpaid_quote_does_not_block_another_plan() {
    let user = User::new();
    user.state().node.balance = 0;
    user.program.run(SIGNUP).failure(1);
    user.state().node.balance = 10_u128.pow(20);
    // Another wallet cannot use the quote, and another plan needs another quote.
    let ran = user.program.run_with(&[("METERING_CLIENT_WALLET_KEY", OTHER_KEY)], SIGNUP);
    assert!(ran.failure(5).contains("drop the payment"));
    user.succeeds("signup-pay --plan coin --agent-name agent --yes");
    user.is_settled();
}

#[test]
fn unpaid_expired_quote_is_replaced() {
    let user = User::new();
    user.state().service.quotes_expire_in_seconds = -1;
    user.program.refuses(&[(SIGNUP, 8, "expired before anything was paid")]);
    user.state().service.quotes_expire_in_seconds = 60;
    user.succeeds(SIGNUP);
    user.is_settled();
    assert_eq!(user.count(NEW_QUOTE), 2);
}

#[test]
fn key_that_cannot_be_stored_is_printed() {
    let user = User::new();
    user.prints_the_key(SIGNUP, CLAIM);
    assert!(!user.is_paying());
}
