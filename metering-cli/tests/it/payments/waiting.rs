//! Waiting for a payment to be seen and confirmed.

use std::time::Duration;

use serde_json::json;

use super::service::refusal;
use super::{CLAIM, SIGNUP, Step, User};
use crate::node::{TxOutcome, hash};
use crate::program::{ended, signal};

/// The service is asked again after so many seconds.
fn unconfirmed(seconds: u32) -> Step {
    let confirmations = json!({ "confirmations": 1, "required": 12 });
    let mut body = json!({ "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": seconds });
    if seconds == 0 {
        body.as_object_mut().unwrap().extend(confirmations.as_object().unwrap().clone());
    }
    Step::Respond(409, body)
}

#[test]
fn temporary_rejections_are_waited_for() {
    let user = User::new();
    user.next(CLAIM, Step::Respond(404, refusal("tx_not_found")));
    user.next(CLAIM, unconfirmed(0));
    for (status, code) in [(502, "rpc_error"), (429, "rate_limited"), (500, "internal_error"), (503, "overloaded")] {
        user.next(CLAIM, Step::Respond(status, refusal(code)));
    }
    let _ = user.succeeds(SIGNUP).says("Waiting: 1 of 12 confirmations.");
    assert_eq!(user.count(CLAIM), 7);
    user.is_settled();
}

#[test]
fn waiting_ends_at_the_limit_and_can_be_resumed() {
    let user = User::new();
    user.next(CLAIM, unconfirmed(12));
    user.program.refuses(&[(&format!("{SIGNUP} --wait 5"), 8, "run metering signup-pay again")]);
    assert!(user.is_paying());
    user.succeeds("signup-pay");
    user.is_settled();
}

#[test]
fn failed_transaction_is_not_waited_for() {
    for (outcome, expected) in [(TxOutcome::Fail, "failed on the chain"), (TxOutcome::GiveWay, "replaced")] {
        let user = User::new();
        user.state().node.outcome = outcome;
        // Nothing is paid automatically in its place.
        user.program.refuses(&[(SIGNUP, 5, expected), (SIGNUP, 5, "--abandon")]);
        assert_eq!(user.sent(), 1);
        user.succeeds("signup-pay --abandon");
        assert_eq!((user.is_paying(), user.set_aside()), (false, vec!["abandoned".to_owned()]));
    }
}

#[test]
fn replaced_payment_is_claimed_with_the_replacement() {
    let user = User::new();
    user.is_killed(SIGNUP, CLAIM, Step::HangBefore);
    let faster = format!("signup-pay --tx {}", hash(0xab));
    // While the first is alive.
    user.program.refuses(&[(&faster, 5, "another payment is pending")]);
    user.state().node.outcome = TxOutcome::GiveWay;
    user.program.refuses(&[("signup-pay --wait 1", 5, ""), (&format!("{faster} --wait 0"), 8, "")]);
    let mut state = user.state();
    (state.node.outcome, state.node.sent) = (TxOutcome::Pay, vec![hash(0xab)]);
    drop(state);
    user.succeeds("signup-pay");
    user.is_settled();
}

#[test]
fn first_interruption_waits_for_the_response() {
    let user = User::new();
    for _ in 0..3 {
        user.next(CLAIM, unconfirmed(60));
    }
    let child = user.program.start(SIGNUP);
    while user.count(CLAIM) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Long enough for the response to have arrived and the pause to have started.
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "INT");
    let _ = ended(child).expect(130);
    assert!(user.is_paying());
}
