//! Payments with requests, through a proxy: the offers reach the client, and the payment reaches metering.

use std::net::SocketAddr;

use metering_tests::client::Client;
use metering_tests::proxies::Kind;
use serde_json::Value;

use super::proxy::{is_skipped, start};
use crate::support::upstream::Upstream;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};
use crate::x402::discovery::{decoded, open, payment};

#[test]
fn a_request_is_paid_for_through_nginx() {
    metering_tests::skip_if!(is_skipped());
    let first = "surfaces = ['metering', 'gateway', 'authorize']\nhttp.trusted_proxies = '127.0.0.1'\n";
    let Some(market) = open(first) else { return };
    let upstream = Upstream::start();
    let service: SocketAddr = upstream.url().trim_start_matches("http://").parse().unwrap();
    let proxy = start(Kind::Nginx, "nginx.conf", market.server.address(), service);
    let (payer, account) = (market.payer(), market.site.account("0"));
    let client = Client::new(proxy.address()).with_key(&account.api_key);
    let refused = client.get(BASE).expect(402);
    let offered = decoded(&refused, "payment-required");
    assert_eq!(offered["error"], Value::from("insufficient_credits"));
    assert!(refused.json()["accepts"].is_array() && refused.json()["plans"].is_array());
    assert_eq!(upstream.seen().len(), 0);
    let paying = client.clone().with_header("Payment-Signature", &payment(&market, &payer, &offered, 0));
    // The service has no such route, but the request reached it.
    let served = paying.get(BASE).expect(404);
    assert_eq!(upstream.last().target, BASE);
    assert_eq!(decoded(&served, "payment-response")["extra"]["account"], account.org_id);
    // The payment is credited once. With a key, a request that is sent again is another request.
    let again = paying.get(BASE).expect(404);
    assert_eq!(decoded(&again, "payment-response")["extra"]["account"], account.org_id);
    assert_eq!(upstream.seen().len(), 2);
    let direct = market.server.client_with(&account.api_key);
    assert_eq!(balance(&direct), amount(CREDIT / 20 - 2 * BASE_CALL));
    market.assert_paid(&payer, 50_000);
}
