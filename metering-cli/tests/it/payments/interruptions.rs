//! Killed at any step and run again: one payment, one account, and its key in the profile.

use crate::fixture::{Fixture, RunOutput, SIGNUP, WALLET};
use crate::node::TxOutcome;
use crate::stand_in::Step;

/// Kills the program while `what` hangs, and runs it again without repeating the arguments.
#[track_caller]
fn interrupted(what: &str, step: Step) -> Fixture {
    let fixture = Fixture::new();
    fixture.stand_in.next(what, step);
    fixture.run_and_kill(&SIGNUP);
    assert!(fixture.key().is_none());
    fixture.run(&["signup-pay", "--yes"]).success();
    fixture.is_settled();
    fixture
}

#[test]
fn killed_before_signing() {
    let fixture = interrupted("eth_estimateGas", Step::HangBefore);
    assert_eq!(fixture.stand_in.count("POST /signup/pay/quote"), 1);
}

#[test]
fn killed_before_sending() {
    let fixture = interrupted("eth_sendRawTransaction", Step::HangBefore);
    assert_eq!(fixture.stand_in.count("eth_sendRawTransaction"), 2);
    assert_eq!(fixture.stand_in.count("eth_estimateGas"), 1, "it is not signed again");
}

#[test]
fn killed_after_sending() {
    let fixture = interrupted("eth_sendRawTransaction", Step::HangAfter);
    assert_eq!(fixture.stand_in.count("eth_estimateGas"), 1, "it is not signed again");
}

#[test]
fn killed_before_claiming() {
    let fixture = interrupted("POST /signup/pay/claim", Step::HangBefore);
    assert_eq!(fixture.stand_in.count("eth_sendRawTransaction"), 1);
}

#[test]
fn killed_after_claiming() {
    let fixture = interrupted("POST /signup/pay/claim", Step::HangAfter);
    assert_eq!(fixture.stand_in.count("POST /api-key/recover/verify"), 1, "the lost key is replaced");
}

#[test]
fn killed_while_replacing_the_lost_key() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangAfter);
    fixture.run_and_kill(&SIGNUP);
    fixture.stand_in.next("POST /api-key/recover/verify", Step::HangAfter);
    fixture.run_and_kill(&SIGNUP);
    fixture.run(&SIGNUP).success();
    fixture.is_settled();
}

#[test]
fn killed_between_the_key_and_the_journal() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangBefore);
    fixture.run_and_kill(&SIGNUP);
    let journal = std::fs::read(fixture.journal()).unwrap();
    fixture.run(&SIGNUP).success();
    let key = fixture.key();
    std::fs::write(fixture.journal(), journal).unwrap();
    let ran = fixture.run(&SIGNUP).success();
    assert!(ran.stdout.contains("already has the account's key"), "{ran:?}");
    assert_eq!(fixture.key(), key);
    fixture.is_settled();
}

#[test]
fn lost_key_without_the_wallet_is_left_to_rotation() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangAfter);
    fixture.run_and_kill(&SIGNUP);
    let failure = fixture.run_without_wallet(&SIGNUP).failure(2);
    assert!(failure.contains("METERING_CLIENT_WALLET_KEY"), "{failure}");
    assert!(fixture.journal().exists(), "it can be continued once the wallet is there");
}

#[test]
fn a_sent_payment_needs_neither_wallet_nor_chain_to_be_claimed() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangBefore);
    fixture.run_and_kill(&SIGNUP);
    let mut command = fixture.command_without_wallet(&["signup-pay"]);
    crate::fixture::RunOutput::of(command.env_remove("METERING_CLIENT_RPC_URL").output().unwrap()).success();
    fixture.is_settled();
}

#[test]
fn other_commands_report_the_pending_payment() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangBefore);
    fixture.run_and_kill(&SIGNUP);
    let hash = fixture.stand_in.state().node.sent[0].clone();
    let others: [&[&str]; 4] = [
        &["signup-pay", "--plan", "coin", "--agent-name", "agent", "--yes"],
        &["signup-pay", "--plan", "starter", "--agent-name", "other", "--yes"],
        &["signup-pay", "--chain", "1", "--yes"],
        &["signup-pay", "--plan", "starter", "--agent-name", "agent", "--quote-only", "--payer", WALLET],
    ];
    for other in others {
        let failure = fixture.run(other).failure(5);
        assert!(failure.contains(&hash) && failure.contains("metering signup-pay --abandon"), "{failure}");
    }
    let key = fixture.stand_in.state().service.open_account(None);
    fixture.write_profile(&key);
    let failure = fixture.run(&["topup", "--plan", "starter", "--yes"]).failure(5);
    assert!(failure.contains(&hash) && failure.contains("`metering signup-pay`"), "{failure}");
    let failure = fixture.run(&SIGNUP).failure(5);
    assert!(failure.contains("--replace-key"), "a key that was stored in the meantime is not lost: {failure}");
    assert_eq!(fixture.sent(), 1);
}

#[test]
fn two_concurrent_runs_pay_once() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangBefore);
    let mut first = fixture.command(&SIGNUP).spawn().unwrap();
    fixture.stand_in.wait_until_it_hangs();
    let failure = fixture.run(&SIGNUP).failure(5);
    crate::fixture::kill(&mut first);
    assert!(failure.contains("another process is paying"), "{failure}");
    fixture.run(&SIGNUP).success();
    fixture.is_settled();
}

#[test]
fn forgotten_transaction_is_resent_unchanged() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::HangBefore);
    fixture.run_and_kill(&SIGNUP);
    fixture.stand_in.state().node.outcome = TxOutcome::Vanish;
    fixture.run(&["signup-pay", "--wait", "1"]).failure(8);
    assert!(fixture.stand_in.count("eth_sendRawTransaction") > 1);
    fixture.stand_in.state().node.outcome = TxOutcome::Pay;
    fixture.run(&SIGNUP).success();
    fixture.is_settled();
}

#[test]
fn a_damaged_journal_stops_everything() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.profile("")).unwrap();
    std::fs::write(fixture.journal(), "{\"service\": \"sqn_").unwrap();
    let failure = fixture.run(&SIGNUP).failure(1);
    assert!(failure.contains("left alone"), "{failure}");
    assert_eq!(fixture.sent(), 0);
}

#[test]
fn unprinted_result_is_printed_again() {
    let fixture = Fixture::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = RunOutput::of(fixture.command(&SIGNUP).stdout(full).output().unwrap());
    assert!(ran.code == 1 && ran.stderr.contains("cannot write the output"), "{ran:?}");
    let ran = fixture.run(&[&SIGNUP[..], &["--json"]].concat()).success();
    let document = ran.json();
    assert_eq!((&document["status"], &document["credit_balance"]), (&"approved".into(), &12.into()));
    assert_eq!(document["tx_hash"], fixture.stand_in.state().node.sent[0].as_str());
    fixture.is_settled();
}
