//! Payments that nobody can read must cost their sender, and nobody else.

use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use serde_json::{Value, json};

use crate::market::{Kind, Market, STARTER, claim};
use crate::market_settings::{retry_after, until};

/// Enough empty logs for a receipt of more than 16 MiB.
const LOGS: u32 = 50_000;

const WATCH: &str = "watch = true\nwatch_from_block = 0";

impl Market {
    /// A payment of one unit whose receipt is too large to be read.
    fn pay_unreadably(&self, attacker: &Account) -> String {
        let wallet = self.chain.wallet();
        let flooder = wallet.deploy_flooder();
        wallet.approve(attacker, &self.token, &flooder, STARTER);
        let hash = wallet.transfer_flooding(attacker, &flooder, &self.token, &self.recipient.address(), 1, LOGS);
        let _ = self.chain.mined(&hash);
        hash
    }

    /// What `payments list` says cannot be read.
    fn unreadable(&self) -> Vec<Value> {
        let ran = self.payments("list", &["--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        document["unreadable"].as_array().unwrap().clone()
    }
}

#[test]
fn a_receipt_that_is_too_large_stops_nobody_else() {
    let Some(mut market) = Market::with(Chain::setup().hardfork("cancun"), "1", WATCH) else { return };
    let (attacker, customer) = (market.customer(), market.customer());
    let account = market.site.account("1");
    let quote = market.quote(Kind::Token, &customer.address());
    let flood = market.pay_unreadably(&attacker);
    let block = market.chain.receipt(&flood).unwrap()["blockNumber"].clone();
    let paid = market.pay(Kind::Token, &customer, quote.units);
    let _ = market.chain.mined(&paid);

    // The watcher goes past it and serves the payment behind it.
    market.watched();
    until("the next payment is credited", || market.accounts() == 2);
    let count = "metering_watched_payments_total{chain_id=\"31337\",outcome=\"unreadable\"}";
    assert_eq!(market.figure(count), Some(1));
    let _ = market.client().get("/ready").expect(200);

    // The operator learns what it is.
    let [listed] = &*market.unreadable() else { panic!("{:?}", market.unreadable()) };
    assert_eq!((&listed["chain_id"], &listed["tx_hash"]), (&json!(31_337), &json!(flood)));
    assert_eq!(format!("0x{:x}", listed["block_number"].as_u64().unwrap()), block.as_str().unwrap());
    assert_eq!(listed["attempts"], 1);
    assert!(listed["next_attempt_at"].is_string(), "{listed}");
    assert!(listed["reason"].as_str().unwrap().contains("16777216"), "{listed}");
    let lines = market.server.log().lines().filter(|line| line.contains(&flood)).count();
    assert_eq!(lines, 1, "it is logged once");

    // Its sender gets a response at once, and nothing for it.
    let begun = Instant::now();
    let refused = market.top_up(&account.api_key, Kind::Token, &flood, None).expect(502);
    assert_eq!(refused.error(), "rpc_error");
    let _ = retry_after(&refused);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(market.balance(&account.api_key), "1");

    // What is recorded outlives the server, which does not begin again at that block.
    market.reopen(&[]);
    market.watched();
    assert_eq!(market.unreadable().len(), 1);
    market.site.verify();
}

#[test]
fn a_chain_that_makes_no_progress_shows_in_ready_and_once_in_the_log() {
    let Some(chain) = Chain::setup().manual_mining().start() else { return };
    let url = format!("'{}'", chain.url());
    let mut market = Market::on(chain, &url, "1", WATCH);
    market.reopen(&[("METERING_PAYMENTS__STALLED_AFTER", "2s"), ("METERING_PAYMENTS__WATCH_INTERVAL", "50ms")]);
    market.chain.mine(1);
    market.watched();
    let _ = market.client().get("/ready").expect(200);
    until("the chain counts as stalled", || market.client().get("/ready").status == 503);
    let refused = market.client().get("/ready").expect(503);
    assert_eq!(refused.error(), "chain_stalled");
    let _ = retry_after(&refused);
    assert_eq!(market.client().get("/health").status, 200);
    // Rounds go on, and the log does not repeat it.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(market.server.log().matches("makes no progress").count(), 1, "{}", market.server.log());
    market.chain.mine(1);
    until("it goes on", || market.client().get("/ready").status == 200);

    // A development chain makes no blocks by itself.
    market.reopen(&[("METERING_PAYMENTS__STALLED_AFTER", "off"), ("METERING_PAYMENTS__WATCH_INTERVAL", "50ms")]);
    std::thread::sleep(Duration::from_secs(3));
    let _ = market.client().get("/ready").expect(200);
}

#[test]
fn a_pending_transaction_that_cannot_pay_is_refused_at_once() {
    let Some(chain) = Chain::setup().manual_mining().start() else { return };
    let url = format!("'{}'", chain.url());
    let market = Market::on(chain, &url, "1", "").patient();
    let (customer, somebody) = (market.customer(), market.customer());
    let quote = market.quote(Kind::Token, &customer.address());
    let hopeless = market.chain.wallet().send_native(&customer, &somebody.address(), 5);
    let begun = Instant::now();
    assert_eq!(market.claim(&quote, &hopeless).expect(400).error(), "payment_mismatch");
    let elsewhere = market.pay_to(Kind::Token, &customer, &somebody.address(), quote.units);
    assert_eq!(market.claim(&quote, &elsewhere).expect(400).error(), "payment_mismatch");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());

    // One that may still pay is waited for, by two requests of a quote; a third is told at once.
    let right = market.pay(Kind::Token, &customer, quote.units);
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let (client, nonce, tx) = (market.client(), quote.nonce.clone(), right.clone());
            std::thread::spawn(move || claim(&client, &nonce, &tx))
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    assert_eq!(market.claim(&quote, &right).expect(409).error(), "payment_unconfirmed");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    market.chain.mine(2);
    let mut codes: Vec<_> = waiting.into_iter().map(|claim| claim.join().unwrap().status).collect();
    codes.sort_unstable();
    assert!(codes == [200, 200] || codes == [200, 409], "{codes:?}");
    market.site.verify();
}
