//! Abandoning a payment.

use std::io::Write;
use std::process::Stdio;

use crate::desk::{Desk, Ran, SIGNUP};
use crate::node::Fortune;
use crate::stand_in::Turn;

/// Runs `signup-pay --abandon` and types a line.
fn abandon(desk: &Desk, typed: &str) -> Ran {
    let mut child = desk.command(&["signup-pay", "--abandon"]).stdin(Stdio::piped()).spawn().unwrap();
    // The program may not read it.
    let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn nothing_pending_is_nothing_to_forget() {
    assert!(Desk::new().run(&["signup-pay", "--abandon"]).failure(4).contains("no payment is pending"));
}

#[test]
fn what_was_never_signed_is_forgotten_freely() {
    let desk = Desk::new();
    desk.stand_in.world().node.balance = 0;
    desk.run(&SIGNUP).failure(1);
    desk.run(&["topup", "--abandon"]).success();
    assert!(!desk.journal().exists() && desk.set_aside().is_empty());
}

#[test]
fn what_may_have_been_sent_is_forgotten_by_a_typed_word_only() {
    for (what, turn) in [
        ("eth_sendRawTransaction", Turn::HangBefore),
        ("eth_sendRawTransaction", Turn::HangAfter),
        ("POST /signup/pay/claim", Turn::HangBefore),
    ] {
        let desk = Desk::new();
        desk.stand_in.next(what, turn);
        desk.run_and_kill(&SIGNUP);
        for typed in ["", "yes\n", "y\n"] {
            let failure = abandon(&desk, typed).failure(5);
            assert!(failure.contains("may have been made"), "{failure}");
            assert!(desk.journal().exists());
        }
        let ran = abandon(&desk, "abandon\n").success();
        assert!(ran.stdout.contains("A record is kept"), "{ran:?}");
        assert_eq!(desk.set_aside(), ["abandoned"]);
        assert!(!desk.journal().exists());
    }
}

#[test]
fn what_certainly_came_to_nothing_is_forgotten_freely_once_the_chain_says_so() {
    for fortune in [Fortune::Fail, Fortune::GiveWay] {
        let desk = Desk::new();
        desk.stand_in.next("POST /signup/pay/claim", Turn::HangBefore);
        desk.run_and_kill(&SIGNUP);
        desk.stand_in.world().node.fortune = fortune;
        // A chain that cannot be read says nothing.
        let mut without_chain = desk.command(&["signup-pay", "--abandon"]);
        Ran::of(without_chain.env_remove("METERING_CLIENT_RPC_URL").output().unwrap()).failure(5);
        let ran = desk.run(&["signup-pay", "--abandon", "--json"]).success();
        assert_eq!(ran.json()["status"], "abandoned");
        assert_eq!(ran.json()["tx_hash"], desk.stand_in.world().node.sent[0].as_str());
    }
}

#[test]
fn after_forgetting_a_payment_another_can_be_made() {
    let desk = Desk::new();
    desk.stand_in.world().node.fortune = Fortune::Fail;
    desk.run(&SIGNUP).failure(5);
    desk.run(&["signup-pay", "--abandon"]).success();
    desk.stand_in.world().node.fortune = Fortune::Pay;
    desk.run(&SIGNUP).success();
    assert_eq!(desk.sent(), 2, "the first did not pay");
    assert!(desk.key().is_some() && !desk.journal().exists());
}
