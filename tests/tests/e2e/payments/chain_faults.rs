//! Chain sources that fail, lag or lie, alone or among several: nothing is credited or used up, and the same claims and
//! top-ups succeed afterwards.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};
use metering_tests::response::Response;

use crate::support::shop::{Kind, Quote, Shop, claim};
use crate::support::wire::retry_after;

/// A shop whose chain has a source that faults can be injected into.
struct Fixture {
    shop: Shop,
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

impl Fixture {
    /// Requires two confirmations, so that a source can lag and still have the payment.
    fn new(honest_sources: usize, more: &str) -> Option<Self> {
        let chain = Chain::setup().manual_mining().start()?;
        let proxy = Proxy::start(&chain);
        // The same node under several URLs, because sources are distinguished by URL.
        let honest = (0..honest_sources).map(|number| format!("'{}/?{number}', ", chain.url()));
        let urls = honest.collect::<String>() + &format!("'{}'", proxy.url());
        let shop = Shop::on(chain, &urls, "2", more);
        let customer = shop.customer();
        let fixture = Self { shop, proxy, customer, key: String::new() };
        let paid = fixture.shop.quote(Kind::Token, &fixture.customer.address());
        let hash = fixture.shop.pay(Kind::Token, &fixture.customer, paid.units);
        fixture.mine(&hash, 2);
        let key = crate::support::shop::key_of(&fixture.shop.claim(&paid, &hash).expect(200));
        Some(Self { key, ..fixture })
    }

    /// Mines `blocks` blocks; the first includes the transaction.
    fn mine(&self, hash: &str, blocks: u64) {
        self.shop.chain.mine(blocks);
        let _ = self.shop.chain.mined(hash);
    }

    /// Two payments in one block, with one more block above it.
    fn paid(&self, kind: Kind) -> Paid {
        let new_customer = self.shop.customer();
        let quote = self.shop.quote(kind, &new_customer.address());
        let topped_up = self.shop.pay(kind, &self.customer, kind.price());
        let claimed = self.shop.pay(kind, &new_customer, quote.units);
        self.mine(&claimed, 2);
        Paid { kind, quote, claimed, topped_up }
    }

    fn claim(&self, paid: &Paid) -> Response {
        self.shop.claim(&paid.quote, &paid.claimed)
    }

    fn top_up(&self, paid: &Paid) -> Response {
        self.shop.top_up(&self.key, paid.kind, &paid.topped_up, None)
    }

    /// Asserts that both succeed, as they would without any fault.
    fn assert_succeeds(&self, paid: &Paid, after: &Fault) {
        let claimed = self.claim(paid);
        assert_eq!(claimed.status, 200, "{after:?}: {}", claimed.text());
        let topped_up = self.top_up(paid);
        assert_eq!(topped_up.status, 200, "{after:?}: {}", topped_up.text());
        assert_eq!(topped_up.member("amount_added"), paid.kind.credits(), "{after:?}");
    }

    /// Asserts that both are refused with a retry delay and change nothing, and that they succeed without the fault.
    fn assert_fails_temporarily(&self, kind: Kind, fault: Fault, status: u16, error: &str) {
        let paid = self.paid(kind);
        let before = self.shop.books();
        self.proxy.set(fault.clone());
        for refused in [self.claim(&paid), self.top_up(&paid)] {
            assert_eq!((refused.status, refused.error().as_str()), (status, error), "{fault:?}: {}", refused.text());
            assert!((1..=60).contains(&retry_after(&refused)), "{fault:?}: {}", refused.text());
            if error == "payment_unconfirmed" {
                assert_eq!(refused.member("required"), "2", "{fault:?}");
            }
        }
        assert_eq!(self.shop.books(), before, "{fault:?}");
        self.proxy.set(Fault::PassThrough);
        self.assert_succeeds(&paid, &fault);
    }
}

#[test]
fn faulty_only_source_credits_and_consumes_nothing() {
    let Some(mut fixture) = Fixture::new(0, "attempts = 1\nrequest_timeout = '2s'") else { return };
    // A server reads a token's decimals before its first sale, so no quote is made without the chain.
    let new_customer = fixture.shop.customer();
    for (fault, error) in [(Fault::HttpError(503), "rpc_error"), (Fault::WrongChainId(1), "rpc_chain_mismatch")] {
        fixture.shop.restart_with(&[("METERING_PAYMENTS__CLAIM_WAIT", "200ms")]);
        fixture.proxy.set(fault);
        let refused = fixture.shop.request_quote(Kind::Token, &new_customer.address()).expect(502);
        assert_eq!(refused.error(), error);
        let _ = retry_after(&refused);
        fixture.proxy.set(Fault::PassThrough);
        let _ = fixture.shop.quote(Kind::Token, &new_customer.address());
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
        (Kind::Token, Fault::Garbage(Garbage::Text), rpc),
        (Kind::Token, Fault::Garbage(Garbage::Html), rpc),
        (Kind::Native, Fault::HttpError(401), rpc),
        (Kind::Native, Fault::HttpError(500), rpc),
        (Kind::Native, Fault::RpcError(-32_005, "limit exceeded"), rpc),
        (Kind::Native, Fault::RpcError(-32_601, "the method does not exist"), rpc),
        (Kind::Native, Fault::Timeout, rpc),
        (Kind::Native, Fault::WrongChainId(1), (502, "rpc_chain_mismatch")),
    ];
    for (kind, fault, (status, error)) in table {
        fixture.assert_fails_temporarily(kind, fault, status, error);
    }
    fixture.shop.site.verify();
}

#[test]
fn disagreeing_sources_credit_nothing() {
    let Some(mut fixture) = Fixture::new(1, "agree = 2\nattempts = 1\nrequest_timeout = '2s'") else { return };
    fixture.shop.restart_with(&[("METERING_PAYMENTS__CLAIM_WAIT", "200ms")]);
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
        (Kind::Native, Fault::Timeout, rpc),
        (Kind::Native, Fault::Garbage(Garbage::Html), rpc),
    ];
    for (kind, fault, (status, error)) in table {
        fixture.assert_fails_temporarily(kind, fault, status, error);
    }
    fixture.shop.site.verify();
}

#[test]
fn one_faulty_source_of_three_is_not_waited_for() {
    let Some(fixture) = Fixture::new(2, "agree = 2\nattempts = 2\nrequest_timeout = '20s'") else { return };
    let table = [
        (Kind::Token, Fault::Timeout),
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
        let paid = fixture.paid(kind);
        fixture.proxy.set(fault.clone());
        let started = Instant::now();
        fixture.assert_succeeds(&paid, &fault);
        assert!(started.elapsed() < Duration::from_secs(19), "{fault:?}: {:?}", started.elapsed());
        fixture.proxy.set(Fault::PassThrough);
    }
    fixture.shop.site.verify();
}

#[test]
fn failures_are_retried_as_often_as_configured() {
    let Some(mut fixture) = Fixture::new(0, "attempts = 3\nrequest_timeout = '2s'") else { return };
    // Requests are counted below, so no other requests may happen: payments that are not final yet are checked every
    // interval.
    fixture.shop.restart_with(&[("METERING_PAYMENTS__WATCH_INTERVAL", "1h")]);
    let passing = [
        Fault::HttpError(503),
        Fault::HttpError(429),
        Fault::RpcError(-32_005, "limit exceeded"),
        Fault::Garbage(Garbage::Html),
        Fault::Garbage(Garbage::WrongId),
        Fault::Timeout,
    ];
    for fault in passing {
        let paid = fixture.paid(Kind::Token);
        fixture.proxy.set(Fault::first(2, fault.clone()));
        let claimed = fixture.claim(&paid);
        assert_eq!(claimed.status, 200, "{fault:?}: {}", claimed.text());
    }
    let paid = fixture.paid(Kind::Token);
    // The batch, twice again, and a single call, which shows whether the source refuses only the batch.
    fixture.proxy.set(Fault::first(4, Fault::HttpError(503)));
    assert_eq!(fixture.top_up(&paid).expect(502).error(), "rpc_error");
    let _ = fixture.top_up(&paid).expect(200);
    // Permanent errors are not retried.
    for fault in [Fault::WrongChainId(1), Fault::HttpError(403)] {
        let paid = fixture.paid(Kind::Native);
        fixture.proxy.set(fault.clone());
        fixture.proxy.reset_counts();
        let _ = fixture.claim(&paid).expect(502);
        assert_eq!(fixture.proxy.requests(), 1, "{fault:?}");
        fixture.proxy.set(Fault::PassThrough);
    }
}

#[test]
fn source_may_fail_during_a_wait() {
    let Some(mut fixture) = Fixture::new(0, "attempts = 1\nrequest_timeout = '2s'") else { return };
    let often = ("METERING_PAYMENTS__CLAIM_POLL", "20ms");
    fixture.shop.restart_with(&[("METERING_PAYMENTS__CLAIM_WAIT", "60s"), often]);
    for fault in [Fault::HttpError(500), Fault::Timeout, Fault::NullReceipts, Fault::WrongChainId(1)] {
        let waiting = wait_for_depth(&fixture);
        fixture.proxy.set(fault.clone());
        fixture.proxy.reset_counts();
        // The second of these was sent after the first had met the fault.
        fixture.proxy.wait_for("eth_getTransactionReceipt", 2);
        fixture.shop.chain.mine(3);
        fixture.proxy.reset_counts();
        fixture.proxy.wait_for("eth_getTransactionReceipt", 2);
        assert!(!waiting.is_finished(), "{fault:?}");
        fixture.proxy.set(Fault::PassThrough);
        let claimed = waiting.join().unwrap();
        assert_eq!(claimed.status, 200, "{fault:?}: {}", claimed.text());
    }
    // If the fault outlasts the wait, the response reports it, and the error is temporary.
    fixture.shop.restart_with(&[("METERING_PAYMENTS__CLAIM_WAIT", "2s"), often]);
    let before = fixture.shop.accounts();
    let waiting = wait_for_depth(&fixture);
    fixture.proxy.set(Fault::HttpError(500));
    let refused = waiting.join().unwrap().expect(502);
    assert_eq!(refused.error(), "rpc_error");
    let _ = retry_after(&refused);
    assert_eq!(fixture.shop.accounts(), before);
}

/// Starts a claim of a payment that lacks a confirmation, and returns once it waits for it.
fn wait_for_depth(fixture: &Fixture) -> thread::JoinHandle<Response> {
    let new_customer = fixture.shop.customer();
    let quote = fixture.shop.quote(Kind::Token, &new_customer.address());
    let hash = fixture.shop.pay(Kind::Token, &new_customer, quote.units);
    fixture.mine(&hash, 1);
    let client = fixture.shop.client();
    fixture.proxy.reset_counts();
    let waiting = thread::spawn(move || claim(&client, &quote.nonce, &hash));
    // The third poll is sent only after the first two got their responses.
    fixture.proxy.wait_for("eth_getTransactionReceipt", 3);
    waiting
}
