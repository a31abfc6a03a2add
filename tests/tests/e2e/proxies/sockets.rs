//! WebSocket connections through proxies that ask.

use metering_tests::proxies::Kind;
use metering_tests::site::Site;

use super::proxy::{is_skipped, start};
use crate::support::sockets::{SocketUpstream, catalogue, expect_echo, open, open_with_key};
use crate::support::wire::{balance, usage_events};

/// A handshake is passed on and charged once, and refused on another route before it is charged.
#[track_caller]
fn connects(kind: Kind, file: &str) {
    metering_tests::skip_if!(is_skipped());
    let (site, upstream) = (Site::new(), SocketUpstream::start());
    let account = site.account("1");
    let setup = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let server = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").start();
    let service = upstream.url().trim_start_matches("http://").parse().unwrap();
    let proxy = start(kind, file, server.address(), service);
    let bearer = format!("Bearer {}", account.api_key);
    let refused = open(proxy.address(), "/plain", &[("authorization", &bearer)]);
    assert_eq!(refused.err(), Some(400), "{kind:?}");
    let mut socket = open_with_key(proxy.address(), "/live", &account.api_key);
    expect_echo(&mut socket, "through a proxy");
    let client = server.client_with(&account.api_key);
    assert_eq!((balance(&client), usage_events(&client)), ("0.99".to_owned(), 1), "{kind:?}");
    let plain = metering_tests::client::Client::new(proxy.address()).with_key(&account.api_key).get("/live");
    assert_eq!(plain.expect(426).error(), "upgrade_required");
    assert_eq!(usage_events(&client), 1, "{kind:?}");
}

#[test]
fn nginx_passes_websocket_connections_on() {
    connects(Kind::Nginx, "nginx.conf");
}

#[test]
fn haproxy_passes_websocket_connections_on() {
    connects(Kind::Haproxy, "haproxy.cfg");
}

#[test]
fn caddy_passes_websocket_connections_on() {
    connects(Kind::Caddy, "Caddyfile");
}
