//! Reorganisations after a payment was credited: claims and top-ups, spent and unspent, removed and included again.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::site::Site;
use serde_json::Value;

use crate::support::shop::{Kind, Shop, key_of};

/// Payments are credited after three blocks and final after twelve, and new accounts get no free credits.
fn shop(more: &str) -> Option<Shop> {
    let chain = Chain::setup().manual_mining().start()?;
    let urls = format!("'{}'", chain.url());
    let more = format!("{more}\n[signup]\nfree_credits = '0'\n");
    let token = chain.wallet().deploy_token("USDC", 6);
    Some(Shop::configured(&token, Site::verified(), chain, &urls, "confirmations = 3\nfinality = 12", &more))
}

/// Mines a block now and then, until the condition holds.
fn mine_until(shop: &Shop, what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(90), "{what}: {}", shop.server.log());
        shop.chain.mine(1);
        // Longer than the server's own interval, so that it polls in between.
        thread::sleep(Duration::from_millis(300));
    }
}

/// The operator's view of a payment.
fn recorded(shop: &Shop, hash: &str) -> Value {
    let records = shop.site.admin_json(&["payments", "records"]);
    let records = records["payments"].as_array().unwrap();
    records.iter().find(|record| record["tx_hash"] == hash).expect("the payment is listed").clone()
}

/// The kinds and descriptions of an account's entries, newest first, without usage.
fn entries(shop: &Shop, key: &str) -> Vec<(String, String)> {
    let activity = shop.server.client_with(key).get("/credits/usage").expect(200).json();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = activity["transactions"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["type"] != "usage")
        .map(|entry| (text(entry, "type"), text(entry, "description")))
        .collect()
}

/// A claim with just enough confirmations: its key and its transaction.
fn claimed(shop: &Shop, kind: Kind) -> (String, String) {
    let customer = shop.customer();
    let quote = shop.quote(kind, &customer.address());
    let hash = shop.pay(kind, &customer, quote.units);
    shop.chain.mine(3);
    (key_of(&shop.claim(&quote, &hash).expect(200)), hash)
}

#[test]
fn claim_is_reversed_with_its_payment_and_restored_with_it() {
    for kind in Kind::BOTH {
        let Some(shop) = shop("") else { return };
        let (key, hash) = claimed(&shop, kind);
        let _ = shop.server.client_with(&key).get("/mpp/ethPrice").expect(200);
        assert_eq!(recorded(&shop, &hash)["state"], "unsettled");
        let before = shop.balance(&key);
        let raw = shop.chain.raw(&hash);
        shop.chain.reorg(3);
        mine_until(&shop, "the payment is reversed", || shop.balance(&key) != before);

        let balance: f64 = shop.balance(&key).parse().unwrap();
        assert!(balance < 0.0, "one request was spent: {balance}");
        let refused = shop.server.client_with(&key).get("/mpp/ethPrice").expect(402);
        assert_eq!(refused.error(), "insufficient_credits");
        let (last, why) = entries(&shop, &key).remove(0);
        assert_eq!(last, "payment_reversed");
        assert!(why.contains("reorganisation") && why.contains(&hash), "{why}");
        let purchased = shop.server.client_with(&key).get("/credits/balance").expect(200);
        assert_eq!(purchased.member("total_credits_purchased"), "0");
        let config = shop.site.path("metering.toml");
        let listed = ["payments", "list", "--config", config.to_str().unwrap(), "--from-block", "0"];
        let listed = shop.site.admin_json(&listed);
        let reversed = listed["payments"].as_array().unwrap().iter().find(|payment| payment["tx_hash"] == *hash);
        assert_eq!(reversed.expect("the payment is listed")["state"], "reversed", "{listed}");
        shop.server.expect_log("a reorganisation removed a credited payment");
        shop.site.verify();

        // The same transaction, in another block.
        shop.chain.send_raw(&raw);
        mine_until(&shop, "the payment is restored", || shop.balance(&key) == before);
        assert_eq!(entries(&shop, &key)[0].0, "payment_restored");
        let _ = shop.server.client_with(&key).get("/mpp/ethPrice").expect(200);
        mine_until(&shop, "the payment is final", || recorded(&shop, &hash)["state"] == "final");
        shop.site.verify();
    }
}

#[test]
fn reversed_top_up_leaves_the_other_credits() {
    let Some(shop) = shop("") else { return };
    let customer = shop.customer();
    let quote = shop.quote(Kind::Token, &customer.address());
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    shop.chain.mine(15);
    let key = key_of(&shop.claim(&quote, &hash).expect(200));
    let topped_up = shop.pay(Kind::Token, &customer, Kind::Token.price());
    shop.chain.mine(3);
    let _ = shop.top_up(&key, Kind::Token, &topped_up, None).expect(200);
    assert_eq!(shop.balance(&key), "21");
    let raw = shop.chain.raw(&topped_up);
    shop.chain.reorg(3);
    mine_until(&shop, "the top-up is reversed", || shop.balance(&key) == "10.5");
    assert_eq!(recorded(&shop, &hash)["state"], "final", "the first payment had enough confirmations");
    let metrics = shop.client().get("/metrics").expect(200);
    assert!(metrics.text().contains("metering_reversed_payments{chain_id=\"31337\"} 1"), "{}", metrics.text());
    // A top-up with its transaction is refused while the payment is missing, and accepted once it is back.
    assert!(matches!(shop.top_up(&key, Kind::Token, &topped_up, None).status, 404 | 409));
    shop.chain.send_raw(&raw);
    mine_until(&shop, "the top-up is restored", || shop.balance(&key) == "21");
    let again = shop.top_up(&key, Kind::Token, &topped_up, None).expect(200);
    assert_eq!(again.member("already_credited"), "true");
    assert_eq!(shop.balance(&key), "21");
}

#[test]
fn payment_moved_to_another_block_stays_credited() {
    let Some(shop) = shop("") else { return };
    let (key, hash) = claimed(&shop, Kind::Token);
    let block = || recorded(&shop, &hash)["block_number"].as_u64().unwrap();
    let before = block();
    shop.chain.reorg_keeping(3, &[&hash]);
    mine_until(&shop, "the payment is recorded where it is", || block() != before);
    mine_until(&shop, "the payment is final", || recorded(&shop, &hash)["state"] == "final");
    assert_eq!(shop.balance(&key), "10.5");
    assert!(entries(&shop, &key).iter().all(|(kind, _)| kind != "payment_reversed"), "it was never missing for long");
}

#[test]
fn watcher_finds_payments_in_replacement_blocks() {
    let Some(shop) = shop("watch = true") else { return };
    let customer = shop.customer();
    let quote = shop.quote(Kind::Token, &customer.address());
    shop.chain.mine(4);
    let fork = shop.chain.snapshot();
    shop.chain.mine(8);
    // The watcher has scanned these blocks.
    let newest = shop.chain.block_number();
    let scanned = || {
        let metrics = shop.client().get("/metrics").expect(200).text();
        metrics.lines().any(|line| line == format!("metering_watched_block{{chain_id=\"31337\"}} {}", newest - 2))
    };
    let started = Instant::now();
    while !scanned() {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", shop.server.log());
        thread::sleep(Duration::from_millis(100));
    }
    shop.chain.revert(&fork);
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    shop.chain.mine(1);
    let number = shop.chain.mined(&hash)["blockNumber"].as_str().unwrap().to_owned();
    assert!(u64::from_str_radix(&number[2..], 16).unwrap() < newest - 2, "in a block below the scan");
    shop.chain.mine(9);
    let started = Instant::now();
    while shop.accounts() == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "the payment was missed: {}", shop.server.log());
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(recorded(&shop, &hash)["used_as"], "pay_signup");
}
