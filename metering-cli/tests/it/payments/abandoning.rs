//! Abandoning a payment.

use std::io::Write;
use std::process::Stdio;

use crate::fixture::{Fixture, RunOutput, SIGNUP};
use crate::node::TxOutcome;
use crate::stand_in::Step;

/// Runs `signup-pay --abandon` and types a line.
fn abandon(fixture: &Fixture, typed: &str) -> RunOutput {
    let mut child = fixture.command(&["signup-pay", "--abandon"]).stdin(Stdio::piped()).spawn().unwrap();
    // The program may not read it.
    let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
    RunOutput::of(child.wait_with_output().unwrap())
}

#[test]
fn nothing_pending_means_nothing_to_abandon() {
    assert!(Fixture::new().run(&["signup-pay", "--abandon"]).failure(4).contains("no payment is pending"));
}

#[test]
fn unsigned_payment_is_abandoned_without_confirmation() {
    let fixture = Fixture::new();
    fixture.stand_in.state().node.balance = 0;
    fixture.run(&SIGNUP).failure(1);
    fixture.run(&["topup", "--abandon"]).success();
    assert!(!fixture.journal().exists() && fixture.set_aside().is_empty());
}

#[test]
fn possibly_sent_payment_needs_typed_confirmation() {
    for (what, step) in [
        ("eth_sendRawTransaction", Step::HangBefore),
        ("eth_sendRawTransaction", Step::HangAfter),
        ("POST /signup/pay/claim", Step::HangBefore),
    ] {
        let fixture = Fixture::new();
        fixture.stand_in.next(what, step);
        fixture.run_and_kill(&SIGNUP);
        for typed in ["", "yes\n", "y\n"] {
            let failure = abandon(&fixture, typed).failure(5);
            assert!(failure.contains("may have been made"), "{failure}");
            assert!(fixture.journal().exists());
        }
        let ran = abandon(&fixture, "abandon\n").success();
        assert!(ran.stdout.contains("A record is kept"), "{ran:?}");
        assert_eq!(fixture.set_aside(), ["abandoned"]);
        assert!(!fixture.journal().exists());
    }
}

#[test]
fn failed_payment_is_abandoned_without_confirmation() {
    for outcome in [TxOutcome::Fail, TxOutcome::GiveWay] {
        let fixture = Fixture::new();
        fixture.stand_in.next("POST /signup/pay/claim", Step::HangBefore);
        fixture.run_and_kill(&SIGNUP);
        fixture.stand_in.state().node.outcome = outcome;
        // A chain that cannot be read says nothing.
        let mut without_chain = fixture.command(&["signup-pay", "--abandon"]);
        RunOutput::of(without_chain.env_remove("METERING_CLIENT_RPC_URL").output().unwrap()).failure(5);
        let ran = fixture.run(&["signup-pay", "--abandon", "--json"]).success();
        assert_eq!(ran.json()["status"], "abandoned");
        assert_eq!(ran.json()["tx_hash"], fixture.stand_in.state().node.sent[0].as_str());
    }
}

#[test]
fn new_payment_is_possible_after_abandoning() {
    let fixture = Fixture::new();
    fixture.stand_in.state().node.outcome = TxOutcome::Fail;
    fixture.run(&SIGNUP).failure(5);
    fixture.run(&["signup-pay", "--abandon"]).success();
    fixture.stand_in.state().node.outcome = TxOutcome::Pay;
    fixture.run(&SIGNUP).success();
    assert_eq!(fixture.sent(), 2, "the first did not pay");
    assert!(fixture.key().is_some() && !fixture.journal().exists());
}
