//! Topping up in a real browser, with a real chain: scenes of `tests/browser/buying.mjs` and `plans.mjs`.

use metering_tests::chain::Chain;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{account, play};
use crate::support::shop::{Kind, Shop};

const EXPLORER: &str = "https://explorer.example";

/// A shop whose accounts 3 and 4 have tokens, and the key of an account without a wallet.
fn shop(depth: &str, more: &str) -> Option<(Shop, Value)> {
    let shop = Shop::with(Chain::setup(), depth, more)?;
    for number in [3, 4] {
        let address = shop.chain.wallet().account(number).address();
        shop.chain.wallet().mint(&shop.token, &address, 1_000_000_000);
    }
    let key = account(&shop.site, "holder", "2");
    Some((shop, key))
}

fn checksummed(shop: &Shop, number: u32) -> String {
    shop.chain.wallet().account(number).checksummed().to_owned()
}

#[test]
fn one_of_two_wallets_pays_step_by_step() {
    let Some((shop, key)) = shop("3", &format!("explorer_url = '{EXPLORER}'")) else { return };
    let accounts = [checksummed(&shop, 3), checksummed(&shop, 4)];
    play(
        "buy",
        &shop.server,
        json!({"key": key, "node": shop.chain.url(), "accounts": accounts, "explorer": EXPLORER}),
    );
}

#[test]
fn payer_completes_a_top_up_without_the_accounts_key() {
    let Some((shop, key)) = shop("1", "") else { return };
    let payer = shop.chain.wallet().account(3);
    let hash = shop.pay(Kind::Token, &payer, Kind::Token.price());
    let key = key.as_str().unwrap();
    let refused = shop.top_up(key, Kind::Token, &hash, None).expect(403);
    let more = json!({
        "url": refused.json()["complete_url"], "node": shop.chain.url(), "payer": payer.checksummed(),
        "other": checksummed(&shop, 4),
    });
    play("complete", &shop.server, more);
    assert_eq!(shop.balance(key), "12.5");
}

#[test]
fn phone_pays_what_the_code_says_while_the_page_waits() {
    let Some((shop, key)) = shop("2", "watch = true") else { return };
    play("phone", &shop.server, json!({"key": key, "node": shop.chain.url(), "payer": checksummed(&shop, 4)}));
}

/// A shop without automatic blocks. Payments are credited after three blocks and final after twelve.
fn reorganising_shop() -> Option<(Shop, Value)> {
    let chain = Chain::setup().manual_mining().start()?;
    let urls = format!("'{}'", chain.url());
    let token = chain.wallet().deploy_token("USDC", 6);
    let depth = "confirmations = 3\nfinality = 12";
    let shop = Shop::configured(&token, Site::new(), chain, &urls, depth, "watch = true");
    shop.chain.wallet().mint(&shop.token, &shop.chain.wallet().account(4).address(), 1_000_000_000);
    shop.chain.mine(1);
    let key = account(&shop.site, "holder", "2");
    Some((shop, key))
}

#[test]
fn dropped_payment_returns_the_page_to_waiting() {
    let Some((shop, key)) = reorganising_shop() else { return };
    play("dropped", &shop.server, json!({"key": key, "node": shop.chain.url(), "payer": checksummed(&shop, 4)}));
}

#[test]
fn reversed_payment_is_shown_and_may_be_paid_again() {
    let Some((shop, key)) = reorganising_shop() else { return };
    play("reversal", &shop.server, json!({"key": key, "node": shop.chain.url(), "payer": checksummed(&shop, 4)}));
}

#[test]
fn expired_amount_is_replaced() {
    let Some((shop, key)) = shop("1", "") else { return };
    play("expiry", &shop.server, json!({"key": key}));
}

#[test]
fn contract_wallet_is_stopped_before_money_moves() {
    let Some((shop, key)) = shop("1", "") else { return };
    let more = json!({"key": key, "node": shop.chain.url(), "account": checksummed(&shop, 3)});
    play("contractWallet", &shop.server, more);
}

#[test]
fn keyboard_alone_buys_a_plan() {
    let Some((shop, key)) = shop("1", "") else { return };
    let more = json!({"key": key, "node": shop.chain.url(), "account": checksummed(&shop, 3)});
    play("buyByKeyboard", &shop.server, more);
}

#[test]
fn chosen_plan_is_kept_until_its_payment_opens() {
    let Some((shop, key)) = shop("1", "") else { return };
    play("buyBeforeSignUp", &shop.server, json!({"key": key}));
}

#[test]
fn buying_is_accessible_in_both_schemes_and_widths() {
    let Some((shop, key)) = shop("1", "") else { return };
    let more = json!({"key": key, "node": shop.chain.url(), "account": checksummed(&shop, 3)});
    play("buyingLooks", &shop.server, more);
}
