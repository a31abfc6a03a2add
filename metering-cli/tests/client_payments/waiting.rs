//! Waiting for a payment to be seen and confirmed.

use serde_json::json;

use crate::desk::{Desk, SIGNUP};
use crate::node::Fortune;
use crate::service::refusal;
use crate::stand_in::Turn;

const CLAIM: &str = "POST /signup/pay/claim";

#[test]
fn what_may_pass_is_waited_for() {
    let desk = Desk::new();
    let unconfirmed = json!({
        "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": 0, "confirmations": 1, "required": 12,
    });
    desk.stand_in.next(CLAIM, Turn::Answer(404, refusal("tx_not_found")));
    desk.stand_in.next(CLAIM, Turn::Answer(409, unconfirmed));
    for (status, code) in [(502, "rpc_error"), (429, "rate_limited"), (500, "internal_error"), (503, "overloaded")] {
        desk.stand_in.next(CLAIM, Turn::Answer(status, refusal(code)));
    }
    let ran = desk.run(&SIGNUP).success();
    assert!(ran.stderr.contains("Waiting: 1 of 12 confirmations."), "{ran:?}");
    assert_eq!(desk.stand_in.count(CLAIM), 7);
    desk.is_settled();
}

#[test]
fn waiting_ends_when_it_was_said_to_and_can_be_gone_on_with() {
    let desk = Desk::new();
    let patient = json!({ "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": 12 });
    desk.stand_in.next(CLAIM, Turn::Answer(409, patient));
    let failure = desk.run(&[&SIGNUP[..], &["--wait", "5"]].concat()).failure(8);
    assert!(failure.contains("run metering signup-pay again"), "{failure}");
    assert!(desk.journal().exists());
    desk.run(&["signup-pay"]).success();
    desk.is_settled();
}

#[test]
fn a_payment_that_failed_on_the_chain_is_not_waited_for() {
    for (fortune, said) in [(Fortune::Fail, "failed on the chain"), (Fortune::GiveWay, "replaced")] {
        let desk = Desk::new();
        desk.stand_in.world().node.fortune = fortune;
        let failure = desk.run(&SIGNUP).failure(5);
        assert!(failure.contains(said) && failure.contains("--abandon"), "{failure}");
        // Nothing is paid automatically in its place.
        desk.run(&SIGNUP).failure(5);
        assert_eq!(desk.sent(), 1);
        desk.run(&["signup-pay", "--abandon"]).success();
        assert!(!desk.journal().exists());
        assert_eq!(desk.set_aside(), ["abandoned"]);
    }
}

#[test]
fn a_replaced_payment_is_claimed_by_the_one_that_took_its_place() {
    let desk = Desk::new();
    desk.stand_in.next(CLAIM, Turn::HangBefore);
    desk.run_and_kill(&SIGNUP);
    let faster = format!("0x{}", "ab".repeat(32));
    let failure = desk.run(&["signup-pay", "--tx", &faster]).failure(5);
    assert!(failure.contains("another payment is pending"), "while the first is alive: {failure}");
    desk.stand_in.world().node.fortune = Fortune::GiveWay;
    desk.run(&["signup-pay", "--wait", "1"]).failure(5);
    desk.run(&["signup-pay", "--tx", &faster, "--wait", "0"]).failure(8);
    let mut world = desk.stand_in.world();
    (world.node.fortune, world.node.sent) = (Fortune::Pay, vec![faster]);
    drop(world);
    desk.run(&["signup-pay"]).success();
    desk.is_settled();
}

#[test]
fn the_first_interruption_waits_for_the_answer() {
    let desk = Desk::new();
    for _ in 0..3 {
        desk.stand_in.next(
            CLAIM,
            Turn::Answer(
                409,
                json!({
                    "error": "payment_unconfirmed", "message": "Wait.", "retry_after_sec": 60,
                }),
            ),
        );
    }
    let child = desk.command(&SIGNUP).spawn().unwrap();
    while desk.stand_in.count(CLAIM) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Long enough for the response to have arrived and the pause to have begun.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let killed = std::process::Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(desk.journal().exists());
}
