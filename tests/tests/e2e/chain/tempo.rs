//! A chain whose transactions differ from Ethereum's: anvil in its Tempo mode, and payments of type `0x76`, sent by an
//! independent library.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::shop::{Kind, STARTER, Shop, key_of};
use crate::support::wait::until;

/// The token that every account of a Tempo test network has plenty of.
const PATH_USD: &str = "0x20c0000000000000000000000000000000000000";

/// A watched shop on a Tempo chain; its plan `coin` makes the watcher read whole blocks.
fn shop() -> Option<Shop> {
    let chain = Chain::setup().chain_id(42_431).arg("--network", "tempo").arg("--block-time", 1).start()?;
    let urls = format!("'{}'", chain.url());
    let shop = Shop::selling_for(PATH_USD, Site::verified(), chain, &urls, "1", "watch = true\nwatch_from_block = 0");
    Some(shop.with_default_claim_wait())
}

fn pay(shop: &Shop, from: &Account, units: u128) -> String {
    let hash = shop.chain.wallet().transfer_by_calls(from, PATH_USD, &shop.recipient.address(), units);
    let _ = shop.chain.mined(&hash);
    let sent = shop.chain.rpc("eth_getTransactionByHash", json!([hash]));
    assert_eq!((&sent["type"], &sent["to"], &sent["value"]), (&json!("0x76"), &Value::Null, &Value::Null), "{sent}");
    hash
}

#[test]
fn batched_call_payments_can_be_claimed_watched_and_assigned() {
    let Some(shop) = shop() else { return };
    let wallet = shop.chain.wallet();
    let (sponsor, buyer, unlinked) = (wallet.account(1), wallet.account(2), wallet.account(3));

    // A top-up from a wallet, which is then linked to the account.
    let account = shop.site.account("1");
    let first = pay(&shop, &sponsor, STARTER);
    let refused = shop.top_up(&account.api_key, Kind::Token, &first, None).expect(403);
    assert_eq!(refused.error(), "payer_proof_required");
    let signature = wallet.sign_message(&sponsor, refused.json()["message"].as_str().unwrap());
    let _ = shop.top_up(&account.api_key, Kind::Token, &first, Some(&signature)).expect(200);
    assert_eq!(shop.balance(&account.api_key), "11.5");

    // A signup.
    let quote = shop.quote(Kind::Token, &buyer.address());
    let paid = pay(&shop, &buyer, quote.units);
    let key = key_of(&shop.claim(&quote, &paid).expect(200));
    assert_eq!(shop.balance(&key), "12.5");

    // The watcher continues after them, and credits a payment from a linked wallet.
    let _ = pay(&shop, &sponsor, STARTER);
    until("the watcher credits the linked account", || shop.balance(&account.api_key) == "22");
    shop.wait_until_scanned();

    // An unclaimed payment is listed, and can be assigned.
    let unknown = pay(&shop, &unlinked, STARTER / 2);
    shop.wait_until_scanned();
    let listed = shop.listed(&["--from-block", "0"]);
    let found: Vec<_> = listed.iter().map(|payment| (&payment["tx_hash"], &payment["status"])).collect();
    assert_eq!(found, [(&json!(unknown), &json!("unknown_payer"))], "{listed:?}");
    assert_eq!(listed[0]["payer_address"], unlinked.address());
    let _ = shop.assigned(&unknown, &account.org_id, &["--credits", "5", "--reason", "sent half"]);
    assert_eq!(shop.balance(&account.api_key), "27");

    // It moves no native coin, so it cannot pay a plan in the native coin.
    let another = pay(&shop, &unlinked, 1);
    let refused = shop.top_up(&account.api_key, Kind::Native, &another, None).expect(400);
    assert_eq!(refused.error(), "payment_mismatch");
}
