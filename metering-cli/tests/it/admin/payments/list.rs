//! Payments that arrived, and what the store knows about them.

use serde_json::{Value, json};

use super::scene::{CHAIN_ID, NEWEST, RECIPIENT, SETTLED, USDC, scene, time_of};
use crate::node::{address, hash};

const LIST: &str = "payments list --config metering.toml --chain base";

#[test]
fn unclaimed_payments_are_listed_with_hints() {
    let (program, _node) = scene();
    let list: Value = program.json(LIST);
    // transaction, status, display amount, what the note contains; in chain order
    let table = [
        ("$QUOTED", "quoted", "\"5.003817\"", "quote of quoted-agent is not claimed yet"),
        ("$UNKNOWN", "unknown_payer", "\"5\"", "matches no quote or account"),
        ("$TWICE", "unclear", "null", "2 transfers of the token to the recipient"),
        ("$COIN", "unknown_payer", "\"0.0025\"", "matches no quote or account"),
        ("$WITH_INPUT", "unclear", "null", "carries call data"),
        ("$TOO_LITTLE", "unknown_payer", "\"4.75\"", "matches no quote or account"),
        ("$BOTH", "unknown_payer", "\"0.0025\"", "matches no quote or account"),
        ("$BOTH", "unknown_payer", "\"5\"", "matches no quote or account"),
    ];
    let payments = list["payments"].as_array().unwrap();
    assert_eq!(payments.len(), table.len(), "{list}");
    for (payment, (tx, status, amount, note)) in payments.iter().zip(table) {
        let found = (&payment["tx_hash"], &payment["status"], &payment["org_ids"]);
        assert_eq!(found, (&json!(program.text(tx)), &json!(status), &json!([])), "{payment}");
        assert_eq!(payment["amount_human"].to_string(), amount, "{payment}");
        assert_eq!(payment["amount_atomic"].is_null(), amount == "null", "{payment}");
        assert!(payment["note"].as_str().unwrap().contains(note), "{payment}");
    }
    assert_eq!(payments[0]["quote"], json!({ "agent_name": "quoted-agent", "plan_id": "starter" }));
    assert_eq!(list["scanned"][0]["to_block"], SETTLED);
    // Described by the chain, and named by the plans.
    let described = json!({
        "chain": "base", "chain_id": CHAIN_ID, "tx_hash": hash(2), "block_number": 20,
        "mined_at": time_of(20), "payer_address": address(0x22), "recipient": RECIPIENT, "token_contract": USDC,
        "token_symbol": "USDC", "amount_atomic": "5000000", "amount_human": "5", "status": "unknown_payer",
        "state": null, "org_ids": [], "quote": null, "note": "matches no quote or account",
    });
    assert_eq!(payments[1], described);

    let table = program.run(LIST).success();
    assert!(table.starts_with("CHAIN  TX HASH") && table.contains("5.003817  USDC"), "{table}");
    assert!(table.lines().nth(1).unwrap().ends_with("quote of quoted-agent is not claimed yet"), "{table}");
    assert!(table.ends_with(&format!("Chain base, blocks 0 to {SETTLED}: 8 listed.\n")), "{table}");
}

#[test]
fn payments_that_are_used_are_listed_only_with_all() {
    let (program, _node) = scene();
    assert!(!program.run(LIST).success().contains(&program.text("$USED")));
    // Nothing has checked yet whether it is final.
    let used = [
        ("/payments/0/tx_hash", "\"$USED\""),
        ("/payments/0/status", "\"used\""),
        ("/payments/0/org_ids", "[\"$customer\"]"),
        ("/payments/0/state", "\"unsettled\""),
        ("/payments/0/note", "\"assigned to $customer, plan starter\""),
    ];
    program.documents(&[(&format!("{LIST} --all --from-block 30 --to-block 30"), &used)]);
}

#[test]
fn only_the_requested_blocks_are_scanned() {
    let (program, _node) = scene();
    let some = [
        ("/payments/0/tx_hash", "\"$UNKNOWN\""),
        ("/payments/1/tx_hash", "\"$TWICE\""),
        ("/payments/2/tx_hash", "\"$COIN\""),
        ("/payments/3", ""),
    ];
    program.documents(&[(&format!("{LIST} --from-block 20 --to-block 50"), &some)]);
    let too_new = format!("block {NEWEST} is not confirmed yet; the newest confirmed block is {SETTLED}");
    program.refuses(&[
        (&format!("{LIST} --to-block {NEWEST}"), 2, &too_new),
        (&format!("{LIST} --from-block 51 --to-block 50"), 2, "--from-block 51 is after block 50"),
    ]);
}

#[test]
fn without_a_chain_all_readable_chains_are_listed() {
    let (program, _node) = scene();
    let ran = program.run("payments list --config metering.toml --json").expect(0);
    assert_eq!(ran.stderr, "note: chain quiet has no rpc_urls and is skipped\n");
    let list: Value = ran.json();
    let length = |field: &str| list[field].as_array().unwrap().len();
    assert_eq!((length("payments"), length("scanned")), (8, 1));
}
