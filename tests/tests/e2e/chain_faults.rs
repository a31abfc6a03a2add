//! Chain sources that fail, lag or lie, alone or among several: nothing is credited or used up, and the same claims and
//! top-ups succeed afterwards.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::answer::Answer;
use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};

use crate::market::{Kind, Market, Quote, claim};
use crate::market_settings::retry_after;

/// A market whose chain has a source that faults can be injected into.
struct Scene {
    market: Market,
    proxy: Proxy,
    customer: Account,
    key: String,
}

/// A payment for a quote, and a top-up payment for an existing account.
struct Paid {
    kind: Kind,
    quote: Quote,
    claimed: String,
    topped_up: String,
}

impl Scene {
    /// Requires two confirmations, so that a source can lag and still know the payment.
    fn new(honest_sources: usize, more: &str) -> Option<Self> {
        let chain = Chain::setup().manual_mining().start()?;
        let proxy = Proxy::start(&chain);
        // The same node under several URLs, because sources are distinguished by URL.
        let honest = (0..honest_sources).map(|number| format!("'{}/?{number}', ", chain.url()));
        let urls = honest.collect::<String>() + &format!("'{}'", proxy.url());
        let market = Market::on(chain, &urls, "2", more);
        let customer = market.customer();
        let scene = Self { market, proxy, customer, key: String::new() };
        let paid = scene.market.quote(Kind::Token, &scene.customer.address());
        let hash = scene.market.pay(Kind::Token, &scene.customer, paid.units);
        scene.mine(&hash, 2);
        let key = crate::market::key_of(&scene.market.claim(&paid, &hash).expect(200));
        Some(Self { key, ..scene })
    }

    /// Mines `blocks` blocks; the first includes the transaction.
    fn mine(&self, hash: &str, blocks: u64) {
        self.market.chain.mine(blocks);
        let _ = self.market.chain.mined(hash);
    }

    /// Two payments in one block, with one more block above it.
    fn paid(&self, kind: Kind) -> Paid {
        let newcomer = self.market.customer();
        let quote = self.market.quote(kind, &newcomer.address());
        let topped_up = self.market.pay(kind, &self.customer, kind.price());
        let claimed = self.market.pay(kind, &newcomer, quote.units);
        self.mine(&claimed, 2);
        Paid { kind, quote, claimed, topped_up }
    }

    fn claim(&self, paid: &Paid) -> Answer {
        self.market.claim(&paid.quote, &paid.claimed)
    }

    fn top_up(&self, paid: &Paid) -> Answer {
        self.market.top_up(&self.key, paid.kind, &paid.topped_up, None)
    }

    /// Asserts that both succeed, as they would without any fault.
    fn succeeds(&self, paid: &Paid, after: &Fault) {
        let claimed = self.claim(paid);
        assert_eq!(claimed.status, 200, "{after:?}: {}", claimed.text());
        let topped_up = self.top_up(paid);
        assert_eq!(topped_up.status, 200, "{after:?}: {}", topped_up.text());
        assert_eq!(topped_up.member("amount_added"), paid.kind.credits(), "{after:?}");
    }

    /// Asserts that both are refused with a retry delay and change nothing, and that they succeed without the fault.
    fn fails_for_now(&self, kind: Kind, fault: Fault, status: u16, error: &str) {
        let paid = self.paid(kind);
        let before = self.market.books();
        self.proxy.set(fault.clone());
        for refused in [self.claim(&paid), self.top_up(&paid)] {
            assert_eq!((refused.status, refused.error().as_str()), (status, error), "{fault:?}: {}", refused.text());
            assert!((1..=60).contains(&retry_after(&refused)), "{fault:?}: {}", refused.text());
            if error == "payment_unconfirmed" {
                assert_eq!(refused.member("required"), "2", "{fault:?}");
            }
        }
        assert_eq!(self.market.books(), before, "{fault:?}");
        self.proxy.set(Fault::PassThrough);
        self.succeeds(&paid, &fault);
    }
}

#[test]
fn whatever_the_only_source_does_nothing_is_credited_or_used_up() {
    let Some(mut scene) = Scene::new(0, "attempts = 1\nrequest_timeout = '2s'") else { return };
    // A server reads a token's decimals before its first sale, so no quote is made without the chain.
    let newcomer = scene.market.customer();
    for (fault, error) in [(Fault::HttpError(503), "rpc_error"), (Fault::WrongChainId(1), "rpc_chain_mismatch")] {
        scene.market.reopen(&[("METERING_PAYMENTS__CLAIM_WAIT", "200ms")]);
        scene.proxy.set(fault);
        let refused = scene.market.ask(Kind::Token, &newcomer.address()).expect(502);
        assert_eq!(refused.error(), error);
        let _ = retry_after(&refused);
        scene.proxy.set(Fault::PassThrough);
        let _ = scene.market.quote(Kind::Token, &newcomer.address());
    }
    let rpc = (502, "rpc_error");
    // kind, fault, expected error
    let table = [
        (Kind::Token, Fault::NullReceipts, (404, "tx_not_found")),
        (Kind::Token, Fault::Lag(1), (409, "payment_unconfirmed")),
        (Kind::Token, Fault::Lag(10), (404, "tx_not_found")),
        (Kind::Native, Fault::OtherBlockHash, (409, "payment_unconfirmed")),
        (Kind::Token, Fault::Garbage(Garbage::Empty), rpc),
        (Kind::Token, Fault::Garbage(Garbage::Truncated), rpc),
        (Kind::Token, Fault::Garbage(Garbage::WrongId), rpc),
        (Kind::Native, Fault::HttpError(401), rpc),
        (Kind::Native, Fault::RpcError(-32_005, "limit exceeded"), rpc),
        (Kind::Native, Fault::RpcError(-32_601, "the method does not exist"), rpc),
        (Kind::Native, Fault::TimeOut, rpc),
        (Kind::Native, Fault::WrongChainId(1), (502, "rpc_chain_mismatch")),
    ];
    for (kind, fault, (status, error)) in table {
        scene.fails_for_now(kind, fault, status, error);
    }
    scene.market.site.verify();
}

#[test]
fn two_sources_that_disagree_credit_nothing() {
    let Some(mut scene) = Scene::new(1, "agree = 2\nattempts = 1\nrequest_timeout = '2s'") else { return };
    scene.market.reopen(&[("METERING_PAYMENTS__CLAIM_WAIT", "200ms")]);
    let (rpc, unconfirmed) = ((502, "rpc_error"), (409, "payment_unconfirmed"));
    // kind, fault, expected error
    let table = [
        (Kind::Token, Fault::TamperedReceipt, rpc),
        (Kind::Native, Fault::TamperedTransaction, rpc),
        (Kind::Token, Fault::NullReceipts, rpc),
        (Kind::Token, Fault::Lag(10), rpc),
        (Kind::Token, Fault::Lag(1), unconfirmed),
        (Kind::Token, Fault::OtherBlockHash, unconfirmed),
        (Kind::Native, Fault::WrongChainId(1), rpc),
        (Kind::Native, Fault::TimeOut, rpc),
        (Kind::Native, Fault::Garbage(Garbage::Html), rpc),
    ];
    for (kind, fault, (status, error)) in table {
        scene.fails_for_now(kind, fault, status, error);
    }
    scene.market.site.verify();
}

#[test]
fn one_of_three_sources_may_do_anything_and_is_not_waited_for() {
    let Some(scene) = Scene::new(2, "agree = 2\nattempts = 2\nrequest_timeout = '20s'") else { return };
    let table = [
        (Kind::Token, Fault::TimeOut),
        (Kind::Token, Fault::TamperedReceipt),
        (Kind::Native, Fault::TamperedTransaction),
        (Kind::Native, Fault::OtherBlockHash),
        (Kind::Token, Fault::NullReceipts),
        (Kind::Token, Fault::Lag(10)),
        (Kind::Native, Fault::HttpError(429)),
        (Kind::Token, Fault::Garbage(Garbage::Text)),
        (Kind::Native, Fault::RpcError(-32_603, "internal error")),
        (Kind::Token, Fault::WrongChainId(1)),
    ];
    for (kind, fault) in table {
        let paid = scene.paid(kind);
        scene.proxy.set(fault.clone());
        let begun = Instant::now();
        scene.succeeds(&paid, &fault);
        assert!(begun.elapsed() < Duration::from_secs(10), "{fault:?}: {:?}", begun.elapsed());
        scene.proxy.set(Fault::PassThrough);
    }
    scene.market.site.verify();
}

#[test]
fn failures_are_overcome_by_as_many_attempts_as_are_configured_and_no_more() {
    let Some(mut scene) = Scene::new(0, "attempts = 3\nrequest_timeout = '2s'") else { return };
    // Requests are counted below, so nothing else may ask: payments that are not final yet are looked at every interval.
    scene.market.reopen(&[("METERING_PAYMENTS__WATCH_INTERVAL", "1h")]);
    let passing = [
        Fault::HttpError(503),
        Fault::HttpError(429),
        Fault::RpcError(-32_005, "limit exceeded"),
        Fault::Garbage(Garbage::Html),
        Fault::Garbage(Garbage::WrongId),
        Fault::TimeOut,
    ];
    for fault in passing {
        let paid = scene.paid(Kind::Token);
        scene.proxy.set(Fault::first(2, fault.clone()));
        let claimed = scene.claim(&paid);
        assert_eq!(claimed.status, 200, "{fault:?}: {}", claimed.text());
    }
    let paid = scene.paid(Kind::Token);
    scene.proxy.set(Fault::first(3, Fault::HttpError(503)));
    assert_eq!(scene.top_up(&paid).expect(502).error(), "rpc_error");
    let _ = scene.top_up(&paid).expect(200);
    // Permanent errors are not retried.
    for fault in [Fault::WrongChainId(1), Fault::HttpError(403)] {
        let paid = scene.paid(Kind::Native);
        scene.proxy.set(fault.clone());
        scene.proxy.reset_counts();
        let _ = scene.claim(&paid).expect(502);
        assert_eq!(scene.proxy.requests(), 1, "{fault:?}");
        scene.proxy.set(Fault::PassThrough);
    }
}

#[test]
fn a_source_may_fail_in_the_middle_of_a_wait() {
    let Some(mut scene) = Scene::new(0, "attempts = 1\nrequest_timeout = '2s'") else { return };
    let often = ("METERING_PAYMENTS__CLAIM_POLL", "20ms");
    scene.market.reopen(&[("METERING_PAYMENTS__CLAIM_WAIT", "60s"), often]);
    for fault in [Fault::HttpError(500), Fault::TimeOut, Fault::NullReceipts, Fault::WrongChainId(1)] {
        let waiting = wait_for_depth(&scene);
        scene.proxy.set(fault.clone());
        scene.proxy.reset_counts();
        // The second of these was sent after the first had met the fault.
        scene.proxy.wait_for("eth_getTransactionReceipt", 2);
        scene.market.chain.mine(3);
        scene.proxy.reset_counts();
        scene.proxy.wait_for("eth_getTransactionReceipt", 2);
        assert!(!waiting.is_finished(), "{fault:?}");
        scene.proxy.set(Fault::PassThrough);
        let claimed = waiting.join().unwrap();
        assert_eq!(claimed.status, 200, "{fault:?}: {}", claimed.text());
    }
    // If the fault outlasts the wait, the response says so, and the error is temporary.
    scene.market.reopen(&[("METERING_PAYMENTS__CLAIM_WAIT", "2s"), often]);
    let before = scene.market.accounts();
    let waiting = wait_for_depth(&scene);
    scene.proxy.set(Fault::HttpError(500));
    let refused = waiting.join().unwrap().expect(502);
    assert_eq!(refused.error(), "rpc_error");
    let _ = retry_after(&refused);
    assert_eq!(scene.market.accounts(), before);
}

/// Starts a claim of a payment that lacks a confirmation, and returns once it waits for it.
fn wait_for_depth(scene: &Scene) -> thread::JoinHandle<Answer> {
    let newcomer = scene.market.customer();
    let quote = scene.market.quote(Kind::Token, &newcomer.address());
    let hash = scene.market.pay(Kind::Token, &newcomer, quote.units);
    scene.mine(&hash, 1);
    let client = scene.market.client();
    scene.proxy.reset_counts();
    let waiting = thread::spawn(move || claim(&client, &quote.nonce, &hash));
    // The third poll is sent only after the first two got their responses.
    scene.proxy.wait_for("eth_getTransactionReceipt", 3);
    waiting
}
