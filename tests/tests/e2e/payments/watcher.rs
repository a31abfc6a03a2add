//! The watcher: linked wallets, crashes, several servers, racing claims, and a chain that cannot be read.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};

use crate::support::shop::{Kind, Quote, STARTER, Shop, claim, key_of};
use crate::support::wait::until;

const WATCH: &str = "watch = true\nwatch_from_block = 0";

/// A customer who paid their quote.
struct Paid {
    kind: Kind,
    customer: Account,
    quote: Quote,
    hash: String,
}

fn pay(shop: &Shop, kind: Kind) -> Paid {
    let customer = shop.customer();
    let quote = shop.quote(kind, &customer.address());
    let hash = shop.pay(kind, &customer, quote.units);
    let _ = shop.chain.mined(&hash);
    Paid { kind, customer, quote, hash }
}

/// Asserts that each payment created one account with its plan's and the free credits, and gives out its key once.
fn assert_one_account_each(shop: &Shop, paid: &[Paid]) {
    let [accounts, records] = shop.books();
    let (accounts, records) = (accounts["accounts"].as_array().unwrap(), records["payments"].as_array().unwrap());
    assert_eq!((accounts.len(), records.len()), (paid.len(), paid.len()));
    for Paid { kind, customer, quote, hash } in paid {
        let balance = if *kind == Kind::Token { "12.5" } else { "6" };
        let made: Vec<_> = accounts.iter().filter(|found| found["payer_address"] == customer.address()).collect();
        let recorded: Vec<_> = records.iter().filter(|found| found["tx_hash"] == *hash).collect();
        let ([made], [recorded]) = (made.as_slice(), recorded.as_slice()) else { panic!("{made:?} {recorded:?}") };
        assert_eq!((&recorded["org_id"], &recorded["used_as"]), (&made["org_id"], &"pay_signup".into()));
        assert_eq!(made["credit_balance"].to_string(), balance);
        let key = key_of(&shop.claim(quote, hash).expect(200));
        assert_eq!(shop.balance(&key), balance);
        assert_eq!(shop.claim(quote, hash).expect(409).error(), "already_claimed");
    }
    assert_eq!(shop.accounts(), paid.len());
}

#[test]
fn payment_is_credited_to_the_linked_account() {
    let Some(shop) = Shop::with(Chain::setup(), "1", WATCH) else { return };
    let wallet = shop.chain.wallet();
    let (one, other) = (shop.site.account("1").api_key, shop.site.account("1").api_key);
    let (sponsor, ambiguous, unlinked) = (shop.customer(), shop.customer(), shop.customer());
    for (key, payer) in [(&one, &sponsor), (&one, &ambiguous), (&other, &ambiguous)] {
        let hash = shop.pay(Kind::Token, payer, STARTER);
        let message = shop.top_up(key, Kind::Token, &hash, None).expect(403).json()["message"].clone();
        let signature = wallet.sign_message(payer, message.as_str().unwrap());
        let _ = shop.top_up(key, Kind::Token, &hash, Some(&signature)).expect(200);
    }
    shop.wait_until_scanned();
    assert_eq!((shop.balance(&one), shop.balance(&other)), ("22".to_owned(), "11.5".to_owned()));
    let left = || shop.metric("metering_watched_payments_total{chain_id=\"31337\",outcome=\"left\"}");
    // The watcher may have seen the first payments before their signatures came.
    let left_before = left().unwrap();

    let credited = [shop.pay(Kind::Token, &sponsor, STARTER), shop.pay(Kind::Token, &sponsor, STARTER + 1_234)];
    let not = [
        ("from a wallet linked to two accounts", shop.pay(Kind::Token, &ambiguous, STARTER)),
        ("of no plan's price", shop.pay(Kind::Token, &sponsor, 2 * STARTER)),
        ("of too little", shop.pay(Kind::Token, &sponsor, STARTER - 1)),
        ("from an unknown wallet", shop.pay(Kind::Native, &unlinked, Kind::Native.price())),
    ];
    let _ = shop.chain.mined(&not[3].1);
    shop.wait_until_scanned();
    until("both are credited", || shop.balance(&one) == "43");
    assert_eq!(shop.balance(&other), "11.5");
    for hash in credited {
        assert_eq!(shop.top_up(&one, Kind::Token, &hash, None).expect(200).member("already_credited"), "true");
    }
    until("the others are counted", || left() == Some(left_before + 4));
    let lines = |hash: &str| shop.server.log().lines().filter(|line| line.contains(hash)).count();
    let [_, records] = shop.books();
    for (what, hash) in not {
        until("it is logged", || lines(&hash) > 0);
        assert_eq!(lines(&hash), 1, "{what}");
        assert!(!records.to_string().contains(&hash), "{what}");
    }
}

#[test]
fn repeated_crashes_credit_each_payment_once() {
    let Some(mut shop) = Shop::with(Chain::setup(), "1", WATCH) else { return };
    // After its first scan, the watcher does not scan again during the test.
    shop.restart_with(&[("METERING_PAYMENTS__WATCH_INTERVAL", "1h")]);
    shop.wait_until_scanned();
    let paid: Vec<_> = (0..12).map(|number| pay(&shop, Kind::BOTH[number % 2])).collect();
    assert_eq!(shop.accounts(), 0, "nothing was scanned");
    // Each start kills the previous server with SIGKILL.
    for milliseconds in [5, 15, 25, 40] {
        shop = shop.restart();
        thread::sleep(Duration::from_millis(milliseconds));
    }
    shop = shop.restart();
    shop.wait_until_scanned();
    let before = shop.books();
    shop = shop.restart();
    shop.wait_until_scanned();
    assert_eq!(shop.books(), before, "scanning again changes nothing");
    assert_one_account_each(&shop, &paid);
}

#[test]
fn two_watchers_and_concurrent_claims_credit_once() {
    let Some(mut shop) = Shop::with(Chain::setup(), "1", WATCH) else { return };
    let often = [("METERING_PAYMENTS__WATCH_INTERVAL", "20ms")];
    shop.restart_with(&often);
    let second = shop.server_with(&often).start();
    let paid: Vec<_> = (0..8).map(|_| pay(&shop, Kind::Token)).collect();
    until("all are credited", || shop.accounts() == paid.len());
    let claimed = "its account was created, unclaimed";
    let lines =
        || -> usize { [&shop.server, &second].map(|server| server.log().matches(claimed).count()).iter().sum() };
    until("both have logged their work", || lines() >= paid.len());
    assert_one_account_each(&shop, &paid);
    assert_eq!(lines(), paid.len());

    // The customer gets the key, whether the claim or the watcher is first.
    let racing: Vec<_> = (0..8)
        .map(|number| {
            let customer = shop.customer();
            let quote = shop.quote(Kind::Native, &customer.address());
            let hash = shop.pay(Kind::Native, &customer, quote.units);
            let client = if number % 2 == 0 { shop.client() } else { second.client() };
            thread::spawn(move || key_of(&claim(&client, &quote.nonce, &hash).expect(200)))
        })
        .collect();
    for claim in racing {
        assert_eq!(shop.balance(&claim.join().unwrap()), "6");
    }
    assert_eq!(shop.accounts(), 2 * paid.len());
}

#[test]
fn watching_resumes_where_an_unreadable_chain_stopped_it() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    let more = format!("{WATCH}\nattempts = 1\nrequest_timeout = '2s'");
    let mut shop = Shop::on(chain, &format!("'{}'", proxy.url()), "1", &more);
    shop.restart_with(&[("METERING_PAYMENTS__WATCH_INTERVAL", "30ms")]);
    let faults = [
        Fault::HttpError(500),
        Fault::Timeout,
        Fault::NullReceipts,
        Fault::OtherBlockHash,
        Fault::Lag(1),
        Fault::Garbage(Garbage::Truncated),
        Fault::RpcError(-32_005, "limit exceeded"),
        Fault::WrongChainId(1),
    ];
    let mut paid = Vec::new();
    for fault in faults {
        let customer = shop.customer();
        let quote = shop.quote(Kind::Token, &customer.address());
        shop.wait_until_scanned();
        proxy.set(fault.clone());
        let hash = shop.pay(Kind::Token, &customer, quote.units);
        let _ = shop.chain.mined(&hash);
        let requests = proxy.requests();
        until("the watcher tried again", || proxy.requests() > requests + 2);
        assert_eq!(shop.accounts(), paid.len(), "{fault:?}");
        proxy.set(Fault::PassThrough);
        shop.wait_until_scanned();
        paid.push(Paid { kind: Kind::Token, customer, quote, hash });
        until("it is credited", || shop.accounts() == paid.len());
    }
    assert_one_account_each(&shop, &paid);

    // A hanging chain does not delay the server's shutdown either.
    shop.restart_with(&[("METERING_CHAINS__DEVNET__REQUEST_TIMEOUT", "60s")]);
    proxy.set(Fault::Timeout);
    let requests = proxy.requests();
    until("the watcher waits for a response", || proxy.requests() > requests);
    let started = Instant::now();
    shop.server.terminate();
    assert!(shop.server.wait().success());
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
}
