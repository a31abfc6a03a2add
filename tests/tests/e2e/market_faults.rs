//! RPC providers that lag, lie, fail or hang: an honest claim succeeds in the end, and a failed one changes nothing.

use std::thread;
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};

use crate::market::{Kind, Market, claim};

/// A part of the provider's URL that must not appear anywhere.
const SECRET: &str = "provider-key-7f3a";

/// A market whose only source is behind a proxy.
fn market() -> Option<(Market, Proxy)> {
    let chain = Chain::start()?;
    let proxy = Proxy::start(&chain);
    let url = format!("'{}/v3/{SECRET}'", proxy.url());
    let market = Market::on(chain, &url, "1", "request_timeout = '2s'\nattempts = 2");
    Some((market, proxy))
}

#[test]
fn a_faulty_source_consumes_nothing_and_the_claim_succeeds_afterwards() {
    let Some((market, proxy)) = market() else { return };
    // fault, status, code
    let table: [(Fault, u16, &str); 14] = [
        (Fault::NullReceipts, 404, "tx_not_found"),
        (Fault::Garbage(Garbage::Empty), 502, "rpc_error"),
        (Fault::Garbage(Garbage::Text), 502, "rpc_error"),
        (Fault::Garbage(Garbage::Html), 502, "rpc_error"),
        (Fault::Garbage(Garbage::Truncated), 502, "rpc_error"),
        (Fault::Garbage(Garbage::WrongId), 502, "rpc_error"),
        (Fault::HttpError(500), 502, "rpc_error"),
        (Fault::HttpError(429), 502, "rpc_error"),
        (Fault::HttpError(403), 502, "rpc_error"),
        (Fault::RpcError(-32_603, "internal error"), 502, "rpc_error"),
        (Fault::TimeOut, 502, "rpc_error"),
        (Fault::WrongChainId(5), 502, "rpc_chain_mismatch"),
        (Fault::OtherBlockHash, 409, "payment_unconfirmed"),
        (Fault::Lag(50), 404, "tx_not_found"),
    ];
    for (fault, status, code) in table {
        let what = format!("{fault:?}");
        let customer = market.customer();
        let quote = market.quote(Kind::Token, &customer.address());
        let hash = market.pay(Kind::Token, &customer, quote.units);
        let _ = market.chain.mined(&hash);
        let before = market.accounts();
        proxy.set(fault);
        let answer = market.claim(&quote, &hash);
        assert_eq!((answer.status, answer.error().as_str()), (status, code), "{what}: {}", answer.text());
        assert!(answer.header("retry-after").is_some(), "{what}: {}", answer.text());
        assert!(!answer.text().contains(SECRET), "{what}: {}", answer.text());
        assert_eq!(market.accounts(), before, "{what}");
        proxy.set(Fault::PassThrough);
        let _ = market.claim(&quote, &hash).expect(200);
    }
    market.site.verify();
    let log = market.server.log();
    assert!(log.contains("127.0.0.1") && !log.contains(SECRET), "{log}");
}

#[test]
fn short_trouble_is_overcome_by_trying_again() {
    let Some((market, proxy)) = market() else { return };
    for fault in [Fault::HttpError(503), Fault::Garbage(Garbage::Truncated), Fault::TimeOut] {
        let customer = market.customer();
        let quote = market.quote(Kind::Native, &customer.address());
        let hash = market.pay(Kind::Native, &customer, quote.units);
        let _ = market.chain.mined(&hash);
        proxy.set(Fault::first(1, fault));
        let _ = market.claim(&quote, &hash).expect(200);
    }
}

#[test]
fn trouble_in_the_middle_of_a_wait_is_waited_for() {
    let Some(chain) = Chain::setup().manual_mining().start() else { return };
    let proxy = Proxy::start(&chain);
    let more = "request_timeout = '2s'\nattempts = 1";
    let market = Market::on(chain, &format!("'{}'", proxy.url()), "3", more);
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(1);
    let _ = market.chain.mined(&hash);
    proxy.reset_counts();
    let (client, nonce, tx) = (market.client(), quote.nonce.clone(), hash.clone());
    let waiting = thread::spawn(move || claim(&client, &nonce, &tx));
    // The second poll has begun, so the first got its response.
    proxy.wait_for("eth_getTransactionReceipt", 2);
    proxy.set(Fault::HttpError(500));
    market.chain.mine(2);
    thread::sleep(Duration::from_millis(300));
    proxy.set(Fault::PassThrough);
    let _ = waiting.join().unwrap().expect(200);
}

#[test]
fn two_sources_must_agree_and_one_of_three_may_fail() {
    let Some(chain) = Chain::start() else { return };
    let (honest, liar, third) = (Proxy::start(&chain), Proxy::start(&chain), Proxy::start(&chain));
    let urls = format!("'{}', '{}', '{}'", honest.url(), liar.url(), third.url());
    let market = Market::on(chain, &urls, "1", "request_timeout = '2s'\nattempts = 1\nagree = 2");
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units - 1);
    let _ = market.chain.mined(&hash);
    // The payment is too small. The liar reports the right amount; with the third source down, no two sources agree.
    liar.set(Fault::TamperedReceipt);
    third.set(Fault::HttpError(500));
    assert_eq!(market.claim(&quote, &hash).expect(502).error(), "rpc_error");
    third.set(Fault::PassThrough);
    assert_eq!(market.claim(&quote, &hash).expect(400).error(), "payment_mismatch");
    assert_eq!(market.accounts(), 0);
    let hash = market.pay(Kind::Token, &customer, quote.units);
    let _ = market.chain.mined(&hash);
    liar.set(Fault::TimeOut);
    let _ = market.claim(&quote, &hash).expect(200);
}
