//! The watcher: linked wallets, crashes, several servers, racing claims, and a chain that cannot be read.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};

use crate::market::{Kind, Market, Quote, STARTER, claim, key_of};
use crate::market_settings::until;

const WATCH: &str = "watch = true\nwatch_from_block = 0";

/// A customer who paid their quote.
struct Paid {
    kind: Kind,
    customer: Account,
    quote: Quote,
    hash: String,
}

fn pay(market: &Market, kind: Kind) -> Paid {
    let customer = market.customer();
    let quote = market.quote(kind, &customer.address());
    let hash = market.pay(kind, &customer, quote.units);
    let _ = market.chain.mined(&hash);
    Paid { kind, customer, quote, hash }
}

/// Asserts that each payment created one account with its plan's and the free credits, and gives out its key once.
fn each_made_one_account(market: &Market, paid: &[Paid]) {
    let [accounts, records] = market.books();
    let (accounts, records) = (accounts["accounts"].as_array().unwrap(), records["payments"].as_array().unwrap());
    assert_eq!((accounts.len(), records.len()), (paid.len(), paid.len()));
    for Paid { kind, customer, quote, hash } in paid {
        let balance = if *kind == Kind::Token { "12.5" } else { "6" };
        let made: Vec<_> = accounts.iter().filter(|found| found["payer_address"] == customer.address()).collect();
        let recorded: Vec<_> = records.iter().filter(|found| found["tx_hash"] == *hash).collect();
        let ([made], [recorded]) = (made.as_slice(), recorded.as_slice()) else { panic!("{made:?} {recorded:?}") };
        assert_eq!((&recorded["org_id"], &recorded["used_as"]), (&made["org_id"], &"pay_signup".into()));
        assert_eq!(made["credit_balance"].to_string(), balance);
        let key = key_of(&market.claim(quote, hash).expect(200));
        assert_eq!(market.balance(&key), balance);
        assert_eq!(market.claim(quote, hash).expect(409).error(), "already_claimed");
    }
    assert_eq!(market.accounts(), paid.len());
    market.site.verify();
}

#[test]
fn a_payment_is_credited_to_the_one_account_that_its_wallet_is_linked_to() {
    let Some(market) = Market::with(Chain::setup(), "1", WATCH) else { return };
    let wallet = market.chain.wallet();
    let (one, other) = (market.site.account("1").api_key, market.site.account("1").api_key);
    let (sponsor, ambiguous, stranger) = (market.customer(), market.customer(), market.customer());
    for (key, payer) in [(&one, &sponsor), (&one, &ambiguous), (&other, &ambiguous)] {
        let hash = market.pay(Kind::Token, payer, STARTER);
        let message = market.top_up(key, Kind::Token, &hash, None).expect(403).json()["message"].clone();
        let signature = wallet.sign_message(payer, message.as_str().unwrap());
        let _ = market.top_up(key, Kind::Token, &hash, Some(&signature)).expect(200);
    }
    market.watched();
    assert_eq!((market.balance(&one), market.balance(&other)), ("22".to_owned(), "11.5".to_owned()));
    let left = || market.figure("metering_watched_payments_total{chain_id=\"31337\",outcome=\"left\"}");
    // The watcher may have seen the first payments before their signatures came.
    let left_before = left().unwrap();

    let credited = [market.pay(Kind::Token, &sponsor, STARTER), market.pay(Kind::Token, &sponsor, STARTER + 1_234)];
    let not = [
        ("from a wallet linked to two accounts", market.pay(Kind::Token, &ambiguous, STARTER)),
        ("of no plan's price", market.pay(Kind::Token, &sponsor, 2 * STARTER)),
        ("of too little", market.pay(Kind::Token, &sponsor, STARTER - 1)),
        ("from an unknown wallet", market.pay(Kind::Native, &stranger, Kind::Native.price())),
    ];
    let _ = market.chain.mined(&not[3].1);
    market.watched();
    until("both are credited", || market.balance(&one) == "43");
    assert_eq!(market.balance(&other), "11.5");
    for hash in credited {
        assert_eq!(market.top_up(&one, Kind::Token, &hash, None).expect(200).member("already_credited"), "true");
    }
    assert_eq!(left(), Some(left_before + 4));
    let lines = |hash: &str| market.server.log().lines().filter(|line| line.contains(hash)).count();
    let [_, records] = market.books();
    for (what, hash) in not {
        until("it is logged", || lines(&hash) > 0);
        assert_eq!(lines(&hash), 1, "{what}");
        assert!(!records.to_string().contains(&hash), "{what}");
    }
    market.site.verify();
}

#[test]
fn payments_from_before_a_crash_are_credited_once_however_often_the_server_dies() {
    let Some(mut market) = Market::with(Chain::setup(), "1", WATCH) else { return };
    // After its first scan, the watcher does not scan again during the test.
    market.reopen(&[("METERING_PAYMENTS__WATCH_INTERVAL", "1h")]);
    market.watched();
    let paid: Vec<_> = (0..12).map(|number| pay(&market, Kind::BOTH[number % 2])).collect();
    assert_eq!(market.accounts(), 0, "nothing was scanned");
    // Each start kills the previous server with SIGKILL.
    for milliseconds in [5, 15, 25, 40] {
        market = market.restart();
        thread::sleep(Duration::from_millis(milliseconds));
    }
    market = market.restart();
    market.watched();
    let before = market.books();
    market = market.restart();
    market.watched();
    assert_eq!(market.books(), before, "scanning again changes nothing");
    each_made_one_account(&market, &paid);
}

#[test]
fn two_servers_that_watch_and_customers_that_claim_meanwhile_count_each_payment_once() {
    let Some(mut market) = Market::with(Chain::setup(), "1", WATCH) else { return };
    let often = [("METERING_PAYMENTS__WATCH_INTERVAL", "20ms")];
    market.reopen(&often);
    let second = market.server_with(&often).start();
    let paid: Vec<_> = (0..8).map(|_| pay(&market, Kind::Token)).collect();
    until("all are credited", || market.accounts() == paid.len());
    let claimed = "its account was created, unclaimed";
    let lines =
        || -> usize { [&market.server, &second].map(|server| server.log().matches(claimed).count()).iter().sum() };
    until("both have logged their work", || lines() >= paid.len());
    each_made_one_account(&market, &paid);
    assert_eq!(lines(), paid.len());

    // The customer gets the key, whether the claim or the watcher is first.
    let racing: Vec<_> = (0..8)
        .map(|number| {
            let customer = market.customer();
            let quote = market.quote(Kind::Native, &customer.address());
            let hash = market.pay(Kind::Native, &customer, quote.units);
            let client = if number % 2 == 0 { market.client() } else { second.client() };
            thread::spawn(move || key_of(&claim(&client, &quote.nonce, &hash).expect(200)))
        })
        .collect();
    for claim in racing {
        assert_eq!(market.balance(&claim.join().unwrap()), "6");
    }
    assert_eq!(market.accounts(), 2 * paid.len());
    market.site.verify();
}

#[test]
fn a_chain_that_cannot_be_read_is_watched_again_from_where_it_was_left() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    let more = format!("{WATCH}\nattempts = 1\nrequest_timeout = '2s'");
    let mut market = Market::on(chain, &format!("'{}'", proxy.url()), "1", &more);
    market.reopen(&[("METERING_PAYMENTS__WATCH_INTERVAL", "30ms")]);
    let faults = [
        Fault::HttpError(500),
        Fault::TimeOut,
        Fault::NullReceipts,
        Fault::OtherBlockHash,
        Fault::Lag(1),
        Fault::Garbage(Garbage::Truncated),
        Fault::RpcError(-32_005, "limit exceeded"),
        Fault::WrongChainId(1),
    ];
    let mut paid = Vec::new();
    for fault in faults {
        let customer = market.customer();
        let quote = market.quote(Kind::Token, &customer.address());
        market.watched();
        proxy.set(fault.clone());
        let hash = market.pay(Kind::Token, &customer, quote.units);
        let _ = market.chain.mined(&hash);
        let asked = proxy.requests();
        until("the watcher tried again", || proxy.requests() > asked + 2);
        assert_eq!(market.accounts(), paid.len(), "{fault:?}");
        proxy.set(Fault::PassThrough);
        market.watched();
        paid.push(Paid { kind: Kind::Token, customer, quote, hash });
        until("it is credited", || market.accounts() == paid.len());
    }
    each_made_one_account(&market, &paid);

    // A hanging chain does not delay the server's shutdown either.
    market.reopen(&[("METERING_CHAINS__DEVNET__REQUEST_TIMEOUT", "60s")]);
    proxy.set(Fault::TimeOut);
    let asked = proxy.requests();
    until("the watcher waits for a response", || proxy.requests() > asked);
    let begun = Instant::now();
    market.server.terminate();
    assert!(market.server.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
