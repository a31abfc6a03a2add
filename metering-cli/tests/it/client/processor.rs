//! `metering payments`.

use super::{client, misuses, sends};
use crate::stand_in::Reply;

const CREDITED: &str = r#"{"org_id":"org_1","credit_balance":112.5,"amount_added":100,"total_credits_purchased":100,"plan_id":"starter","receipt_number":"R-0-9F86D081884C7D65","already_credited":true}"#;
const REVERSED: &str = r#"{"org_id":"org_1","credit_balance":-2.5,"amount_reversed":"2.50","currency":"EUR","restored":false,"already_recorded":false}"#;

#[test]
fn payments_of_processors_and_their_reversals_are_reported() {
    let (program, service) =
        client([("/internal/payments", Reply::ok(CREDITED)), ("/internal/payments/reversals", Reply::ok(REVERSED))]);
    program.write("secret", "payments-secret\n");
    let credit = "payments credit --secret-file secret --processor paddle --id txn_1 --account org_1 --amount 10.00 \
                  --currency EUR";
    let reverse = "payments reverse --secret-file secret --processor paddle --id adj_1 --payment txn_1";
    let (with_plan, with_credits) = (format!("{credit} --plan starter"), format!("{credit} --credits 0.5 --json"));
    let (part, whole) =
        (format!("{reverse} --amount 2.50 --currency EUR --reason 'One of four'"), format!("{reverse} --restored"));
    let paid = r#""processor":"paddle","id":"txn_1","org_id":"org_1","amount":"10.00","currency":"EUR""#;
    let taken = r#""processor":"paddle","id":"adj_1","payment_id":"txn_1""#;
    sends(
        &program,
        &service,
        &[
            (&with_plan, &format!(r#"POST /internal/payments {{{paid},"plan_id":"starter"}}"#), "R-0-9F86D081884C7D65"),
            (&with_credits, &format!(r#"POST /internal/payments {{{paid},"credits":0.5}}"#), "\"amount_added\":100"),
            (
                &part,
                &format!(
                    r#"POST /internal/payments/reversals {{{taken},"amount":"2.50","currency":"EUR","reason":"One of four","restored":false}}"#
                ),
                "2.50 EUR",
            ),
            (&whole, &format!(r#"POST /internal/payments/reversals {{{taken},"restored":true}}"#), "-2.5"),
        ],
    );
    let last = service.last();
    assert_eq!(last.header("x-bds-internal-billing-secret"), Some("payments-secret"));
    assert_eq!(last.key(), None, "the secret is instead of a key");
    assert!(program.run(&with_plan).expect(0).stderr.contains("credited before"));
    let without_secret = credit.replace("--secret-file secret ", "");
    misuses(
        &program,
        &service,
        &[credit, &format!("{without_secret} --plan starter"), &format!("{reverse} --amount 2.50")],
    );
}
