//! Paying by signature in a real browser, with a real chain: scenes of `tests/browser/signing.mjs`.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::USDC;
use serde_json::{Value, json};

use super::{account, play, with_browser};
use crate::x402::market::{Market, Terms, chain};

/// The payer's initial funds, in units of USDC: a dollar.
const PURSE: u128 = 1_000_000;

/// A market whose requests wait a second for their payments, a payer whose wallet signs by itself, and the key of an
/// account without credits.
fn market() -> Option<(Market, Account, Value)> {
    if !with_browser() {
        return None;
    }
    let market = Market::on(chain(Chain::setup())?, &Terms { more: "wait = '1s'\n".to_owned(), ..Terms::default() });
    market.wait_for_offers();
    let wallet = market.chain.wallet();
    let payer = wallet.account(3);
    wallet.mint(USDC, &payer.address(), PURSE);
    let key = account(&market.site, "holder", "0");
    Some((market, payer, key))
}

#[test]
fn wallet_signs_and_the_service_pays_the_gas() {
    let Some((market, payer, key)) = market() else { return };
    let poor = market.chain.wallet().account(4);
    let more = json!({
        "key": key, "node": market.chain.url(), "account": payer.checksummed(), "poor": poor.checksummed(),
    });
    play("signature", &market.server, more);
    market.assert_paid(&payer, 550_000);
}

#[test]
fn signature_that_is_pending_is_never_paid_twice() {
    let Some((market, payer, key)) = market() else { return };
    let more = json!({"key": key, "node": market.chain.url(), "account": payer.checksummed()});
    play("pendingSignature", &market.server, more);
    market.assert_paid(&payer, 50_000);
}

#[test]
fn refused_signature_takes_nothing_and_another_account_gets_nothing() {
    let Some((market, payer, key)) = market() else { return };
    let other = account(&market.site, "other", "0");
    let more = json!({"key": key, "other": other, "node": market.chain.url(), "account": payer.checksummed()});
    play("refusedSignature", &market.server, more);
    market.assert_paid(&payer, 50_000);
}

#[test]
fn paying_by_signature_is_accessible_in_both_schemes_and_widths() {
    let Some((market, payer, key)) = market() else { return };
    let plan = json!({
        "id": "starter", "chain_id": 84_532, "token_symbol": "USDC", "payment_kind": "erc20",
        "credits": 10, "bonus_credits": 0.5, "token_amount": "5", "token_contract": USDC, "token_decimals": 6,
        "label": "Starter", "description": "For trying it out.",
    });
    let plans = market.site.write("plans.json", &json!([plan]).to_string());
    let imported = market.site.admin(&["plan", "import", plans.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let more = json!({"key": key, "node": market.chain.url(), "account": payer.checksummed()});
    play("signingLooks", &market.server, more);
    market.assert_paid(&payer, 0);
}
