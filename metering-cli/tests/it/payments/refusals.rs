//! Quotes that do not match the plan, and payments that the service rejects.

use serde_json::json;

use super::service::{TOKEN, refusal};
use super::{CLAIM, SIGNUP, Step, User, wallet};

#[test]
fn quote_that_differs_from_the_plan_is_not_paid() {
    for (name, value) in [
        ("recipient", json!(TOKEN)),
        ("amount_atomic", json!("5010001")),
        ("amount_atomic", json!("4999999")),
        ("token_contract", json!("0x52908400098527886E0F7030069857D2E4169EE7")),
        ("chain_id", json!(1)),
        ("token_decimals", json!(5)),
    ] {
        let user = User::new();
        user.state().service.spoilt.push((name, value));
        user.program.refuses(&[(SIGNUP, 1, "does not match the plan")]);
        assert!(!user.is_paying() && user.sent() == 0, "{name}");
    }
}

#[test]
fn unknown_plans_and_chains_are_named() {
    let user = User::new();
    user.program.refuses(&[
        ("signup-pay --yes --plan none --agent-name agent", 4, "metering plans"),
        ("signup-pay --yes --plan starter --chain 5 --agent-name agent", 4, "on chain 5"),
        ("signup-pay --yes --agent-name agent", 2, "--plan"),
        ("signup-pay --yes --plan starter", 2, "--agent-name"),
    ]);
    user.succeeds("signup-pay --plan starter --chain devnet --agent-name agent --yes");
}

#[test]
fn rejected_quote_has_the_error_code_of_the_protocol() {
    // status, code, exit code
    for (status, code, exit_code) in [
        (409, "email_already_registered", 5),
        (400, "unsupported_token", 2),
        (429, "rate_limited", 8),
        (503, "payment_not_configured", 8),
    ] {
        let user = User::new();
        user.next("POST /signup/pay/quote", Step::Respond(status, refusal(code)));
        user.program.refuses(&[(SIGNUP, exit_code, code)]);
        assert!(!user.is_paying() && user.sent() == 0);
    }
}

#[test]
fn permanently_rejected_payment_is_kept_on_record() {
    let topup = ("POST /credits/topup", "topup --plan starter --yes");
    let signup = (CLAIM, SIGNUP);
    // request and command, status, code, exit code, text
    for ((what, line), status, code, exit_code, expected) in [
        (signup, 400, "payment_mismatch", 5, "operator"),
        (signup, 400, "payer_mismatch", 5, "operator"),
        (signup, 400, "payment_predates_quote", 5, "operator"),
        (signup, 409, "tx_already_used", 5, "can be credited only once"),
        (signup, 410, "quote_expired", 5, "operator"),
        (signup, 404, "not_found", 4, "kept in"),
        (signup, 409, "payer_already_registered", 5, "metering topup --tx"),
        (topup, 400, "payment_mismatch", 5, ""),
        (topup, 409, "payment_reserved", 5, ""),
        (topup, 400, "unknown_plan", 5, ""),
    ] {
        let user = if what == CLAIM { User::new() } else { User::with_account(Some(wallet())) };
        let before = user.key();
        user.next(what, Step::Respond(status, refusal(code)));
        let failure = user.program.run(line).failure(exit_code);
        assert!(failure.contains(expected) && failure.contains("payments-refused.json"), "{code}: {failure}");
        assert_eq!((user.set_aside(), user.key()), (vec![code.to_owned()], before));
        assert!(!user.is_paying());
    }
}

#[test]
fn error_unrelated_to_the_payment_leaves_it_pending() {
    let user = User::new();
    user.next(CLAIM, Step::Respond(403, refusal("forbidden")));
    user.program.refuses(&[(SIGNUP, 1, "The payment is kept")]);
    user.succeeds(SIGNUP);
    user.is_settled();
}
