//! A chain whose transactions differ from Ethereum's: anvil in its Tempo mode, and payments of type `0x76`, sent by an
//! independent library.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::market::{Kind, Market, STARTER, key_of};
use crate::market_settings::until;

/// The token that every account of a Tempo test network has plenty of.
const PATH_USD: &str = "0x20c0000000000000000000000000000000000000";

/// A watched market on a Tempo chain; its plan `coin` makes the watcher read whole blocks.
fn market() -> Option<Market> {
    let chain = Chain::setup().chain_id(42_431).arg("--network", "tempo").block_time(1).start()?;
    let urls = format!("'{}'", chain.url());
    let market = Market::selling_for(PATH_USD, Site::new(), chain, &urls, "1", "watch = true\nwatch_from_block = 0");
    Some(market.patient())
}

fn pay(market: &Market, from: &Account, units: u128) -> String {
    let hash = market.chain.wallet().transfer_by_calls(from, PATH_USD, &market.recipient.address(), units);
    let _ = market.chain.mined(&hash);
    let sent = market.chain.rpc("eth_getTransactionByHash", json!([hash]));
    assert_eq!((&sent["type"], &sent["to"], &sent["value"]), (&json!("0x76"), &Value::Null, &Value::Null), "{sent}");
    hash
}

#[test]
fn payments_by_lists_of_calls_are_bought_with_watched_listed_and_assigned() {
    let Some(market) = market() else { return };
    let wallet = market.chain.wallet();
    let (sponsor, buyer, stranger) = (wallet.account(1), wallet.account(2), wallet.account(3));

    // A top-up from a wallet, which is then linked to the account.
    let account = market.site.account("1");
    let first = pay(&market, &sponsor, STARTER);
    let refused = market.top_up(&account.api_key, Kind::Token, &first, None).expect(403);
    assert_eq!(refused.error(), "payer_proof_required");
    let signature = wallet.sign_message(&sponsor, refused.json()["message"].as_str().unwrap());
    let _ = market.top_up(&account.api_key, Kind::Token, &first, Some(&signature)).expect(200);
    assert_eq!(market.balance(&account.api_key), "11.5");

    // A signup.
    let quote = market.quote(Kind::Token, &buyer.address());
    let paid = pay(&market, &buyer, quote.units);
    let key = key_of(&market.claim(&quote, &paid).expect(200));
    assert_eq!(market.balance(&key), "12.5");

    // The watcher continues after them, and credits a payment from a linked wallet.
    let _ = pay(&market, &sponsor, STARTER);
    until("the watcher credits the linked account", || market.balance(&account.api_key) == "22");
    market.watched();

    // An unclaimed payment is listed, and can be assigned.
    let unknown = pay(&market, &stranger, STARTER / 2);
    market.watched();
    let listed = market.listed(&["--from-block", "0"]);
    let found: Vec<_> = listed.iter().map(|payment| (&payment["tx_hash"], &payment["status"])).collect();
    assert_eq!(found, [(&json!(unknown), &json!("unknown_payer"))], "{listed:?}");
    assert_eq!(listed[0]["payer_address"], stranger.address());
    let _ = market.assigned(&unknown, &account.org_id, &["--credits", "5", "--reason", "sent half"]);
    assert_eq!(market.balance(&account.api_key), "27");

    // It moves no native coin, so it cannot pay a plan in the native coin.
    let another = pay(&market, &stranger, 1);
    let refused = market.top_up(&account.api_key, Kind::Native, &another, None).expect(400);
    assert_eq!(refused.error(), "payment_mismatch");
    market.site.verify();
}
