//! Requests in flight: a key with a limit gets its slots back after any end of a request.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use metering_tests::client::{Client, connect};
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

use super::{Made, made};
use crate::mcp::metric;
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::until;

/// A key with a limit of requests in flight, at a gateway in front of an upstream.
struct Scene {
    site: Site,
    upstream: Upstream,
    server: Server,
    key: Made,
}

impl Scene {
    fn new(max_in_flight: u32) -> Self {
        let (site, upstream) = (Site::new(), Upstream::start());
        let account = site.account("10");
        let server = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
        let terms = json!({"max_in_flight": max_in_flight, "scopes": ["call", "read"]});
        let key = made(&server.client_with(&account.api_key), &terms);
        Self { site, upstream, server, key }
    }

    fn client(&self) -> Client {
        self.server.client_with(&self.key.secret)
    }

    /// Whether a slot is free.
    fn is_free(&self) -> bool {
        let response = self.client().get("/api/echo/word");
        if response.status != 200 {
            let refused = response.expect(429);
            assert_eq!(refused.error(), "too_many_requests_in_flight");
            assert!(refused.header("retry-after").is_some() && refused.text().contains("nothing was charged"));
            return false;
        }
        true
    }
}

#[test]
fn slow_requests_take_slots_until_they_end() {
    let scene = Scene::new(2);
    let started = Instant::now();
    let slow: Vec<_> = (0..2)
        .map(|number| {
            let (client, target) = (scene.client(), format!("/api/slow/{}", 8_000 + number));
            let sent = thread::spawn({
                let target = target.clone();
                move || client.get(&target).status
            });
            scene.upstream.wait_for(&target);
            sent
        })
        .collect();
    assert!(!scene.is_free());
    assert!(started.elapsed() < Duration::from_secs(8), "the machine is too slow for this test");
    // Free requests are not counted.
    assert_eq!((scene.client().get("/api/free").status, scene.client().get("/credits/balance").status), (200, 200));
    for request in slow {
        assert_eq!(request.join().unwrap(), 200);
    }
    until("both slots are free", || scene.is_free());
    // More than one, if a slot became free a moment after its response.
    assert!(metric(&scene.server, "metering_charges_total{outcome=\"too_many_requests_in_flight\"}") > 0);
    scene.site.verify();
}

#[test]
fn stream_takes_a_slot_until_its_client_leaves() {
    let scene = Scene::new(1);
    for _ in 0..3 {
        let mut stream = scene.client().open("/api/events");
        scene.upstream.wait_for_streams(1);
        scene.upstream.send("one");
        let _ = stream.read_until("one");
        assert!(!scene.is_free());
        drop(stream);
        until("the slot is free", || scene.is_free());
        scene.upstream.wait_for_streams(0);
    }
}

#[test]
fn request_whose_client_left_is_in_progress_until_the_upstream_is_done() {
    let scene = Scene::new(1);
    let mut connection = connect(scene.server.address()).unwrap();
    let target = "/api/slow/2000";
    let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\r\n", scene.key.secret);
    connection.write_all(head.as_bytes()).unwrap();
    scene.upstream.wait_for(target);
    drop(connection);
    assert!(!scene.is_free(), "the upstream still works on it");
    until("the slot is free", || scene.is_free());
}

#[test]
fn body_that_is_not_read_takes_a_slot_until_the_connection_is_closed() {
    let scene = Scene::new(1);
    let body = scene.client().open("/api/big/64");
    scene.upstream.wait_for_bodies(1);
    assert!(!scene.is_free());
    drop(body);
    until("the slot is free", || scene.is_free());
    // A stream that is read to its end frees its slot.
    assert_eq!(scene.client().get("/api/big/1").expect(200).body.len(), 1024 * 1024);
    until("the slot is free", || scene.is_free());
}

#[test]
fn failed_requests_free_their_slots() {
    let mut scene = Scene::new(1);
    for (target, status) in [("/api/status/503", 503), ("/api/status/404", 404), ("/api/moved", 302)] {
        assert_eq!(scene.client().get(target).status, status, "{target}");
        until("the slot is free", || scene.is_free());
    }
    // An upstream that dies in the middle of a stream.
    let stream = scene.client().open("/api/events");
    scene.upstream.wait_for_streams(1);
    assert!(!scene.is_free());
    scene.upstream = Upstream::start();
    let _ = stream.finish();
    for _ in 0..3 {
        until("the upstream is gone and its slot is free", || scene.client().get("/api/echo/word").status == 502);
    }
}
