//! The watcher: unclaimed payments are credited anyway, once.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;

use crate::market::{Kind, Market, STARTER, key_of};

fn market() -> Option<Market> {
    Market::with(Chain::setup(), "1", "watch = true\nwatch_from_block = 0")
}

/// Waits until there are `count` accounts.
fn wait_for_accounts(market: &Market, count: usize) {
    let begun = Instant::now();
    while market.accounts() < count {
        assert!(begun.elapsed() < Duration::from_secs(20), "the watcher did not credit: {}", market.server.log());
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_payment_whose_client_died_becomes_an_account_and_the_key_comes_later() {
    for kind in Kind::BOTH {
        let Some(market) = market() else { return };
        let (claimer, rotator) = (market.customer(), market.customer());
        let quotes = [market.quote(kind, &claimer.address()), market.quote(kind, &rotator.address())];
        let hashes = [market.pay(kind, &claimer, quotes[0].units), market.pay(kind, &rotator, quotes[1].units)];
        wait_for_accounts(&market, 2);

        let claimed = market.claim(&quotes[0], &hashes[0]).expect(200);
        let purchased = market.server.client_with(&key_of(&claimed)).get("/credits/balance").expect(200);
        assert_eq!(purchased.member("total_credits_purchased"), kind.credits());
        assert_eq!(market.claim(&quotes[0], &hashes[0]).expect(409).error(), "already_claimed");

        let (nonce, message) = market.challenge(&rotator.address());
        let signature = market.chain.wallet().sign_message(&rotator, &message);
        let rotated = key_of(&market.verify(&rotator.address(), &nonce, &signature).expect(200));
        assert_eq!(market.claim(&quotes[1], &hashes[1]).expect(409).error(), "already_claimed");
        let _ = market.server.client_with(&rotated).get("/mpp/ethPrice").expect(200);
        assert_eq!(market.accounts(), 2);
        market.site.verify();
    }
}

#[test]
fn known_wallets_are_credited_and_strangers_left_to_the_operator() {
    let Some(market) = market() else { return };
    let customer = market.customer();
    let key = market.signed_up(Kind::Token, &customer);
    let stranger = market.customer();
    let left = market.pay(Kind::Token, &stranger, STARTER);
    let hash = market.pay(Kind::Token, &customer, STARTER);
    let begun = Instant::now();
    while market.balance(&key) != "23" {
        assert!(begun.elapsed() < Duration::from_secs(20), "the watcher did not credit: {}", market.server.log());
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(market.top_up(&key, Kind::Token, &hash, None).expect(200).member("already_credited"), "true");

    let config = market.site.path("metering.toml");
    let config = config.to_str().unwrap();
    let listed = market.site.admin_json(&["payments", "list", "--config", config, "--from-block", "0"]).to_string();
    assert!(listed.contains(&left) && !listed.contains(&hash), "{listed}");
    let account = market.site.account("1");
    let assign = [
        "payments",
        "assign",
        "--config",
        config,
        "--chain",
        "devnet",
        "--tx",
        &left,
        "--account",
        &account.org_id,
        "--plan",
        "starter",
    ];
    let assigned = market.site.admin(&assign);
    assert_eq!(assigned.code, Some(0), "{assigned:?}");
    assert_eq!(market.balance(&account.api_key), "11.5");
    let listed = market.site.admin_json(&["payments", "list", "--config", config, "--from-block", "0"]).to_string();
    assert!(!listed.contains(&left), "{listed}");
    assert_eq!(market.top_up(&key, Kind::Token, &left, None).expect(409).error(), "tx_already_used");
    market.site.verify();
}

#[test]
fn a_server_that_was_down_catches_up() {
    let Some(market) = market() else { return };
    let customer = market.customer();
    let quote = market.quote(Kind::Native, &customer.address());
    let Market { chain, site, server, token, recipient, .. } = market;
    server.kill();
    let hash = chain.wallet().send_native(&customer, &recipient.address(), quote.units);
    let _ = chain.mined(&hash);
    chain.mine(700);
    let config = site.path("metering.toml");
    let server = site.server().args(["--config", config.to_str().unwrap()]).start();
    let begun = Instant::now();
    let listed = || site.admin_json(&["account", "list"]).to_string();
    while !listed().contains(&customer.address()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} {token}", server.log());
        thread::sleep(Duration::from_millis(100));
    }
    let claimed = crate::market::claim(&server.client(), &quote.nonce, &hash).expect(200);
    assert_eq!(claimed.member("credit_balance"), "6");
    site.verify();
}
