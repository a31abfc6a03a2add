//! A real proxy with its file of `deploy/proxies`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use metering_tests::proxies::{self, Kind, Places, deployed};
use metering_tests::{skipped, venv};

/// Set by `./test.sh` where the proxies are not installed.
const SKIP: &str = "TESTS_SKIP_PROXIES";

/// Whether tests with proxies are disabled.
#[track_caller]
pub(super) fn is_skipped() -> bool {
    skipped::by(SKIP)
}

/// Starts a proxy with this file in front of a service; it checks requests with the metering server.
#[track_caller]
pub(super) fn start(kind: Kind, file: &str, metering: SocketAddr, service: SocketAddr) -> proxies::Proxy {
    let program = match kind {
        Kind::Nginx => found("nginx"),
        Kind::Haproxy => found("haproxy"),
        Kind::Caddy => found("caddy"),
        Kind::Envoy => venv::program("proxies-venv", "envoy"),
    };
    let texts = vec![("change me: billing.internal_secret", super::settling::SECRET.to_owned())];
    proxies::Proxy::start(kind, &program, &deployed(file), &Places { metering, service, texts }).unwrap()
}

/// A program that Debian may install where only root's `PATH` looks.
fn found(name: &str) -> PathBuf {
    let system = Path::new("/usr/sbin").join(name);
    if system.is_file() { system } else { name.into() }
}
