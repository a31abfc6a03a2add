//! Reorganisations after a payment was credited: claims and top-ups, spent and unspent, removed and included again.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::site::Site;
use serde_json::Value;

use crate::market::{Kind, Market, key_of};

/// Payments are credited after three blocks and final after twelve, and new accounts get no free credits.
fn market(more: &str) -> Option<Market> {
    let chain = Chain::setup().manual_mining().start()?;
    let urls = format!("'{}'", chain.url());
    let more = format!("{more}\n[signup]\nfree_credits = '0'\n");
    let token = chain.wallet().deploy_token("USDC", 6);
    Some(Market::configured(&token, Site::new(), chain, &urls, "confirmations = 3\nfinality = 12", &more))
}

/// Mines a block now and then, until the condition holds.
fn mine_until(market: &Market, what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {}", market.server.log());
        market.chain.mine(1);
        // Longer than the server's own interval, so that it polls in between.
        thread::sleep(Duration::from_millis(300));
    }
}

/// The operator's view of a payment.
fn recorded(market: &Market, hash: &str) -> Value {
    let records = market.site.admin_json(&["payments", "records"]);
    let records = records["payments"].as_array().unwrap();
    records.iter().find(|record| record["tx_hash"] == hash).expect("the payment is listed").clone()
}

/// The kinds and descriptions of an account's entries, newest first, without usage.
fn entries(market: &Market, key: &str) -> Vec<(String, String)> {
    let activity = market.server.client_with(key).get("/credits/usage").expect(200).json();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = activity["transactions"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["type"] != "usage")
        .map(|entry| (text(entry, "type"), text(entry, "description")))
        .collect()
}

/// A claim with just enough confirmations: its key and its transaction.
fn claimed(market: &Market, kind: Kind) -> (String, String) {
    let customer = market.customer();
    let quote = market.quote(kind, &customer.address());
    let hash = market.pay(kind, &customer, quote.units);
    market.chain.mine(3);
    (key_of(&market.claim(&quote, &hash).expect(200)), hash)
}

#[test]
fn a_claim_is_reversed_when_its_payment_is_gone_and_credited_again_when_it_is_back() {
    for kind in Kind::BOTH {
        let Some(market) = market("") else { return };
        let (key, hash) = claimed(&market, kind);
        let _ = market.server.client_with(&key).get("/mpp/ethPrice").expect(200);
        assert_eq!(recorded(&market, &hash)["state"], "unsettled");
        let before = market.balance(&key);
        let raw = market.chain.raw(&hash);
        market.chain.reorg(3);
        mine_until(&market, "the payment is reversed", || market.balance(&key) != before);

        let balance: f64 = market.balance(&key).parse().unwrap();
        assert!(balance < 0.0, "one request was spent: {balance}");
        let refused = market.server.client_with(&key).get("/mpp/ethPrice").expect(402);
        assert_eq!(refused.error(), "insufficient_credits");
        let (last, why) = entries(&market, &key).remove(0);
        assert_eq!(last, "payment_reversed");
        assert!(why.contains("reorganisation") && why.contains(&hash), "{why}");
        let purchased = market.server.client_with(&key).get("/credits/balance").expect(200);
        assert_eq!(purchased.member("total_credits_purchased"), "0");
        let config = market.site.path("metering.toml");
        let listed = ["payments", "list", "--config", config.to_str().unwrap(), "--from-block", "0"];
        let listed = market.site.admin_json(&listed);
        let shown = listed["payments"].as_array().unwrap().iter().find(|payment| payment["tx_hash"] == *hash);
        assert_eq!(shown.expect("the payment is listed")["state"], "reversed", "{listed}");
        assert!(market.server.log().contains("a reorganisation removed a credited payment"));
        market.site.verify();

        // The same transaction, in another block.
        market.chain.send_raw(&raw);
        mine_until(&market, "the payment is restored", || market.balance(&key) == before);
        assert_eq!(entries(&market, &key)[0].0, "payment_restored");
        let _ = market.server.client_with(&key).get("/mpp/ethPrice").expect(200);
        mine_until(&market, "the payment is final", || recorded(&market, &hash)["state"] == "final");
        market.site.verify();
    }
}

#[test]
fn a_top_up_is_reversed_and_the_rest_of_the_balance_stays() {
    let Some(market) = market("") else { return };
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(15);
    let key = key_of(&market.claim(&quote, &hash).expect(200));
    let topped_up = market.pay(Kind::Token, &customer, Kind::Token.price());
    market.chain.mine(3);
    let _ = market.top_up(&key, Kind::Token, &topped_up, None).expect(200);
    assert_eq!(market.balance(&key), "21");
    let raw = market.chain.raw(&topped_up);
    market.chain.reorg(3);
    mine_until(&market, "the top-up is reversed", || market.balance(&key) == "10.5");
    assert_eq!(recorded(&market, &hash)["state"], "final", "the first payment had enough confirmations");
    let metrics = market.client().get("/metrics").expect(200);
    assert!(metrics.text().contains("metering_reversed_payments{chain_id=\"31337\"} 1"), "{}", metrics.text());
    // A top-up with its transaction is refused while the payment is missing, and accepted once it is back.
    assert!(matches!(market.top_up(&key, Kind::Token, &topped_up, None).status, 404 | 409));
    market.chain.send_raw(&raw);
    mine_until(&market, "the top-up is restored", || market.balance(&key) == "21");
    let again = market.top_up(&key, Kind::Token, &topped_up, None).expect(200);
    assert_eq!(again.member("already_credited"), "true");
    assert_eq!(market.balance(&key), "21");
    market.site.verify();
}

#[test]
fn a_payment_that_only_moves_to_another_block_stays_credited() {
    let Some(market) = market("") else { return };
    let (key, hash) = claimed(&market, Kind::Token);
    let block = || recorded(&market, &hash)["block_number"].as_u64().unwrap();
    let before = block();
    market.chain.reorg_keeping(3, &[&hash]);
    mine_until(&market, "the payment is recorded where it is", || block() != before);
    mine_until(&market, "the payment is final", || recorded(&market, &hash)["state"] == "final");
    assert_eq!(market.balance(&key), "10.5");
    assert!(entries(&market, &key).iter().all(|(kind, _)| kind != "payment_reversed"), "it was never missing for long");
    market.site.verify();
}

#[test]
fn the_watcher_misses_no_payment_in_blocks_that_replace_scanned_ones() {
    let Some(market) = market("watch = true") else { return };
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    market.chain.mine(4);
    let fork = market.chain.snapshot();
    market.chain.mine(8);
    // The watcher has scanned these blocks.
    let newest = market.chain.block_number();
    let scanned = || {
        let metrics = market.client().get("/metrics").expect(200).text();
        metrics.lines().any(|line| line == format!("metering_watched_block{{chain_id=\"31337\"}} {}", newest - 2))
    };
    let begun = Instant::now();
    while !scanned() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", market.server.log());
        thread::sleep(Duration::from_millis(100));
    }
    market.chain.revert(&fork);
    let hash = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(1);
    let number = market.chain.mined(&hash)["blockNumber"].as_str().unwrap().to_owned();
    assert!(u64::from_str_radix(&number[2..], 16).unwrap() < newest - 2, "in a block below the scan");
    market.chain.mine(9);
    let begun = Instant::now();
    while market.accounts() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the payment was missed: {}", market.server.log());
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(recorded(&market, &hash)["used_as"], "pay_signup");
    market.site.verify();
}
