//! Waiting for a payment to be seen and confirmed.

use serde_json::json;

use crate::fixture::{Fixture, SIGNUP};
use crate::node::TxOutcome;
use crate::service::refusal;
use crate::stand_in::Step;

const CLAIM: &str = "POST /signup/pay/claim";

#[test]
fn temporary_rejections_are_waited_for() {
    let fixture = Fixture::new();
    let unconfirmed = json!({
        "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": 0, "confirmations": 1, "required": 12,
    });
    fixture.stand_in.next(CLAIM, Step::Respond(404, refusal("tx_not_found")));
    fixture.stand_in.next(CLAIM, Step::Respond(409, unconfirmed));
    for (status, code) in [(502, "rpc_error"), (429, "rate_limited"), (500, "internal_error"), (503, "overloaded")] {
        fixture.stand_in.next(CLAIM, Step::Respond(status, refusal(code)));
    }
    let ran = fixture.run(&SIGNUP).success();
    assert!(ran.stderr.contains("Waiting: 1 of 12 confirmations."), "{ran:?}");
    assert_eq!(fixture.stand_in.count(CLAIM), 7);
    fixture.is_settled();
}

#[test]
fn waiting_ends_at_the_limit_and_can_be_resumed() {
    let fixture = Fixture::new();
    let patient = json!({ "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": 12 });
    fixture.stand_in.next(CLAIM, Step::Respond(409, patient));
    let failure = fixture.run(&[&SIGNUP[..], &["--wait", "5"]].concat()).failure(8);
    assert!(failure.contains("run metering signup-pay again"), "{failure}");
    assert!(fixture.journal().exists());
    fixture.run(&["signup-pay"]).success();
    fixture.is_settled();
}

#[test]
fn failed_transaction_is_not_waited_for() {
    for (outcome, expected) in [(TxOutcome::Fail, "failed on the chain"), (TxOutcome::GiveWay, "replaced")] {
        let fixture = Fixture::new();
        fixture.stand_in.state().node.outcome = outcome;
        let failure = fixture.run(&SIGNUP).failure(5);
        assert!(failure.contains(expected) && failure.contains("--abandon"), "{failure}");
        // Nothing is paid automatically in its place.
        fixture.run(&SIGNUP).failure(5);
        assert_eq!(fixture.sent(), 1);
        fixture.run(&["signup-pay", "--abandon"]).success();
        assert!(!fixture.journal().exists());
        assert_eq!(fixture.set_aside(), ["abandoned"]);
    }
}

#[test]
fn replaced_payment_is_claimed_with_the_replacement() {
    let fixture = Fixture::new();
    fixture.stand_in.next(CLAIM, Step::HangBefore);
    fixture.run_and_kill(&SIGNUP);
    let faster = format!("0x{}", "ab".repeat(32));
    let failure = fixture.run(&["signup-pay", "--tx", &faster]).failure(5);
    assert!(failure.contains("another payment is pending"), "while the first is alive: {failure}");
    fixture.stand_in.state().node.outcome = TxOutcome::GiveWay;
    fixture.run(&["signup-pay", "--wait", "1"]).failure(5);
    fixture.run(&["signup-pay", "--tx", &faster, "--wait", "0"]).failure(8);
    let mut state = fixture.stand_in.state();
    (state.node.outcome, state.node.sent) = (TxOutcome::Pay, vec![faster]);
    drop(state);
    fixture.run(&["signup-pay"]).success();
    fixture.is_settled();
}

#[test]
fn first_interruption_waits_for_the_response() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.stand_in.next(
            CLAIM,
            Step::Respond(
                409,
                json!({
                    "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": 60,
                }),
            ),
        );
    }
    let child = fixture.command(&SIGNUP).spawn().unwrap();
    while fixture.stand_in.count(CLAIM) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Long enough for the response to have arrived and the pause to have started.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let killed = std::process::Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(fixture.journal().exists());
}
