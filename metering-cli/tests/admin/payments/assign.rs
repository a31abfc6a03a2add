//! Payments assigned to accounts: once, with a record, and only if it is clear what was paid.

use serde_json::{Value, json};

use super::scene::{
    BOTH, CHAIN_ID, ELSEWHERE, LINKED, OWNED, QUOTED, REVERTED, Scene, TOO_LITTLE, TWICE, UNKNOWN, UNKNOWN_WALLET,
    USED, WITH_INPUT, YOUNG,
};
use crate::fixture::UNKNOWN_ACCOUNT;
use crate::node::{address, hash};

const STARTER: &[&str] = &["--plan", "starter"];

#[test]
fn assigned_payment_is_credited_and_recorded() {
    let scene = Scene::new();
    let org = scene.owner.as_str();
    let reason = ["--reason", "Ticket 311"];
    let ran = scene.assign(UNKNOWN, org, &[STARTER, &reason, &["--json"]].concat()).success();
    let expected = json!({
        "org_id": org, "credit_balance": 10.5, "amount_added": 10.5, "total_credits_purchased": 10.5,
        "plan_id": "starter", "tx_hash": hash(UNKNOWN), "chain_id": CHAIN_ID, "already_credited": false,
    });
    assert_eq!(ran.json::<Value>(), expected);
    let ledger = scene.fixture.admin(&["export", "ledger", "--format", "jsonl"]).success().stdout;
    let entry: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    let fields = ["org_id", "type", "amount", "description", "tx_hash", "chain_id", "plan_id"].map(|name| &entry[name]);
    let description = "Plan starter, assigned by the operator: Ticket 311";
    let tx = hash(UNKNOWN);
    let expected = json!([org, "purchase_topup", 10.5, description, tx, CHAIN_ID, "starter"]);
    assert_eq!(json!(fields), expected);
    let record = scene.records().pop().unwrap();
    let fields = ["org_id", "used_as", "plan_id", "tx_hash", "payer_address", "amount_human", "token_symbol"];
    let expected = json!([org, "assigned", "starter", tx, address(UNKNOWN_WALLET), "5", "USDC"]);
    assert_eq!(json!(fields.map(|name| &record[name])), expected);
    let list: Value = scene.payments("list", &["--chain", "base", "--json"]).success().json();
    let hashes: Vec<_> = list["payments"].as_array().unwrap().iter().map(|payment| &payment["tx_hash"]).collect();
    assert!(!hashes.contains(&&json!(tx)), "{hashes:?}");
    scene.fixture.admin(&["verify"]).success();
}

#[test]
fn assigning_twice_credits_once() {
    let scene = Scene::new();
    let org = scene.owner.as_str();
    let text = scene.assign(UNKNOWN, org, STARTER).success().stdout;
    assert!(text.starts_with("Added 10.5 credits for 5 USDC.\n"), "{text}");
    let text = scene.assign(UNKNOWN, org, STARTER).success().stdout;
    assert!(text.starts_with("The account already has this payment (assigned to org_"), "{text}");
    let again: Value = scene.assign(UNKNOWN, org, &["--credits", "3", "--json"]).success().json();
    assert_eq!((&again["already_credited"], &again["amount_added"]), (&json!(true), &json!(0)));
    assert_eq!(again["plan_id"], "starter", "the plan it was credited for");
    assert_eq!(scene.balance(org), "10.5");
    let topped_up: Value =
        scene.assign(USED, &scene.customer.org_id, &[STARTER, &["--json"]].concat()).success().json();
    assert_eq!(topped_up["already_credited"], true, "its own top-up");
}

#[test]
fn payment_of_another_account_is_not_reassigned() {
    let scene = Scene::new();
    let message = scene.assign(USED, &scene.owner, STARTER).failure(5);
    assert!(message.contains(&format!("was used before: top-up of {}", scene.customer.org_id)), "{message}");
    assert_eq!((scene.balance(&scene.owner).as_str(), scene.records().len()), ("0", 1));
}

#[test]
fn operator_can_set_the_value_of_a_payment() {
    let scene = Scene::new();
    let org = scene.owner.as_str();
    let given: Value = scene.assign(TOO_LITTLE, org, &["--credits", "9.5", "--json"]).success().json();
    assert_eq!((&given["amount_added"], &given["plan_id"]), (&json!(9.5), &Value::Null));
    let coin: Value = scene.assign(LINKED, org, &["--credits", "0.00000001", "--json"]).success().json();
    assert_eq!(coin["credit_balance"].to_string(), "9.50000001");
    let ledger = scene.fixture.admin(&["export", "ledger"]).success().stdout;
    assert!(ledger.contains("Payment assigned by the operator,"), "{ledger}");
    let paid: Vec<_> = scene.records().iter().map(|record| record["amount_human"].clone()).collect();
    assert_eq!(paid, ["5", "4.75", "0.0025"]);
    scene.assign(OWNED, org, STARTER).success();
    assert_eq!(scene.balance(org), "20.00000001");
}

#[test]
fn quoted_payment_is_assigned_only_on_purpose() {
    let scene = Scene::new();
    let org = scene.owner.as_str();
    let message = scene.assign(QUOTED, org, STARTER).failure(5);
    assert!(message.contains("quote of quoted-agent") && message.contains("--despite-quote"), "{message}");
    assert_eq!(scene.balance(org), "0");
    let ran = scene.assign(QUOTED, org, &[STARTER, &["--despite-quote"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.starts_with("warning: the quote of quoted-agent is waiting for this payment"), "{ran:?}");
    assert!(ran.stdout.starts_with("Added 10.5 credits for 5.003817 USDC.\n"), "{ran:?}");
}

#[test]
fn unclear_payment_is_not_assigned() {
    let scene = Scene::new();
    let credits: &[&str] = &["--credits", "1"];
    let coin: &[&str] = &["--plan", "coin"];
    // transaction, options, exit code, what the message contains
    let table: [(u8, &[&str], i32, &str); 12] = [
        (TWICE, STARTER, 1, "2 transfers of the token to the recipient"),
        (TWICE, credits, 1, "`metering admin account grant`"),
        (WITH_INPUT, coin, 1, "carries call data"),
        (WITH_INPUT, credits, 1, "it is not clear what the transaction pays"),
        (TOO_LITTLE, STARTER, 1, "costs 5 USDC, but only 4.75 USDC was paid; use --credits to say what that is worth"),
        (BOTH, credits, 1, "several payments: 0.0025 ETH, 5 USDC; choose one with --plan"),
        (REVERTED, credits, 1, "was reverted"),
        (ELSEWHERE, STARTER, 1, "no transfer of token"),
        (ELSEWHERE, credits, 1, "no transfer to a recipient of the chain's plans"),
        (YOUNG, STARTER, 1, "has 11 of 12 confirmations"),
        (YOUNG, credits, 1, "has 11 of 12 confirmations"),
        (0xff, STARTER, 4, "chain base has no transaction 0xffff"),
    ];
    for (tx, worth, code, expected) in table {
        let message = scene.assign(tx, &scene.owner, worth).failure(code);
        assert!(message.contains(expected), "{tx} {worth:?}: {message}");
    }
    assert_eq!((scene.balance(&scene.owner).as_str(), scene.records().len()), ("0", 1));
}

#[test]
fn plan_selects_between_two_payments_in_one_transaction() {
    let scene = Scene::new();
    let text = scene.assign(BOTH, &scene.owner, &["--plan", "coin"]).success().stdout;
    assert!(text.starts_with("Added 10 credits for 0.0025 ETH.\n"), "{text}");
    // The other one is spent with it: a transaction can be credited only once.
    let again: Value = scene.assign(BOTH, &scene.owner, &[STARTER, &["--json"]].concat()).success().json();
    assert_eq!(again["already_credited"], true);
    assert_eq!(scene.balance(&scene.owner), "10");
    let list = scene.payments("list", &["--chain", "base"]).success().stdout;
    assert!(!list.contains(&hash(BOTH)), "{list}");
}

#[test]
fn accounts_and_plans_must_exist() {
    let scene = Scene::new();
    let message = scene.assign(UNKNOWN, UNKNOWN_ACCOUNT, STARTER).failure(4);
    assert!(message.contains("no account"), "{message}");
    for plan in ["nonesuch", "elsewhere"] {
        let message = scene.assign(UNKNOWN, &scene.owner, &["--plan", plan]).failure(4);
        assert!(message.contains(&format!("no plan {plan} on chain {CHAIN_ID}")), "{message}");
    }
    scene.fixture.admin(&["account", "revoke", &scene.owner, "--yes"]).success();
    let message = scene.assign(UNKNOWN, &scene.owner, STARTER).failure(5);
    assert!(message.contains("was revoked"), "{message}");
    assert_eq!(scene.records().len(), 1);
}

#[test]
fn conflicting_arguments_are_rejected() {
    let scene = Scene::new();
    let org = scene.owner.as_str();
    for args in [
        &[][..],
        &["--plan", "starter", "--credits", "1"],
        &["--credits", "0"],
        &["--credits=-1"],
        &["--credits", "0.000000001"],
        &["--plan", "starter", "--reason", "two\nlines"],
    ] {
        scene.assign(UNKNOWN, org, args).misuse();
    }
    scene.payments("assign", &["--chain", "base", "--tx", "0x12", "--account", org, "--plan", "starter"]).misuse();
    scene.assign(UNKNOWN, "org_short", STARTER).misuse();
    assert_eq!(scene.records().len(), 1);
}

#[test]
fn the_records_are_exported() {
    let scene = Scene::new();
    scene.assign(UNKNOWN, &scene.owner, STARTER).success();
    let csv = scene.fixture.admin(&["export", "payments"]).success().stdout;
    let headings = "chain_id,tx_hash,block_number,mined_at,payer_address,recipient,token_contract,amount_atomic,\
                    org_id,used_as,plan_id,recorded_at,state,reversed_at";
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), (headings, 3));
    assert!(lines[1].contains(&hash(USED)) && lines[1].contains(",5000000,"), "{csv}");
    assert!(lines[2].contains(&format!(",{},assigned,starter,", scene.owner)), "{csv}");
    let text = scene.fixture.admin(&["payments", "records"]).success().stdout;
    assert!(text.lines().nth(2).unwrap().contains("5 USDC"), "{text}");
}
