//! `signup-pay` when nothing goes wrong, and what it needs beforehand.

use crate::fixture::{Fixture, OTHER_KEY, RunOutput, SIGNUP, WALLET};
use crate::service::RECIPIENT;
use crate::stand_in::Step;

#[test]
fn paying_gives_a_key_that_is_stored_and_not_shown() {
    for plan in ["starter", "coin"] {
        let fixture = Fixture::new();
        let ran = fixture.run(&["signup-pay", "--plan", plan, "--agent-name", "agent", "--yes", "--json"]).success();
        let hash = fixture.stand_in.state().node.sent[0].clone();
        let printed = ran.json();
        assert_eq!(printed["tx_hash"], hash.as_str());
        assert_eq!((printed["status"].as_str(), printed["plan_id"].as_str()), (Some("approved"), Some(plan)));
        assert_eq!(printed["profile"], "default");
        fixture.is_settled();
    }
}

#[test]
fn payment_is_shown_before_it_is_made() {
    let fixture = Fixture::new();
    let ran = fixture.run(&SIGNUP).success();
    for part in ["starter: 10 credits and a bonus of 0.5", "5.003817 USDC", RECIPIENT, WALLET, "devnet (chain 31337)"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    assert!(ran.stderr.contains("Fee     at most 0.00"), "{ran:?}");
    assert!(ran.stdout.starts_with("Paid 5.003817 USDC to 0x5aAe"), "{ran:?}");
}

#[test]
fn without_a_terminal_nothing_is_paid_without_yes() {
    let fixture = Fixture::new();
    let failure = fixture.run(&SIGNUP[..5]).failure(2);
    assert!(failure.contains("--yes"), "{failure}");
    assert!(!fixture.journal().exists() && fixture.stand_in.state().requests.is_empty());
}

#[test]
fn wallet_and_chain_are_required() {
    let fixture = Fixture::new();
    let failure = fixture.run_without_wallet(&SIGNUP).failure(2);
    assert!(failure.contains("METERING_CLIENT_WALLET_KEY") && failure.contains("--keystore"), "{failure}");
    let without_chain = |hint: Option<&str>| {
        fixture.stand_in.state().service.rpc_hint = hint.map(str::to_owned);
        RunOutput::of(fixture.command(&SIGNUP).env_remove("METERING_CLIENT_RPC_URL").output().unwrap())
    };
    let failure = without_chain(None).failure(2);
    assert!(failure.contains("--rpc-url"), "{failure}");
    assert_eq!(fixture.sent(), 0);
    without_chain(Some(&fixture.stand_in.rpc_url())).failure(2);
    std::fs::remove_file(fixture.journal()).unwrap();
    without_chain(Some(&fixture.stand_in.rpc_url())).success();
}

#[test]
fn invalid_key_is_not_printed() {
    let fixture = Fixture::new();
    let wrong = "0xdeadbeefdeadbeef";
    let ran = RunOutput::of(fixture.command(&SIGNUP).env("METERING_CLIENT_WALLET_KEY", wrong).output().unwrap());
    let failure = ran.failure(2);
    assert!(!failure.contains("deadbeef"), "{failure}");
    let mut command = fixture.command(&[&SIGNUP[..], &["--rpc-url", "wss://rpc.example/deadbeef"]].concat());
    let failure = RunOutput::of(command.output().unwrap()).failure(2);
    assert!(failure.contains("JSON-RPC URL must be") && !failure.contains("deadbeef"), "{failure}");
    let both =
        RunOutput::of(fixture.command(&[&SIGNUP[..], &["--keystore", "wallet.json"]].concat()).output().unwrap());
    assert!(both.failure(2).contains("two wallets"));
}

#[test]
fn existing_key_is_replaced_only_on_request() {
    let fixture = Fixture::with_account();
    let before = fixture.key();
    let failure = fixture.run(&SIGNUP).failure(5);
    assert!(failure.contains("--replace-key"), "{failure}");
    assert_eq!((fixture.key(), fixture.sent()), (before.clone(), 0));
    fixture.run(&[&SIGNUP[..], &["--replace-key"]].concat()).success();
    assert_ne!(fixture.key(), before);
    assert_eq!(fixture.sent(), 1);
}

#[test]
fn wallet_with_an_account_is_advised_to_rotate() {
    let fixture = Fixture::new();
    fixture.stand_in.state().service.open_account(Some(WALLET.parse().unwrap()));
    let failure = fixture.run(&SIGNUP).failure(5);
    assert!(failure.contains("metering rotate"), "{failure}");
    assert!(!fixture.journal().exists());
}

#[test]
fn underfunded_wallet_pays_later_with_the_same_quote() {
    let fixture = Fixture::new();
    fixture.stand_in.state().node.balance = 5_003_816;
    let failure = fixture.run(&SIGNUP).failure(1);
    assert!(failure.contains("Fund the wallet"), "{failure}");
    assert_eq!(fixture.sent(), 0);
    fixture.stand_in.state().node.balance = 10_u128.pow(20);
    fixture.run(&["signup-pay", "--yes"]).success();
    fixture.is_settled();
    assert_eq!(fixture.stand_in.count("POST /signup/pay/quote"), 1);
}

#[test]
fn unpaid_quote_does_not_block_another_plan() {
    let fixture = Fixture::new();
    fixture.stand_in.state().node.balance = 0;
    fixture.run(&SIGNUP).failure(1);
    fixture.stand_in.state().node.balance = 10_u128.pow(20);
    // Another wallet cannot use the quote, and another plan needs another quote.
    let ran = RunOutput::of(fixture.command(&SIGNUP).env("METERING_CLIENT_WALLET_KEY", OTHER_KEY).output().unwrap());
    assert!(ran.failure(5).contains("drop the payment"));
    fixture.run(&["signup-pay", "--plan", "coin", "--agent-name", "agent", "--yes"]).success();
    fixture.is_settled();
}

#[test]
fn unpaid_expired_quote_is_replaced() {
    let fixture = Fixture::new();
    fixture.stand_in.state().service.quotes_expire_in_seconds = -1;
    let failure = fixture.run(&SIGNUP).failure(8);
    assert!(failure.contains("expired before anything was paid"), "{failure}");
    fixture.stand_in.state().service.quotes_expire_in_seconds = 60;
    fixture.run(&SIGNUP).success();
    fixture.is_settled();
    assert_eq!(fixture.stand_in.count("POST /signup/pay/quote"), 2);
}

#[test]
fn key_that_cannot_be_stored_is_printed() {
    let fixture = Fixture::new();
    // A file cannot replace a directory.
    fixture.stand_in.next("POST /signup/pay/claim", Step::Folder(fixture.profile("profile.toml")));
    let output = fixture.command(&SIGNUP).output().unwrap();
    let key = fixture.stand_in.state().service.accounts[0].key.clone();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{key}\n"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("on standard output, only this once") && !stderr.contains(&key), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!fixture.journal().exists());
}
