//! Payments assigned to accounts: once, with a record, and only if it is clear what was paid.

use serde_json::{Value, json};

use super::scene::{CHAIN_ID, assign, configuration, records, scene};
use crate::node::{address, hash};
use crate::program::Program;

fn balance(program: &Program) -> String {
    program.json::<Value>("account show $owner")["credit_balance"].to_string()
}

#[test]
fn assigned_payment_is_credited_once_and_recorded() {
    let (program, _node) = scene();
    let line = assign("UNKNOWN", "--plan starter --reason 'Ticket 311'");
    let (org, tx) = (program.text("$owner"), hash(2));
    let expected = json!({
        "org_id": org, "credit_balance": 10.5, "amount_added": 10.5, "total_credits_purchased": 10.5,
        "plan_id": "starter", "tx_hash": tx, "chain_id": CHAIN_ID, "already_credited": false,
    });
    assert_eq!(program.json::<Value>(&line), expected);
    let ledger = program.run("export ledger --format jsonl").success();
    let entry: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    let fields = ["org_id", "type", "amount", "description", "tx_hash", "chain_id", "plan_id"].map(|name| &entry[name]);
    let description = "Plan starter, assigned by the operator: Ticket 311";
    assert_eq!(json!(fields), json!([org, "purchase_topup", 10.5, description, tx, CHAIN_ID, "starter"]));
    let list: Value = program.json("payments records");
    let record = list["payments"].as_array().unwrap().last().unwrap();
    let fields = ["org_id", "used_as", "plan_id", "tx_hash", "payer_address", "amount_human", "token_symbol"];
    let expected = json!([org, "assigned", "starter", tx, address(0x22), "5", "USDC"]);
    assert_eq!(json!(fields.map(|name| &record[name])), expected);
    assert!(!program.run("payments list --config metering.toml --chain base").success().contains(&tx));

    let text = program.run(&line).success();
    assert!(text.starts_with("The account already has this payment (assigned to org_"), "{text}");
    // With the plan that it was credited for.
    let again = [("/already_credited", "true"), ("/amount_added", "0"), ("/plan_id", "\"starter\"")];
    program.documents(&[(&assign("UNKNOWN", "--credits 3"), &again)]);
    assert_eq!(balance(&program), "10.5");
    program.run("verify").success();

    let csv = program.run("export payments").success();
    let headings = "chain_id,tx_hash,block_number,mined_at,payer_address,recipient,token_contract,amount_atomic,\
                    org_id,used_as,plan_id,recorded_at,state,reversed_at,value_currency,value_amount,value_rate,\
                    value_rate_source,value_rate_as_of,processor,processor_id";
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), (headings, 3));
    assert!(lines[1].contains(&program.text("$USED")) && lines[1].contains(",5000000,"), "{csv}");
    assert!(lines[2].contains(&program.text(",$owner,assigned,starter,")), "{csv}");
    assert!(program.rows("payments records")[1].contains("5 USDC"));
}

#[test]
fn assigned_payment_has_a_value_by_the_rates_of_the_configuration() {
    let (program, node) = scene();
    let currency =
        "[receipts.currency]\ncode = 'EUR'\nsource = 'ECB'\nas_of = '2026-11-27'\nrates = { USDC = '0.8612' }\n";
    program.write("metering.toml", format!("{}{currency}", configuration(&node)));
    program.run(&assign("TOO_LITTLE", "--credits 9.5")).success();
    program.run(&assign("COIN", "--credits 1")).success();
    let list: Value = program.json("payments records");
    let values: Vec<&Value> = list["payments"].as_array().unwrap().iter().map(|record| &record["value"]).collect();
    let valued = json!({
        "currency": "EUR", "amount": "4.09", "rate": "0.8612", "rate_source": "ECB",
        "rate_as_of": "2026-11-27T00:00:00.000Z",
    });
    let unknown = json!({"currency": "EUR", "amount": null, "rate": null, "rate_source": null, "rate_as_of": null});
    assert_eq!(json!(values), json!([null, valued, unknown]));
    assert!(program.rows("payments records").iter().any(|row| row.contains("4.75 USDC, 4.09 EUR")));
    let csv = program.run("export payments").success();
    let ends: Vec<bool> = [",,,,,,,", ",EUR,4.09,0.8612,ECB,2026-11-27T00:00:00.000Z,,", ",EUR,,,,,,"]
        .into_iter()
        .zip(csv.lines().skip(1))
        .map(|(end, line)| line.ends_with(end))
        .collect();
    assert_eq!(ends, [true; 3], "{csv}");
}

#[test]
fn operator_can_set_the_value_of_a_payment() {
    let (program, _node) = scene();
    program.documents(&[
        (&assign("TOO_LITTLE", "--credits 9.5"), &[("/amount_added", "9.5"), ("/plan_id", "null")]),
        (&assign("COIN", "--credits 0.00000001"), &[("/credit_balance", "9.50000001")]),
    ]);
    program.prints(&[("export ledger", &["Payment assigned by the operator,"])]);
    let paid = [
        ("/payments/0/amount_human", "\"5\""),
        ("/payments/1/amount_human", "\"4.75\""),
        ("/payments/2/amount_human", "\"0.0025\""),
    ];
    program.documents(&[("payments records", &paid)]);
    let text = program.run(&assign("UNKNOWN", "--plan starter")).success();
    assert!(text.starts_with("Added 10.5 credits for 5 USDC.\n"), "{text}");
    assert_eq!(balance(&program), "20.00000001");
}

#[test]
fn quoted_payment_is_assigned_only_on_purpose() {
    let (program, _node) = scene();
    program.refuses(&[
        (&assign("QUOTED", "--plan starter"), 5, "quote of quoted-agent"),
        (&assign("QUOTED", "--plan starter"), 5, "--despite-quote"),
    ]);
    assert_eq!(balance(&program), "0");
    let ran = program.run(&assign("QUOTED", "--plan starter --despite-quote")).expect(0);
    assert!(ran.stderr.starts_with("warning: the quote of quoted-agent is waiting for this payment"), "{ran:?}");
    assert!(ran.stdout.starts_with("Added 10.5 credits for 5.003817 USDC.\n"), "{ran:?}");
}

#[test]
fn unclear_payment_is_not_assigned() {
    let (program, _node) = scene();
    // transaction, options, exit code, what the message contains
    for (tx, options, code, expected) in [
        ("TWICE", "--plan starter", 1, "2 transfers of the token to the recipient"),
        ("TWICE", "--credits 1", 1, "`metering admin account grant`"),
        ("WITH_INPUT", "--plan coin", 1, "carries call data"),
        ("WITH_INPUT", "--credits 1", 1, "it is not clear what the transaction pays"),
        (
            "TOO_LITTLE",
            "--plan starter",
            1,
            "costs 5 USDC, but only 4.75 USDC was paid; use --credits to say what that is worth",
        ),
        ("BOTH", "--credits 1", 1, "several payments: 0.0025 ETH, 5 USDC; choose one with --plan"),
        ("REVERTED", "--credits 1", 1, "was reverted"),
        ("ELSEWHERE", "--plan starter", 1, "no transfer of token"),
        ("ELSEWHERE", "--credits 1", 1, "no transfer to a recipient of the chain's plans"),
        ("YOUNG", "--plan starter", 1, "has 11 of 12 confirmations"),
        ("YOUNG", "--credits 1", 1, "has 11 of 12 confirmations"),
        ("UNKNOWN", "--plan coin", 1, "does not pay plan coin"),
        ("MISSING", "--plan starter", 4, "chain base has no transaction $MISSING"),
        ("UNKNOWN", "--plan nonesuch", 4, "no plan nonesuch on chain 8453"),
        ("UNKNOWN", "--plan elsewhere", 4, "no plan elsewhere on chain 8453"),
        ("UNKNOWN", "", 2, "--plan"),
        ("UNKNOWN", "--plan starter --credits 1", 2, "--credits"),
        ("UNKNOWN", "--credits 0", 2, "--credits"),
        ("UNKNOWN", "--credits=-1", 2, "--credits"),
        ("UNKNOWN", "--credits 0.000000001", 2, "--credits"),
        ("UNKNOWN", "--plan starter --reason 'two\nlines'", 2, ""),
    ] {
        program.refuses(&[(&assign(tx, options), code, expected)]);
    }
    let line = assign("UNKNOWN", "--plan starter");
    program.refuses(&[
        (&line.replace("$owner", "$nobody"), 4, "no account"),
        (&line.replace("$owner", "org_short"), 2, "org_short"),
        (&line.replace("$UNKNOWN", "0x12"), 2, "0x12"),
    ]);
    program.run("account revoke $owner --yes").success();
    program.refuses(&[(&line, 5, "was revoked")]);
    assert_eq!((balance(&program).as_str(), records(&program)), ("0", 1));
}
