//! Proxies ask over connections that they keep open: a new one for each request costs more than the question.

use std::collections::BTreeSet;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use metering_tests::load::{Stop, request, start as start_load};
use metering_tests::proxies::Kind;
use metering_tests::site::Site;

use super::proxy::{is_skipped, start};
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wire::plan_with_long_timeout;

const CONNECTIONS: usize = 64;
const REQUESTS: u64 = 2_000;
/// Each connection of a client needs one, and a proxy may open one while another becomes free.
const AT_MOST: u32 = 128;

/// Counts the connections to a server. Its threads end with the process.
struct Counting {
    address: SocketAddr,
    accepted: Arc<AtomicU32>,
}

impl Counting {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, accepted) = (listener.local_addr().unwrap(), Arc::new(AtomicU32::new(0)));
        let counter = Arc::clone(&accepted);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                counter.fetch_add(1, Ordering::Relaxed);
                let Ok(server) = TcpStream::connect(server) else { break };
                relay(client.try_clone().unwrap(), server.try_clone().unwrap());
                relay(server, client);
            }
        });
        Self { address, accepted }
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream) {
    // Otherwise small packets wait for each other.
    let _ = to.set_nodelay(true);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

fn reuses(kind: Kind) {
    metering_tests::skip_if!(is_skipped());
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let setup = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let server = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").start();
    let service: SocketAddr = upstream.url().trim_start_matches("http://").parse().unwrap();
    let counting = Counting::before(server.address());
    let proxy = start(kind, kind.file(), counting.address, service);
    let calls = vec![request("GET", "/api/free", Some(&account.api_key), &[])];
    let plan = plan_with_long_timeout(proxy.address(), CONNECTIONS, Stop::AfterRequests(REQUESTS), calls);
    let unexpected = Arc::new(Mutex::new(None));
    let first = Arc::clone(&unexpected);
    let result = start_load(plan, move |response| {
        if response.status != 200 {
            first.lock().unwrap().get_or_insert_with(|| format!("{response:?}"));
        }
    });
    let result = result.join();
    let unexpected = unexpected.lock().unwrap();
    let forwarded: BTreeSet<String> = upstream.seen().into_iter().map(|seen| seen.target).collect();
    let story = format!("{unexpected:?} {result:?}, forwarded {forwarded:?}: {}", proxy.log());
    assert_eq!((result.errors, result.with_status(200)), (0, REQUESTS), "{story}");
    let accepted = counting.accepted.load(Ordering::Relaxed);
    assert!((1..=AT_MOST).contains(&accepted), "{accepted} connections for {REQUESTS} requests");
}

#[test]
fn of_nginx_are_reused() {
    reuses(Kind::Nginx);
}

#[test]
fn of_haproxy_are_reused() {
    reuses(Kind::Haproxy);
}

#[test]
fn of_caddy_are_reused() {
    reuses(Kind::Caddy);
}

#[test]
fn of_envoy_are_reused() {
    reuses(Kind::Envoy);
}
