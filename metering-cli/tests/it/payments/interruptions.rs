//! Killed at any step and run again: one payment, one account, and its key in the profile.

use super::{CLAIM, SEND, SIGNUP, Step, User, succeeded};
use crate::node::TxOutcome;
use crate::program::{WALLET, kill};

/// Killed while `what` hangs, and run again without repeating the arguments.
#[test]
fn killed_at_any_step() {
    // what hangs, then how many times something was requested in both runs
    for (what, step, requested, times) in [
        ("eth_estimateGas", Step::HangBefore, "POST /signup/pay/quote", 1),
        (SEND, Step::HangBefore, SEND, 2),
        // It is not signed again.
        (SEND, Step::HangBefore, "eth_estimateGas", 1),
        (SEND, Step::HangAfter, "eth_estimateGas", 1),
        (CLAIM, Step::HangBefore, SEND, 1),
        // The lost key is replaced.
        (CLAIM, Step::HangAfter, "POST /api-key/recover/verify", 1),
    ] {
        let (user, context) = (User::new(), format!("{what} {step:?}"));
        user.is_killed(SIGNUP, what, step);
        assert!(user.key().is_none(), "{context}");
        user.succeeds("signup-pay --yes");
        user.is_settled();
        assert_eq!(user.count(requested), times, "{context}: {requested}");
    }
}

#[test]
fn killed_while_replacing_the_lost_key() {
    let user = User::new();
    user.is_killed(SIGNUP, CLAIM, Step::HangAfter);
    // Without the wallet it can be continued once the wallet is there.
    let failure = user.run_without_wallet(SIGNUP).failure(2);
    assert!(failure.contains("METERING_CLIENT_WALLET_KEY") && user.is_paying(), "{failure}");
    user.is_killed(SIGNUP, "POST /api-key/recover/verify", Step::HangAfter);
    user.succeeds(SIGNUP);
    user.is_settled();
}

#[test]
fn killed_between_the_key_and_the_journal() {
    let user = User::new();
    user.is_killed(SIGNUP, CLAIM, Step::HangBefore);
    let journal = user.program.read("profiles/default/payment.json");
    user.succeeds(SIGNUP);
    let key = user.key();
    user.program.write("profiles/default/payment.json", journal);
    let ran = user.succeeds(SIGNUP);
    assert!(ran.stdout.contains("already has the account's key"), "{ran:?}");
    assert_eq!(user.key(), key);
    user.is_settled();
}

#[test]
fn a_sent_payment_needs_neither_wallet_nor_chain_to_be_claimed() {
    let user = User::new();
    user.is_killed(SIGNUP, CLAIM, Step::HangBefore);
    let mut command = user.program.command("signup-pay");
    command.env_remove("METERING_CLIENT_WALLET_KEY").env_remove("METERING_CLIENT_RPC_URL");
    succeeded(command.output().unwrap().into());
    user.is_settled();
}

#[test]
fn other_commands_report_the_pending_payment() {
    let user = User::new();
    user.is_killed(SIGNUP, CLAIM, Step::HangBefore);
    let hash = user.state().node.sent[0].clone();
    for other in [
        "signup-pay --plan coin --agent-name agent --yes",
        "signup-pay --plan starter --agent-name other --yes",
        "signup-pay --chain 1 --yes",
        &format!("signup-pay --plan starter --agent-name agent --quote-only --payer {WALLET}"),
    ] {
        user.program.refuses(&[(other, 5, &hash), (other, 5, "metering signup-pay --abandon")]);
    }
    let key = user.state().service.open_account(None);
    user.write_profile(&key);
    user.program.refuses(&[
        ("topup --plan starter --yes", 5, &hash),
        ("topup --plan starter --yes", 5, "`metering signup-pay`"),
        // A key that was stored in the meantime is not lost.
        (SIGNUP, 5, "--replace-key"),
    ]);
    assert_eq!(user.sent(), 1);
}

#[test]
fn two_concurrent_runs_pay_once() {
    let user = User::new();
    user.next(CLAIM, Step::HangBefore);
    let first = user.program.start(SIGNUP);
    user.wait_until_it_hangs();
    user.program.refuses(&[(SIGNUP, 5, "another process is paying")]);
    let _ = kill(first);
    user.succeeds(SIGNUP);
    user.is_settled();
}

#[test]
fn forgotten_transaction_is_resent_unchanged() {
    let user = User::new();
    user.is_killed(SIGNUP, CLAIM, Step::HangBefore);
    user.state().node.outcome = TxOutcome::Vanish;
    user.program.run("signup-pay --wait 1").failure(8);
    assert!(user.count(SEND) > 1);
    user.state().node.outcome = TxOutcome::Pay;
    user.succeeds(SIGNUP);
    user.is_settled();
}

#[test]
fn a_damaged_journal_stops_everything() {
    let user = User::new();
    user.program.write("profiles/default/payment.json", "{\"service\": \"sqn_");
    user.program.refuses(&[(SIGNUP, 1, "left alone")]);
    assert_eq!(user.sent(), 0);
}

#[test]
fn unprinted_result_is_printed_again() {
    let user = User::new();
    let _ = user.program.on_full_disk(SIGNUP).expect(1).says("cannot write the output");
    let document = user.succeeds(&format!("{SIGNUP} --json")).json::<serde_json::Value>();
    assert_eq!((&document["status"], &document["credit_balance"]), (&"approved".into(), &12.into()));
    assert_eq!(document["tx_hash"], user.state().node.sent[0].as_str());
    user.is_settled();
}
