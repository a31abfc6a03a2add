//! Event streams: charged once, limited per key, and ended when their key is.

use std::time::{Duration, Instant};

use metering_tests::site::Site;

use crate::support::upstream::{Upstream, catalogue};
use crate::support::wire::{BASE, STREAM, balance};

#[test]
fn stream_of_any_length_is_charged_once() {
    let (_site, account, server) = Site::serving_with("1", |server| server.set("METERING_SAMPLE__BLOCK_TIME", "50ms"));
    let client = server.client_with(&account.api_key);
    let mut stream = client.open(STREAM);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.header("x-sample-data"), Some("true"));
    for _ in 0..10 {
        let _ = stream.read_until("event: block");
    }
    assert_eq!(balance(&client), "0.99");
    let _second = client.open(STREAM);
    assert_eq!(balance(&client), "0.98");
}

#[test]
fn streams_are_limited_per_key_and_slots_are_freed() {
    let site = Site::verified();
    let (account, other) = (site.account("1"), site.account("1"));
    let server = site.server().set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "3").start();
    let client = server.client_with(&account.api_key);
    let mut open: Vec<_> = (0..3).map(|_| client.open(STREAM)).collect();
    let refused = client.get(STREAM).expect(429);
    assert_eq!(refused.error(), "too_many_streams");
    let wait = refused.header("retry-after").unwrap().to_owned();
    assert_eq!(refused.json()["retry_after_sec"].to_string(), wait);
    assert_eq!(balance(&client), "0.97");
    assert_eq!(server.client_with(&other.api_key).open(STREAM).status, 200);
    let _ = client.get(BASE).expect(200);
    drop(open.pop());
    let started = Instant::now();
    let again = loop {
        let stream = client.open(STREAM);
        if stream.status == 200 {
            break stream;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "the slot of a closed stream was not released");
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(again);
}

#[test]
fn concurrent_streams_get_exactly_the_available_slots() {
    let (_site, account, server) =
        Site::serving_with("10", |server| server.set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "5"));
    let client = server.client_with(&account.api_key);
    let opening: Vec<_> = (0..40)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || client.open(STREAM))
        })
        .collect();
    let opened: Vec<_> = opening.into_iter().map(|stream| stream.join().unwrap()).collect();
    let with = |status| opened.iter().filter(|stream| stream.status == status).count();
    assert_eq!((with(200), with(429)), (5, 35));
    assert_eq!(balance(&client), "9.95");
}

#[test]
fn streams_of_a_revoked_key_end() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let (account, other) = (site.account("1"), site.account("1"));
    let server = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
    let client = server.client_with(&account.api_key);
    let streams = [client.open("/api/events"), client.open("/api/events")];
    let mut others = server.client_with(&other.api_key).open("/api/events");
    upstream.wait_for_streams(3);
    let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
    let revoked = Instant::now();
    for path in ["/api/echo/word", "/api/events", "/credits/balance", "/credits/usage"] {
        let _ = client.get(path).expect(401);
    }
    for stream in streams {
        let _ = stream.finish().expect("the body ends properly");
    }
    assert!(revoked.elapsed() < Duration::from_secs(50), "{:?}", revoked.elapsed());
    upstream.wait_for_streams(1);
    upstream.send("for the other");
    let _ = others.read_until("for the other");
}
