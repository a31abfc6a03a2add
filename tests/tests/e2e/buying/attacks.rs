//! False claims: each gets its documented response, and none changes anything.

use metering_core::{Clock, SystemClock};
use metering_tests::chain::account::Account;
use metering_tests::chain::{Chain, ChainSetup};

use crate::support::shop::{Kind, Quote, STARTER, Shop, claim};

/// A payment that does not match the quote: how it is made, and the response to a claim with it.
type Attack = (&'static str, fn(&Shop, &Account, &Quote) -> String, u16, &'static str);

fn attacks_with_tokens() -> Vec<Attack> {
    vec![
        ("a unit too little", |m, c, q| m.pay(Kind::Token, c, q.units - 1), 400, "payment_mismatch"),
        ("a unit too much", |m, c, q| m.pay(Kind::Token, c, q.units + 1), 400, "payment_mismatch"),
        ("the price without the tag", |m, c, _| m.pay(Kind::Token, c, STARTER), 400, "payment_mismatch"),
        ("native coin", |m, c, q| m.pay(Kind::Native, c, q.units), 400, "payment_mismatch"),
        ("another wallet", |m, _, q| m.pay(Kind::Token, &m.customer(), q.units), 400, "payer_mismatch"),
        (
            "somebody else paid",
            |m, c, q| m.pay_to(Kind::Token, c, &m.customer().address(), q.units),
            400,
            "payment_mismatch",
        ),
        ("another token", another_token, 400, "payment_mismatch"),
        ("a forged transfer", forged, 400, "payment_mismatch"),
        ("two transfers", two_transfers, 400, "payment_mismatch"),
        ("reverted", reverted, 400, "tx_reverted"),
        ("an unknown hash", |_, _, _| format!("0x{}", "ab".repeat(32)), 404, "tx_not_found"),
    ]
}

fn attacks_with_coins() -> Vec<Attack> {
    vec![
        ("a unit too little", |m, c, q| m.pay(Kind::Native, c, q.units - 1), 400, "payment_mismatch"),
        ("a unit too much", |m, c, q| m.pay(Kind::Native, c, q.units + 1), 400, "payment_mismatch"),
        ("a token", |m, c, _| m.pay(Kind::Token, c, STARTER), 400, "payment_mismatch"),
        ("another wallet", |m, _, q| m.pay(Kind::Native, &m.customer(), q.units), 400, "payer_mismatch"),
        (
            "somebody else paid",
            |m, c, q| m.pay_to(Kind::Native, c, &m.customer().address(), q.units),
            400,
            "payment_mismatch",
        ),
        ("with call data", with_data, 400, "payment_mismatch"),
        ("through a contract", through_a_contract, 400, "payment_mismatch"),
        ("reverted", reverted_coin, 400, "tx_reverted"),
    ]
}

fn another_token(shop: &Shop, customer: &Account, quote: &Quote) -> String {
    let token = shop.chain.wallet().deploy_token("USDC", 6);
    shop.chain.wallet().mint(&token, &customer.address(), quote.units);
    shop.chain.wallet().transfer(customer, &token, &shop.recipient.address(), quote.units)
}

/// A contract that emits a transfer of the right amount from the customer, and moves nothing.
fn forged(shop: &Shop, customer: &Account, quote: &Quote) -> String {
    let forger = shop.chain.wallet().deploy_forger();
    shop.chain.wallet().forge(customer, &forger, &customer.address(), &shop.recipient.address(), quote.units)
}

fn two_transfers(shop: &Shop, customer: &Account, quote: &Quote) -> String {
    let wallet = shop.chain.wallet();
    let batcher = wallet.deploy_batcher();
    wallet.approve(customer, &shop.token, &batcher, 2 * quote.units);
    let to = shop.recipient.address();
    wallet.transfer_twice(customer, &batcher, &shop.token, &to, quote.units, quote.units)
}

fn reverted(shop: &Shop, _: &Account, quote: &Quote) -> String {
    let poor = shop.chain.wallet().new_account();
    shop.chain.wallet().transfer_unsimulated(&poor, &shop.token, &shop.recipient.address(), quote.units)
}

fn with_data(shop: &Shop, customer: &Account, quote: &Quote) -> String {
    shop.chain.wallet().send_native_with_data(customer, &shop.recipient.address(), quote.units, "0x01")
}

fn through_a_contract(shop: &Shop, customer: &Account, quote: &Quote) -> String {
    let batcher = shop.chain.wallet().deploy_batcher();
    shop.chain.wallet().forward_native(customer, &batcher, &shop.recipient.address(), quote.units)
}

fn reverted_coin(shop: &Shop, customer: &Account, quote: &Quote) -> String {
    let reverter = shop.chain.wallet().deploy_reverter();
    shop.chain.wallet().send_native_unsimulated(customer, &reverter, quote.units)
}

#[test]
fn mismatched_payment_buys_nothing_and_honest_claim_succeeds() {
    let Some(shop) = Shop::open() else { return };
    for (kind, attacks) in [(Kind::Token, attacks_with_tokens()), (Kind::Native, attacks_with_coins())] {
        let customer = shop.customer();
        let quote = shop.quote(kind, &customer.address());
        let before = shop.accounts();
        for (what, attack, status, code) in attacks {
            let hash = attack(&shop, &customer, &quote);
            // A transaction that is still pending can be refused for another reason.
            if code != "tx_not_found" {
                let _ = shop.chain.mined(&hash);
            }
            let response = shop.claim(&quote, &hash);
            assert_eq!(
                (response.status, response.error().as_str()),
                (status, code),
                "{kind:?}, {what}: {}",
                response.text()
            );
            if code == "payment_mismatch" || code == "payer_mismatch" {
                assert!(
                    response.json()["expected"].is_string() && response.json()["found"].is_string(),
                    "{}",
                    response.text()
                );
            }
        }
        assert_eq!(shop.accounts(), before);
        let hash = shop.pay(kind, &customer, quote.units);
        let _ = shop.claim(&quote, &hash).expect(200);
    }
}

#[test]
fn transfer_from_counts_for_the_token_owner() {
    let Some(shop) = Shop::open() else { return };
    let wallet = shop.chain.wallet();
    let (owner, relayer) = (shop.customer(), shop.customer());
    let (quote, relayers) = (shop.quote(Kind::Token, &owner.address()), shop.quote(Kind::Token, &relayer.address()));
    wallet.approve(&owner, &shop.token, &relayer.address(), 10 * STARTER);
    let to = shop.recipient.address();
    let hash = wallet.transfer_from(&relayer, &shop.token, &owner.address(), &to, relayers.units);
    assert_eq!(shop.claim(&relayers, &hash).expect(400).error(), "payer_mismatch");
    let hash = wallet.transfer_from(&relayer, &shop.token, &owner.address(), &to, quote.units);
    let claimed = shop.claim(&quote, &hash).expect(200);
    let balance =
        shop.server.client_with(&crate::support::shop::key_of(&claimed)).get("/credits/balance").expect(200).json();
    assert_eq!(balance["payer_address"], owner.address());

    // A contract wallet pays like any other.
    let contract = wallet.deploy_contract_wallet(&relayer);
    wallet.mint(&shop.token, &contract, 10 * STARTER);
    let quote = shop.quote(Kind::Token, &contract);
    let hash = wallet.transfer_by_contract(&relayer, &contract, &shop.token, &to, quote.units);
    let _ = shop.claim(&quote, &hash).expect(200);
}

#[test]
fn a_token_that_takes_a_fee_does_not_pay_the_quote() {
    let Some(shop) = Shop::open() else { return };
    let wallet = shop.chain.wallet();
    let token = wallet.deploy_fee_token("FEE", 6);
    let plan = serde_json::json!([{"id": "fee", "chain_id": shop.chain.chain_id(), "token_symbol": "FEE",
        "payment_kind": "erc20", "credits": 1, "token_amount": "1", "token_contract": token, "token_decimals": 6,
        "label": "Fee"}]);
    let file = shop.site.write("fee.json", &plan.to_string());
    assert_eq!(shop.site.admin(&["plan", "import", file.to_str().unwrap()]).code, Some(0));
    let customer = shop.customer();
    wallet.mint(&token, &customer.address(), 100_000_000);
    let body = serde_json::json!({"agent_name": "a", "plan_id": "fee", "chain_id": shop.chain.chain_id(),
        "token_symbol": "FEE", "payer_address": customer.address()});
    let quote = shop.client().post("/signup/pay/quote", &body).expect(201).json();
    let (nonce, units) = (quote["signup_nonce"].as_str().unwrap(), quote["amount_atomic"].as_str().unwrap());
    let hash = wallet.transfer(&customer, &token, &shop.recipient.address(), units);
    assert_eq!(claim(&shop.client(), nonce, &hash).expect(400).error(), "payment_mismatch");
}

/// The block's own timestamp decides whether a payment is in time.
#[test]
fn payment_outside_the_quote_period_is_rejected() {
    const DAY: u64 = 24 * 60 * 60;
    let now = u64::try_from(SystemClock.now().unix_seconds()).unwrap();
    // offset of the chain's clock from the server's in seconds, status, code
    let table: [(i64, u16, &str); 2] =
        [(-600, 400, "payment_predates_quote"), (i64::try_from(8 * DAY).unwrap(), 410, "quote_expired")];
    for (offset, status, code) in table {
        let setup: ChainSetup = Chain::setup().genesis_time(now.checked_add_signed(offset).unwrap());
        let Some(shop) = Shop::with(setup, "1", "") else { return };
        let customer = shop.customer();
        let quote = shop.quote(Kind::Token, &customer.address());
        let hash = shop.pay(Kind::Token, &customer, quote.units);
        let response = shop.claim(&quote, &hash);
        assert_eq!((response.status, response.error().as_str()), (status, code), "{offset}: {}", response.text());
    }
}
