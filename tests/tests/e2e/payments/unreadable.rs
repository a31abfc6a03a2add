//! Unreadable payments must cost only their sender.

use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use serde_json::{Value, json};

use crate::support::shop::{Kind, STARTER, Shop};
use crate::support::wait::until;
use crate::support::wire::retry_after;

/// Enough empty logs for a receipt of more than 16 MiB.
const LOGS: u32 = 50_000;

const WATCH: &str = "watch = true\nwatch_from_block = 0";

impl Shop {
    /// A payment of one unit whose receipt is too large to be read.
    fn pay_with_oversized_receipt(&self, attacker: &Account) -> String {
        let wallet = self.chain.wallet();
        let flooder = wallet.deploy_flooder();
        wallet.approve(attacker, &self.token, &flooder, STARTER);
        let hash = wallet.transfer_flooding(attacker, &flooder, &self.token, &self.recipient.address(), 1, LOGS);
        let _ = self.chain.mined(&hash);
        hash
    }

    /// The transactions that `payments list` reports as unreadable.
    fn unreadable(&self) -> Vec<Value> {
        let output = self.payments("list", &["--json"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        document["unreadable"].as_array().unwrap().clone()
    }
}

#[test]
fn oversized_receipt_blocks_no_other_payment() {
    let Some(mut shop) = Shop::with(Chain::setup().hardfork("cancun"), "1", WATCH) else { return };
    let (attacker, customer) = (shop.customer(), shop.customer());
    let account = shop.site.account("1");
    let quote = shop.quote(Kind::Token, &customer.address());
    let flood = shop.pay_with_oversized_receipt(&attacker);
    let block = shop.chain.receipt(&flood).unwrap()["blockNumber"].clone();
    let paid = shop.pay(Kind::Token, &customer, quote.units);
    let _ = shop.chain.mined(&paid);

    // The watcher goes past it and serves the payment behind it.
    shop.wait_until_scanned();
    until("the next payment is credited", || shop.accounts() == 2);
    let count = "metering_watched_payments_total{chain_id=\"31337\",outcome=\"unreadable\"}";
    assert_eq!(shop.metric(count), Some(1));
    let _ = shop.client().get("/ready").expect(200);

    // The operator is notified of the cause.
    let [listed] = &*shop.unreadable() else { panic!("{:?}", shop.unreadable()) };
    assert_eq!((&listed["chain_id"], &listed["tx_hash"]), (&json!(31_337), &json!(flood)));
    assert_eq!(format!("0x{:x}", listed["block_number"].as_u64().unwrap()), block.as_str().unwrap());
    assert_eq!(listed["attempts"], 1);
    assert!(listed["next_attempt_at"].is_string(), "{listed}");
    assert!(listed["reason"].as_str().unwrap().contains("16777216"), "{listed}");
    let lines = shop.server.log().lines().filter(|line| line.contains(&flood)).count();
    assert_eq!(lines, 1, "it is logged once");

    // Its sender gets a response immediately, and no credits.
    let started = Instant::now();
    let refused = shop.top_up(&account.api_key, Kind::Token, &flood, None).expect(502);
    assert_eq!(refused.error(), "rpc_error");
    let _ = retry_after(&refused);
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
    assert_eq!(shop.balance(&account.api_key), "1");

    // The record outlives the server, which does not restart its scan at that block.
    shop.restart_with(&[]);
    shop.wait_until_scanned();
    assert_eq!(shop.unreadable().len(), 1);
}

#[test]
fn stalled_chain_fails_ready_and_is_logged_once() {
    let Some(chain) = Chain::setup().manual_mining().start() else { return };
    let url = format!("'{}'", chain.url());
    let mut shop = Shop::on(chain, &url, "1", WATCH);
    shop.restart_with(&[("METERING_PAYMENTS__STALLED_AFTER", "2s"), ("METERING_PAYMENTS__WATCH_INTERVAL", "50ms")]);
    shop.chain.mine(1);
    shop.wait_until_scanned();
    let _ = shop.client().get("/ready").expect(200);
    until("the chain counts as stalled", || shop.client().get("/ready").status == 503);
    let refused = shop.client().get("/ready").expect(503);
    assert_eq!(refused.error(), "chain_stalled");
    let _ = retry_after(&refused);
    assert_eq!(shop.client().get("/health").status, 200);
    // Rounds continue, and the log does not repeat it.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(shop.server.log().matches("makes no progress").count(), 1, "{}", shop.server.log());
    shop.chain.mine(1);
    until("it goes on", || shop.client().get("/ready").status == 200);

    // A development chain makes no blocks by itself.
    shop.restart_with(&[("METERING_PAYMENTS__STALLED_AFTER", "off"), ("METERING_PAYMENTS__WATCH_INTERVAL", "50ms")]);
    std::thread::sleep(Duration::from_secs(3));
    let _ = shop.client().get("/ready").expect(200);
}
