//! RPC providers that lag, lie, fail or hang: an honest claim succeeds in the end, and a failed one changes nothing.

use std::thread;
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};

use crate::support::shop::{Kind, Shop, claim};

/// A part of the provider's URL that must not appear anywhere.
const SECRET: &str = "provider-key-7f3a";

/// A shop whose only source is behind a proxy.
fn shop() -> Option<(Shop, Proxy)> {
    let chain = Chain::start()?;
    let proxy = Proxy::start(&chain);
    let url = format!("'{}/v3/{SECRET}'", proxy.url());
    let shop = Shop::on(chain, &url, "1", "request_timeout = '2s'\nattempts = 2");
    Some((shop, proxy))
}

#[test]
fn faulty_source_consumes_nothing_and_a_later_claim_succeeds() {
    let Some((shop, proxy)) = shop() else { return };
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
        (Fault::Timeout, 502, "rpc_error"),
        (Fault::WrongChainId(5), 502, "rpc_chain_mismatch"),
        (Fault::OtherBlockHash, 409, "payment_unconfirmed"),
        (Fault::Lag(50), 404, "tx_not_found"),
    ];
    for (fault, status, code) in table {
        let what = format!("{fault:?}");
        let customer = shop.customer();
        let quote = shop.quote(Kind::Token, &customer.address());
        let hash = shop.pay(Kind::Token, &customer, quote.units);
        let _ = shop.chain.mined(&hash);
        let before = shop.accounts();
        proxy.set(fault);
        let response = shop.claim(&quote, &hash);
        assert_eq!((response.status, response.error().as_str()), (status, code), "{what}: {}", response.text());
        assert!(response.header("retry-after").is_some(), "{what}: {}", response.text());
        assert!(!response.text().contains(SECRET), "{what}: {}", response.text());
        assert_eq!(shop.accounts(), before, "{what}");
        proxy.set(Fault::PassThrough);
        let _ = shop.claim(&quote, &hash).expect(200);
    }
    shop.site.verify();
    let log = shop.server.log();
    assert!(log.contains("127.0.0.1") && !log.contains(SECRET), "{log}");
}

#[test]
fn short_failures_are_retried() {
    let Some((shop, proxy)) = shop() else { return };
    for fault in [Fault::HttpError(503), Fault::Garbage(Garbage::Truncated), Fault::Timeout] {
        let customer = shop.customer();
        let quote = shop.quote(Kind::Native, &customer.address());
        let hash = shop.pay(Kind::Native, &customer, quote.units);
        let _ = shop.chain.mined(&hash);
        proxy.set(Fault::first(1, fault));
        let _ = shop.claim(&quote, &hash).expect(200);
    }
}

#[test]
fn waiting_claim_survives_provider_failures() {
    let Some(chain) = Chain::setup().manual_mining().start() else { return };
    let proxy = Proxy::start(&chain);
    let more = "request_timeout = '2s'\nattempts = 1";
    let shop = Shop::on(chain, &format!("'{}'", proxy.url()), "3", more);
    let customer = shop.customer();
    let quote = shop.quote(Kind::Token, &customer.address());
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    shop.chain.mine(1);
    let _ = shop.chain.mined(&hash);
    proxy.reset_counts();
    let (client, nonce, tx) = (shop.client(), quote.nonce.clone(), hash.clone());
    let waiting = thread::spawn(move || claim(&client, &nonce, &tx));
    // The second poll has started, so the first got its response.
    proxy.wait_for("eth_getTransactionReceipt", 2);
    proxy.set(Fault::HttpError(500));
    shop.chain.mine(2);
    thread::sleep(Duration::from_millis(300));
    proxy.set(Fault::PassThrough);
    let _ = waiting.join().unwrap().expect(200);
}

#[test]
fn two_sources_must_agree_and_one_of_three_may_fail() {
    let Some(chain) = Chain::start() else { return };
    let (honest, faulty, third) = (Proxy::start(&chain), Proxy::start(&chain), Proxy::start(&chain));
    let urls = format!("'{}', '{}', '{}'", honest.url(), faulty.url(), third.url());
    let shop = Shop::on(chain, &urls, "1", "request_timeout = '2s'\nattempts = 1\nagree = 2");
    let customer = shop.customer();
    let quote = shop.quote(Kind::Token, &customer.address());
    let hash = shop.pay(Kind::Token, &customer, quote.units - 1);
    let _ = shop.chain.mined(&hash);
    // The payment is too small. The liar reports the right amount; with the third source down, no two sources agree.
    faulty.set(Fault::TamperedReceipt);
    third.set(Fault::HttpError(500));
    assert_eq!(shop.claim(&quote, &hash).expect(502).error(), "rpc_error");
    third.set(Fault::PassThrough);
    assert_eq!(shop.claim(&quote, &hash).expect(400).error(), "payment_mismatch");
    assert_eq!(shop.accounts(), 0);
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    let _ = shop.chain.mined(&hash);
    faulty.set(Fault::Timeout);
    let _ = shop.claim(&quote, &hash).expect(200);
}
