//! `signup-pay` when nothing goes wrong, and what it needs beforehand.

use crate::desk::{Desk, OTHER_KEY, Ran, SIGNUP, WALLET};
use crate::service::RECIPIENT;
use crate::stand_in::Turn;

#[test]
fn paying_gives_a_key_that_is_stored_and_not_shown() {
    for plan in ["starter", "coin"] {
        let desk = Desk::new();
        let ran = desk.run(&["signup-pay", "--plan", plan, "--agent-name", "agent", "--yes", "--json"]).success();
        let hash = desk.stand_in.world().node.sent[0].clone();
        let printed = ran.json();
        assert_eq!(printed["tx_hash"], hash.as_str());
        assert_eq!((printed["status"].as_str(), printed["plan_id"].as_str()), (Some("approved"), Some(plan)));
        assert_eq!(printed["profile"], "default");
        desk.is_settled();
    }
}

#[test]
fn what_is_paid_is_shown_before_it_is() {
    let desk = Desk::new();
    let ran = desk.run(&SIGNUP).success();
    for part in ["starter: 10 credits and a bonus of 0.5", "5.003817 USDC", RECIPIENT, WALLET, "devnet (chain 31337)"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    assert!(ran.stderr.contains("Fee     at most 0.00"), "{ran:?}");
    assert!(ran.stdout.starts_with("Paid 5.003817 USDC to 0x5aAe"), "{ran:?}");
}

#[test]
fn without_a_terminal_nothing_is_paid_that_was_not_agreed_to() {
    let desk = Desk::new();
    let failure = desk.run(&SIGNUP[..5]).failure(2);
    assert!(failure.contains("--yes"), "{failure}");
    assert!(!desk.journal().exists() && desk.stand_in.world().asked.is_empty());
}

#[test]
fn a_wallet_and_a_chain_must_be_there() {
    let desk = Desk::new();
    let failure = desk.run_without_wallet(&SIGNUP).failure(2);
    assert!(failure.contains("METERING_CLIENT_WALLET_KEY") && failure.contains("--keystore"), "{failure}");
    let without_chain = |hint: Option<&str>| {
        desk.stand_in.world().service.rpc_hint = hint.map(str::to_owned);
        Ran::of(desk.command(&SIGNUP).env_remove("METERING_CLIENT_RPC_URL").output().unwrap())
    };
    let failure = without_chain(None).failure(2);
    assert!(failure.contains("--rpc-url"), "{failure}");
    assert_eq!(desk.sent(), 0);
    without_chain(Some(&desk.stand_in.rpc_url())).failure(2);
    std::fs::remove_file(desk.journal()).unwrap();
    without_chain(Some(&desk.stand_in.rpc_url())).success();
}

#[test]
fn a_key_that_is_wrong_is_not_repeated() {
    let desk = Desk::new();
    let wrong = "0xdeadbeefdeadbeef";
    let ran = Ran::of(desk.command(&SIGNUP).env("METERING_CLIENT_WALLET_KEY", wrong).output().unwrap());
    let failure = ran.failure(2);
    assert!(!failure.contains("deadbeef"), "{failure}");
    let mut command = desk.command(&[&SIGNUP[..], &["--rpc-url", "wss://rpc.example/deadbeef"]].concat());
    let failure = Ran::of(command.output().unwrap()).failure(2);
    assert!(failure.contains("JSON-RPC URL must be") && !failure.contains("deadbeef"), "{failure}");
    let both = Ran::of(desk.command(&[&SIGNUP[..], &["--keystore", "wallet.json"]].concat()).output().unwrap());
    assert!(both.failure(2).contains("two wallets"));
}

#[test]
fn a_key_that_is_there_is_replaced_only_when_told_to() {
    let desk = Desk::with_account();
    let before = desk.key();
    let failure = desk.run(&SIGNUP).failure(5);
    assert!(failure.contains("--replace-key"), "{failure}");
    assert_eq!((desk.key(), desk.sent()), (before.clone(), 0));
    desk.run(&[&SIGNUP[..], &["--replace-key"]].concat()).success();
    assert_ne!(desk.key(), before);
    assert_eq!(desk.sent(), 1);
}

#[test]
fn a_wallet_that_has_an_account_is_told_to_rotate() {
    let desk = Desk::new();
    desk.stand_in.world().service.open_account(Some(WALLET.parse().unwrap()));
    let failure = desk.run(&SIGNUP).failure(5);
    assert!(failure.contains("metering rotate"), "{failure}");
    assert!(!desk.journal().exists());
}

#[test]
fn a_wallet_with_too_little_pays_later_with_the_same_quote() {
    let desk = Desk::new();
    desk.stand_in.world().node.balance = 5_003_816;
    let failure = desk.run(&SIGNUP).failure(1);
    assert!(failure.contains("Fund the wallet"), "{failure}");
    assert_eq!(desk.sent(), 0);
    desk.stand_in.world().node.balance = 10_u128.pow(20);
    desk.run(&["signup-pay", "--yes"]).success();
    desk.is_settled();
    assert_eq!(desk.stand_in.count("POST /signup/pay/quote"), 1);
}

#[test]
fn what_is_not_paid_yet_is_in_nobodys_way() {
    let desk = Desk::new();
    desk.stand_in.world().node.balance = 0;
    desk.run(&SIGNUP).failure(1);
    desk.stand_in.world().node.balance = 10_u128.pow(20);
    // Another wallet cannot use the quote, and another plan needs another quote.
    let ran = Ran::of(desk.command(&SIGNUP).env("METERING_CLIENT_WALLET_KEY", OTHER_KEY).output().unwrap());
    assert!(ran.failure(5).contains("drop the payment"));
    desk.run(&["signup-pay", "--plan", "coin", "--agent-name", "agent", "--yes"]).success();
    desk.is_settled();
}

#[test]
fn an_expired_quote_that_was_not_paid_is_quoted_anew() {
    let desk = Desk::new();
    desk.stand_in.world().service.quotes_expire_in_seconds = -1;
    let failure = desk.run(&SIGNUP).failure(8);
    assert!(failure.contains("expired before anything was paid"), "{failure}");
    desk.stand_in.world().service.quotes_expire_in_seconds = 60;
    desk.run(&SIGNUP).success();
    desk.is_settled();
    assert_eq!(desk.stand_in.count("POST /signup/pay/quote"), 2);
}

#[test]
fn a_key_that_cannot_be_stored_is_printed_rather_than_lost() {
    let desk = Desk::new();
    // A file cannot replace a directory.
    desk.stand_in.next("POST /signup/pay/claim", Turn::Folder(desk.profile("profile.toml")));
    let output = desk.command(&SIGNUP).output().unwrap();
    let key = desk.stand_in.world().service.accounts[0].key.clone();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{key}\n"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("on standard output, only this once") && !stderr.contains(&key), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!desk.journal().exists());
}
