//! The watcher: unclaimed payments are credited anyway, once.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;

use crate::support::shop::{Kind, STARTER, Shop, key_of};

fn shop() -> Option<Shop> {
    Shop::with(Chain::setup(), "1", "watch = true\nwatch_from_block = 0")
}

/// Waits until there are `count` accounts.
fn wait_for_accounts(shop: &Shop, count: usize) {
    let started = Instant::now();
    while shop.accounts() < count {
        assert!(started.elapsed() < Duration::from_secs(60), "the watcher did not credit: {}", shop.server.log());
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn unclaimed_payment_opens_account_and_key_is_claimed_later() {
    for kind in Kind::BOTH {
        let Some(shop) = shop() else { return };
        let (claimer, rotator) = (shop.customer(), shop.customer());
        let quotes = [shop.quote(kind, &claimer.address()), shop.quote(kind, &rotator.address())];
        let hashes = [shop.pay(kind, &claimer, quotes[0].units), shop.pay(kind, &rotator, quotes[1].units)];
        wait_for_accounts(&shop, 2);

        let claimed = shop.claim(&quotes[0], &hashes[0]).expect(200);
        let purchased = shop.server.client_with(&key_of(&claimed)).get("/credits/balance").expect(200);
        assert_eq!(purchased.member("total_credits_purchased"), kind.credits());
        assert_eq!(shop.claim(&quotes[0], &hashes[0]).expect(409).error(), "already_claimed");

        let (nonce, message) = shop.challenge(&rotator.address());
        let signature = shop.chain.wallet().sign_message(&rotator, &message);
        let rotated = key_of(&shop.verify(&rotator.address(), &nonce, &signature).expect(200));
        assert_eq!(shop.claim(&quotes[1], &hashes[1]).expect(409).error(), "already_claimed");
        let _ = shop.server.client_with(&rotated).get("/mpp/ethPrice").expect(200);
        assert_eq!(shop.accounts(), 2);
        shop.site.verify();
    }
}

#[test]
fn linked_wallets_are_credited_and_unknown_ones_left_unassigned() {
    let Some(shop) = shop() else { return };
    let customer = shop.customer();
    let key = shop.signed_up(Kind::Token, &customer);
    let unlinked = shop.customer();
    let unclaimed = shop.pay(Kind::Token, &unlinked, STARTER);
    let hash = shop.pay(Kind::Token, &customer, STARTER);
    let started = Instant::now();
    while shop.balance(&key) != "23" {
        assert!(started.elapsed() < Duration::from_secs(60), "the watcher did not credit: {}", shop.server.log());
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(shop.top_up(&key, Kind::Token, &hash, None).expect(200).member("already_credited"), "true");

    let config = shop.site.path("metering.toml");
    let config = config.to_str().unwrap();
    let listed = shop.site.admin_json(&["payments", "list", "--config", config, "--from-block", "0"]).to_string();
    assert!(listed.contains(&unclaimed) && !listed.contains(&hash), "{listed}");
    let account = shop.site.account("1");
    let assign = [
        "payments",
        "assign",
        "--config",
        config,
        "--chain",
        "devnet",
        "--tx",
        &unclaimed,
        "--account",
        &account.org_id,
        "--plan",
        "starter",
    ];
    let assigned = shop.site.admin(&assign);
    assert_eq!(assigned.code, Some(0), "{assigned:?}");
    assert_eq!(shop.balance(&account.api_key), "11.5");
    let listed = shop.site.admin_json(&["payments", "list", "--config", config, "--from-block", "0"]).to_string();
    assert!(!listed.contains(&unclaimed), "{listed}");
    assert_eq!(shop.top_up(&key, Kind::Token, &unclaimed, None).expect(409).error(), "tx_already_used");
    shop.site.verify();
}

#[test]
fn restarted_watcher_catches_up() {
    let Some(shop) = shop() else { return };
    let customer = shop.customer();
    let quote = shop.quote(Kind::Native, &customer.address());
    let Shop { chain, site, server, token, recipient, .. } = shop;
    server.kill();
    let hash = chain.wallet().send_native(&customer, &recipient.address(), quote.units);
    let _ = chain.mined(&hash);
    chain.mine(700);
    let config = site.path("metering.toml");
    let server = site.server().args(["--config", config.to_str().unwrap()]).start();
    let started = Instant::now();
    let listed = || site.admin_json(&["account", "list"]).to_string();
    while !listed().contains(&customer.address()) {
        assert!(started.elapsed() < Duration::from_secs(60), "{} {token}", server.log());
        thread::sleep(Duration::from_millis(100));
    }
    let claimed = crate::support::shop::claim(&server.client(), &quote.nonce, &hash).expect(200);
    assert_eq!(claimed.member("credit_balance"), "6");
    site.verify();
}
