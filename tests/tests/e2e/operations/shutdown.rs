//! SIGTERM: accepted requests are finished, later ones are refused, and the exit code is 0.

use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::client::connect;
use metering_tests::load::{Stop, request, start};
use metering_tests::site::Site;

use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wire::{BASE, STREAM, plan_with_long_timeout, usage_events};

#[test]
fn every_charge_under_load_gets_a_response_and_is_recorded() {
    let site = Site::new();
    let account = site.account("1000");
    for _ in 0..3 {
        let mut server = site.server().start();
        let client = server.client_with(&account.api_key);
        let before = usage_events(&client);
        let call = vec![request("GET", BASE, Some(&account.api_key), &[])];
        let load =
            start(plan_with_long_timeout(server.address(), 32, Stop::After(Duration::from_secs(90)), call), |_| ());
        let warming = Instant::now();
        while usage_events(&client) < before + 100 {
            assert!(warming.elapsed() < Duration::from_secs(60), "the load did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        let started = Instant::now();
        server.terminate();
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        assert!(started.elapsed() < Duration::from_secs(18), "{:?}", started.elapsed());
        let result = load.join();
        assert_eq!(result.responses(), result.with_status(200), "{result:?}");
        assert!(result.with_status(200) >= 100, "{result:?}");
        drop(server);

        let server = site.server().start();
        let recorded = usage_events(&server.client_with(&account.api_key)) - before;
        assert_eq!(recorded, result.with_status(200), "{result:?}");
        site.verify();
    }
}

#[test]
fn request_in_flight_finishes_and_new_ones_are_refused() {
    let (site, upstream, account, mut server) = served("1");
    let client = server.client_with(&account.api_key);
    let (slow, address) = (client.clone(), server.address());
    let waiting = std::thread::spawn(move || slow.get("/api/slow/3000"));
    upstream.wait_for("/api/slow/3000");
    server.terminate();
    while connect(address).is_ok() {
        assert!(!waiting.is_finished(), "new connections are still accepted");
        std::thread::sleep(Duration::from_millis(10));
    }
    let response = waiting.join().unwrap().expect(200);
    assert_eq!(response.text(), "at last");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop(server);
    let server = site.server().start();
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 1);
}

#[test]
fn requests_beyond_the_grace_period_are_cut() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let mut server = site
        .server()
        .set("METERING_HTTP__SHUTDOWN_GRACE", "500ms")
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let slow = server.client_with(&account.api_key);
    let waiting = std::thread::spawn(move || slow.try_send("GET", "/api/slow/60000", None));
    upstream.wait_for("/api/slow/60000");
    let started = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(started.elapsed() < Duration::from_secs(18), "{:?}", started.elapsed());
    assert!(waiting.join().unwrap().is_err(), "the client gets no made-up response");
}

#[test]
fn streams_end_cleanly() {
    let (_site, account, mut server) = Site::serving("1");
    let mut streams: Vec<_> = (0..3).map(|_| server.client_with(&account.api_key).open(STREAM)).collect();
    for stream in &mut streams {
        let _ = stream.read_until("event: block");
    }
    let started = Instant::now();
    server.terminate();
    for stream in streams {
        let _ = stream.finish().expect("the body ends properly");
    }
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(started.elapsed() < Duration::from_secs(18), "{:?}", started.elapsed());
}

#[test]
fn store_is_closed_by_an_orderly_stop_with_every_part_running() {
    let Some(chain) = Chain::start() else { return };
    let site = Site::new();
    let account = site.account("1");
    let more = format!(
        "[chains.devnet]\nchain_id = {}\nrecipient = '{}'\nrpc_urls = ['{}']\n",
        chain.chain_id(),
        chain.wallet().account(9).checksummed(),
        chain.url()
    );
    let file = site.write("metering.toml", &more);
    let start = || {
        let server = site.server().set("METERING_ADMIN_LISTEN", "127.0.0.1:0");
        server.args(["--config", file.to_str().unwrap()]).start()
    };
    let mut server = start();
    let _ = server.client_with(&account.api_key).get(BASE).expect(200);
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop(server);
    let log = site.database().with_extension("db-wal");
    assert!(!log.exists(), "the last connection to close removes the write-ahead log");
    let server = start();
    assert!(!server.log().contains("was not closed cleanly"), "{}", server.log());
}
