//! Quotes that do not match the plan, and payments that the service rejects.

use serde_json::json;

use crate::fixture::{Fixture, SIGNUP};
use crate::service::{TOKEN, refusal};
use crate::stand_in::Step;

#[test]
fn quote_that_differs_from_the_plan_is_not_paid() {
    let table = [
        ("recipient", json!(TOKEN)),
        ("amount_atomic", json!("5010001")),
        ("amount_atomic", json!("4999999")),
        ("token_contract", json!("0x52908400098527886E0F7030069857D2E4169EE7")),
        ("chain_id", json!(1)),
        ("token_decimals", json!(5)),
    ];
    for (name, value) in table {
        let fixture = Fixture::new();
        fixture.stand_in.state().service.spoilt.push((name, value.clone()));
        let failure = fixture.run(&SIGNUP).failure(1);
        assert!(failure.contains("does not match the plan"), "{name} {value}: {failure}");
        assert!(!fixture.journal().exists() && fixture.sent() == 0, "{name} {value}");
    }
}

#[test]
fn unknown_plans_and_chains_are_named() {
    let fixture = Fixture::new();
    let table: [(&[&str], i32, &str); 4] = [
        (&["--plan", "none", "--agent-name", "agent"], 4, "metering plans"),
        (&["--plan", "starter", "--chain", "5", "--agent-name", "agent"], 4, "on chain 5"),
        (&["--agent-name", "agent"], 2, "--plan"),
        (&["--plan", "starter"], 2, "--agent-name"),
    ];
    for (args, code, expected) in table {
        let failure = fixture.run(&[&["signup-pay", "--yes"], args].concat()).failure(code);
        assert!(failure.contains(expected), "{args:?}: {failure}");
    }
    let by_name = ["signup-pay", "--plan", "starter", "--chain", "devnet", "--agent-name", "agent", "--yes"];
    fixture.run(&by_name).success();
}

#[test]
fn rejected_quote_has_the_error_code_of_the_protocol() {
    // status, code, exit code
    let table = [
        (409, "email_already_registered", 5),
        (400, "unsupported_token", 2),
        (429, "rate_limited", 8),
        (503, "payment_not_configured", 8),
    ];
    for (status, code, exit_code) in table {
        let fixture = Fixture::new();
        fixture.stand_in.next("POST /signup/pay/quote", Step::Respond(status, refusal(code)));
        let failure = fixture.run(&SIGNUP).failure(exit_code);
        assert!(failure.contains(code), "{failure}");
        assert!(!fixture.journal().exists() && fixture.sent() == 0);
    }
}

#[test]
fn permanently_rejected_payment_is_kept_on_record() {
    // status, code, exit code, text
    let table = [
        (400, "payment_mismatch", 5, "operator"),
        (400, "payer_mismatch", 5, "operator"),
        (400, "payment_predates_quote", 5, "operator"),
        (409, "tx_already_used", 5, "can be credited only once"),
        (410, "quote_expired", 5, "operator"),
        (404, "not_found", 4, "kept in"),
        (409, "payer_already_registered", 5, "metering topup --tx"),
    ];
    for (status, code, exit_code, expected) in table {
        let fixture = Fixture::new();
        fixture.stand_in.next("POST /signup/pay/claim", Step::Respond(status, refusal(code)));
        let failure = fixture.run(&SIGNUP).failure(exit_code);
        assert!(failure.contains(expected) && failure.contains("payments-refused.json"), "{code}: {failure}");
        assert_eq!(fixture.set_aside(), [code]);
        assert!(!fixture.journal().exists() && fixture.key().is_none());
    }
}

#[test]
fn error_unrelated_to_the_payment_leaves_it_pending() {
    let fixture = Fixture::new();
    fixture.stand_in.next("POST /signup/pay/claim", Step::Respond(403, refusal("forbidden")));
    let failure = fixture.run(&SIGNUP).failure(1);
    assert!(failure.contains("The payment is kept"), "{failure}");
    fixture.run(&SIGNUP).success();
    fixture.is_settled();
}
