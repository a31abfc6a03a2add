//! Payments that arrived, and what the store knows about them.

use metering_core::PaymentStore;
use serde_json::{Value, json};

use super::scene::{
    BOTH, CHAIN_ID, LINKED, NEWEST, OWNED, QUOTED, SETTLED, Scene, TOO_LITTLE, TWICE, UNKNOWN, UNKNOWN_WALLET, USDC,
    USED, WITH_INPUT, time_of,
};
use crate::fixture::block_on;
use crate::node::{address, hash};

const BASE: &[&str] = &["--chain", "base"];

fn listed(scene: &Scene, args: &[&str]) -> Value {
    scene.payments("list", &[BASE, args, &["--json"]].concat()).success().json()
}

fn hashes(list: &Value) -> Vec<&str> {
    list["payments"].as_array().unwrap().iter().map(|payment| payment["tx_hash"].as_str().unwrap()).collect()
}

#[test]
fn unclaimed_payments_are_listed_with_hints() {
    let scene = Scene::new();
    let list = listed(&scene, &[]);
    let (customer, owner) = (scene.customer.org_id.as_str(), scene.owner.as_str());
    type Texts<'a> = &'a [&'a str];
    // transaction, status, accounts, display amount, what the note contains
    let table: [(u8, &str, Texts<'_>, Option<&str>, &str); 9] = [
        (QUOTED, "quoted", &[], Some("5.003817"), "quote of quoted-agent is not claimed yet"),
        (UNKNOWN, "unknown_payer", &[], Some("5"), "matches no quote or account"),
        (TWICE, "unclear", &[], None, "2 transfers of the token to the recipient"),
        (LINKED, "linked_wallet", &[customer], Some("0.0025"), "its wallet is linked to"),
        (WITH_INPUT, "unclear", &[], None, "carries call data"),
        (OWNED, "known_payer", &[owner], Some("5"), "its wallet paid for"),
        (TOO_LITTLE, "unknown_payer", &[], Some("4.75"), "matches no quote or account"),
        (BOTH, "unknown_payer", &[], Some("0.0025"), "matches no quote or account"),
        (BOTH, "unknown_payer", &[], Some("5"), "matches no quote or account"),
    ];
    let payments = list["payments"].as_array().unwrap();
    assert_eq!(payments.len(), table.len(), "{list}");
    for (payment, (tx, status, accounts, amount, note)) in payments.iter().zip(table) {
        assert_eq!(payment["tx_hash"], hash(tx), "in chain order");
        assert_eq!(payment["status"], status, "{payment}");
        assert_eq!(payment["org_ids"], json!(accounts), "{payment}");
        assert_eq!(payment["amount_human"], json!(amount), "{payment}");
        assert_eq!(payment["amount_atomic"].is_null(), amount.is_none(), "{payment}");
        let text = payment["note"].as_str().unwrap();
        assert!(text.contains(note) && accounts.iter().all(|account| text.contains(account)), "{text}");
    }
    assert_eq!(payments[0]["quote"], json!({ "agent_name": "quoted-agent", "plan_id": "starter" }));
    assert_eq!(list["scanned"][0]["to_block"], SETTLED);
}

#[test]
fn a_payment_is_described_by_the_chain_and_named_by_the_plans() {
    let scene = Scene::new();
    let list = listed(&scene, &["--from-block", "20", "--to-block", "20"]);
    let expected = json!({
        "chain": "base", "chain_id": CHAIN_ID, "tx_hash": hash(UNKNOWN), "block_number": 20,
        "mined_at": time_of(20), "payer_address": address(UNKNOWN_WALLET), "recipient": super::scene::RECIPIENT,
        "token_contract": USDC, "token_symbol": "USDC", "amount_atomic": "5000000", "amount_human": "5",
        "status": "unknown_payer", "state": null, "org_ids": [], "quote": null, "note": "matches no quote or account",
    });
    assert_eq!(list["payments"], json!([expected]));
}

#[test]
fn payments_that_are_used_are_listed_only_with_all() {
    let scene = Scene::new();
    assert!(!hashes(&listed(&scene, &[])).contains(&hash(USED).as_str()));
    let all = listed(&scene, &["--all"]);
    let used = all["payments"].as_array().unwrap().iter().find(|payment| payment["tx_hash"] == hash(USED)).unwrap();
    assert_eq!((&used["status"], &used["org_ids"]), (&json!("used"), &json!([scene.customer.org_id])));
    assert_eq!(used["state"], "unsettled", "nothing has checked yet whether it is final");
    assert_eq!(used["note"], format!("top-up of {}, plan starter", scene.customer.org_id));
}

#[test]
fn only_the_requested_blocks_are_scanned() {
    let scene = Scene::new();
    let some = listed(&scene, &["--from-block", "20", "--to-block", "50"]);
    assert_eq!(hashes(&some), [hash(UNKNOWN), hash(TWICE), hash(LINKED)]);
    let too_new = scene.payments("list", &[BASE, &["--to-block", &NEWEST.to_string()]].concat()).failure(2);
    assert!(too_new.contains(&format!("block {NEWEST} is not confirmed yet; the newest confirmed block is {SETTLED}")));
    let backwards = ["--from-block", "51", "--to-block", "50"];
    let backwards = scene.payments("list", &[BASE, &backwards].concat()).failure(2);
    assert!(backwards.contains("--from-block 51 is after block 50"), "{backwards}");
}

#[test]
fn list_reaches_back_from_the_watchers_block() {
    let scene = Scene::new();
    let remove = ["plan", "remove", "coin", "--chain-id", "8453"];
    // Without it no block is fetched in full, and ten thousand blocks are read quickly.
    scene.fixture.admin(&remove).success();
    let chain = crate::node::Chain { id: CHAIN_ID, newest: 50_000, transactions: Vec::new(), takes: None };
    let node = crate::node::Node::start(chain);
    std::fs::write(scene.fixture.path("metering.toml"), super::scene::configuration(&node.url())).unwrap();
    let scanned = || listed(&scene, &[])["scanned"][0].clone();
    let expected = |from: u64| json!({ "chain": "base", "chain_id": CHAIN_ID, "from_block": from, "to_block": 49_989 });
    assert_eq!(scanned(), expected(39_989), "no watcher has run");
    block_on(scene.fixture.store().set_scan_mark(CHAIN_ID, 30_000)).unwrap();
    assert_eq!(scanned(), expected(20_000), "the watcher is behind");
}

#[test]
fn table_shows_payments_and_the_scanned_range() {
    let scene = Scene::new();
    let text = scene.payments("list", BASE).success().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("CHAIN  TX_HASH"), "{text}");
    assert!(lines[1].contains(&hash(QUOTED)) && lines[1].contains("5.003817  USDC"), "{text}");
    assert!(lines[1].ends_with("quote of quoted-agent is not claimed yet"), "{text}");
    assert_eq!(*lines.last().unwrap(), format!("Chain base, blocks 0 to {SETTLED}: 9 listed."));
}

#[test]
fn without_a_chain_all_readable_chains_are_listed() {
    let scene = Scene::new();
    let ran = scene.payments("list", &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stderr, "note: chain quiet has no rpc_urls and is skipped\n");
    let list: Value = ran.json();
    assert_eq!((hashes(&list).len(), list["scanned"].as_array().unwrap().len()), (9, 1));
}
