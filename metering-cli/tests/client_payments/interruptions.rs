//! Killed at any step and run again: one payment, one account, and its key in the profile.

use crate::desk::{Desk, Ran, SIGNUP, WALLET};
use crate::node::Fortune;
use crate::stand_in::Turn;

/// Kills the program while `what` hangs, and runs it again without repeating the arguments.
#[track_caller]
fn interrupted(what: &str, turn: Turn) -> Desk {
    let desk = Desk::new();
    desk.stand_in.next(what, turn);
    desk.run_and_kill(&SIGNUP);
    assert!(desk.key().is_none());
    desk.run(&["signup-pay", "--yes"]).success();
    desk.is_settled();
    desk
}

#[test]
fn killed_before_it_is_signed() {
    let desk = interrupted("eth_estimateGas", Turn::HangBefore);
    assert_eq!(desk.stand_in.count("POST /signup/pay/quote"), 1);
}

#[test]
fn killed_before_it_is_sent() {
    let desk = interrupted("eth_sendRawTransaction", Turn::HangBefore);
    assert_eq!(desk.stand_in.count("eth_sendRawTransaction"), 2);
    assert_eq!(desk.stand_in.count("eth_estimateGas"), 1, "it is not signed again");
}

#[test]
fn killed_after_it_was_sent() {
    let desk = interrupted("eth_sendRawTransaction", Turn::HangAfter);
    assert_eq!(desk.stand_in.count("eth_estimateGas"), 1, "it is not signed again");
}

#[test]
fn killed_before_it_is_claimed() {
    let desk = interrupted("POST /signup/pay/claim", Turn::HangBefore);
    assert_eq!(desk.stand_in.count("eth_sendRawTransaction"), 1);
}

#[test]
fn killed_after_it_was_claimed() {
    let desk = interrupted("POST /signup/pay/claim", Turn::HangAfter);
    assert_eq!(desk.stand_in.count("POST /api-key/recover/verify"), 1, "the lost key is replaced");
}

#[test]
fn killed_while_the_lost_key_is_replaced() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangAfter);
    desk.run_and_kill(&SIGNUP);
    desk.stand_in.next("POST /api-key/recover/verify", Turn::HangAfter);
    desk.run_and_kill(&SIGNUP);
    desk.run(&SIGNUP).success();
    desk.is_settled();
}

#[test]
fn killed_between_the_key_and_the_journal() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangBefore);
    desk.run_and_kill(&SIGNUP);
    let journal = std::fs::read(desk.journal()).unwrap();
    desk.run(&SIGNUP).success();
    let key = desk.key();
    std::fs::write(desk.journal(), journal).unwrap();
    let ran = desk.run(&SIGNUP).success();
    assert!(ran.stdout.contains("already has the account's key"), "{ran:?}");
    assert_eq!(desk.key(), key);
    desk.is_settled();
}

#[test]
fn without_the_wallet_a_lost_key_is_left_to_rotation() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangAfter);
    desk.run_and_kill(&SIGNUP);
    let failure = desk.run_without_wallet(&SIGNUP).failure(2);
    assert!(failure.contains("METERING_CLIENT_WALLET_KEY"), "{failure}");
    assert!(desk.journal().exists(), "it can be continued once the wallet is there");
}

#[test]
fn a_sent_payment_needs_neither_wallet_nor_chain_to_be_claimed() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangBefore);
    desk.run_and_kill(&SIGNUP);
    let mut command = desk.command_without_wallet(&["signup-pay"]);
    crate::desk::Ran::of(command.env_remove("METERING_CLIENT_RPC_URL").output().unwrap()).success();
    desk.is_settled();
}

#[test]
fn another_command_says_what_is_pending() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangBefore);
    desk.run_and_kill(&SIGNUP);
    let hash = desk.stand_in.world().node.sent[0].clone();
    let others: [&[&str]; 4] = [
        &["signup-pay", "--plan", "coin", "--agent-name", "agent", "--yes"],
        &["signup-pay", "--plan", "starter", "--agent-name", "other", "--yes"],
        &["signup-pay", "--chain", "1", "--yes"],
        &["signup-pay", "--plan", "starter", "--agent-name", "agent", "--quote-only", "--payer", WALLET],
    ];
    for other in others {
        let failure = desk.run(other).failure(5);
        assert!(failure.contains(&hash) && failure.contains("metering signup-pay --abandon"), "{failure}");
    }
    let key = desk.stand_in.world().service.open_account(None);
    desk.write_profile(&key);
    let failure = desk.run(&["topup", "--plan", "starter", "--yes"]).failure(5);
    assert!(failure.contains(&hash) && failure.contains("`metering signup-pay`"), "{failure}");
    let failure = desk.run(&SIGNUP).failure(5);
    assert!(failure.contains("--replace-key"), "a key that was stored in the meantime is not lost: {failure}");
    assert_eq!(desk.sent(), 1);
}

#[test]
fn two_at_once_are_one() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangBefore);
    let mut first = desk.command(&SIGNUP).spawn().unwrap();
    desk.stand_in.wait_until_it_hangs();
    let failure = desk.run(&SIGNUP).failure(5);
    crate::desk::kill(&mut first);
    assert!(failure.contains("another process is paying"), "{failure}");
    desk.run(&SIGNUP).success();
    desk.is_settled();
}

#[test]
fn a_transaction_that_the_chain_forgot_is_sent_again_as_it_was() {
    let desk = Desk::new();
    desk.stand_in.next("POST /signup/pay/claim", Turn::HangBefore);
    desk.run_and_kill(&SIGNUP);
    desk.stand_in.world().node.fortune = Fortune::Vanish;
    desk.run(&["signup-pay", "--wait", "1"]).failure(8);
    assert!(desk.stand_in.count("eth_sendRawTransaction") > 1);
    desk.stand_in.world().node.fortune = Fortune::Pay;
    desk.run(&SIGNUP).success();
    desk.is_settled();
}

#[test]
fn a_damaged_journal_stops_everything() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.profile("")).unwrap();
    std::fs::write(desk.journal(), "{\"service\": \"sqn_").unwrap();
    let failure = desk.run(&SIGNUP).failure(1);
    assert!(failure.contains("left alone"), "{failure}");
    assert_eq!(desk.sent(), 0);
}

#[test]
fn an_answer_that_nobody_saw_is_told_again() {
    let desk = Desk::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = Ran::of(desk.command(&SIGNUP).stdout(full).output().unwrap());
    assert!(ran.code == 1 && ran.stderr.contains("cannot write the output"), "{ran:?}");
    let ran = desk.run(&[&SIGNUP[..], &["--json"]].concat()).success();
    let document = ran.json();
    assert_eq!((&document["status"], &document["credit_balance"]), (&"approved".into(), &12.into()));
    assert_eq!(document["tx_hash"], desk.stand_in.world().node.sent[0].as_str());
    desk.is_settled();
}
