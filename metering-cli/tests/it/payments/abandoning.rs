//! Abandoning a payment.

use super::{CLAIM, SEND, SIGNUP, Step, User};
use crate::node::TxOutcome;

const ABANDON: &str = "signup-pay --abandon";

#[test]
fn unsigned_payment_is_abandoned_without_confirmation() {
    let user = User::new();
    user.program.refuses(&[(ABANDON, 4, "no payment is pending")]);
    user.state().node.balance = 0;
    user.program.run(SIGNUP).failure(1);
    user.succeeds("topup --abandon");
    assert!(!user.is_paying() && user.set_aside().is_empty());
}

#[test]
fn possibly_sent_payment_needs_typed_confirmation() {
    for (what, step) in [(SEND, Step::HangBefore), (SEND, Step::HangAfter), (CLAIM, Step::HangBefore)] {
        let user = User::new();
        user.is_killed(SIGNUP, what, step);
        for typed in ["", "yes\n", "y\n"] {
            let failure = user.program.reading(ABANDON, typed).failure(5);
            assert!(failure.contains("may have been made") && user.is_paying(), "{failure}");
        }
        let ran = user.program.reading(ABANDON, "abandon\n").expect(0);
        assert!(ran.stdout.contains("A record is kept") && !user.is_paying(), "{ran:?}");
        assert_eq!(user.set_aside(), ["abandoned"]);
    }
}

#[test]
fn failed_payment_is_abandoned_without_confirmation() {
    for outcome in [TxOutcome::Fail, TxOutcome::GiveWay] {
        let user = User::new();
        user.is_killed(SIGNUP, CLAIM, Step::HangBefore);
        user.state().node.outcome = outcome;
        // A chain that cannot be read says nothing.
        user.program.run_without("METERING_CLIENT_RPC_URL", ABANDON).failure(5);
        let hash = format!("\"{}\"", user.state().node.sent[0]);
        let printed = user.succeeds(&format!("{ABANDON} --json")).json::<serde_json::Value>();
        assert_eq!((&printed["status"], printed["tx_hash"].to_string()), (&"abandoned".into(), hash));
        // A new payment is possible afterwards: the first did not pay.
        user.state().node.outcome = TxOutcome::Pay;
        user.succeeds(SIGNUP);
        assert_eq!(user.sent(), 2);
        assert!(user.key().is_some() && !user.is_paying());
    }
}
