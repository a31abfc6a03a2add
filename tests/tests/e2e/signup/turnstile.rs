//! Cloudflare Turnstile instead of the proof of work, with a stand-in for Cloudflare.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use metering_tests::site::Site;
use serde_json::json;

use crate::signup::{approve, initiate, server, status};

type Seen = Arc<Mutex<Vec<String>>>;

/// Responds like Cloudflare: `good` is valid once, `down` is an error on Cloudflare's side.
async fn verify(State(seen): State<Seen>, body: Bytes) -> (StatusCode, String) {
    let form = String::from_utf8_lossy(&body).into_owned();
    let mut seen = seen.lock().unwrap();
    let before = seen.contains(&form);
    seen.push(form.clone());
    if form.contains("response=down") {
        return (StatusCode::INTERNAL_SERVER_ERROR, "{}".to_owned());
    }
    if form.contains("response=nonsense") {
        return (StatusCode::OK, "<html>".to_owned());
    }
    let success = form.contains("secret=the-secret") && form.contains("response=good") && !before;
    (StatusCode::OK, json!({"success": success}).to_string())
}

fn stand_in(seen: Seen) -> SocketAddr {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, Router::new().route("/siteverify", post(verify)).with_state(seen)).await.unwrap();
        });
    });
    receiver.recv().unwrap()
}

#[test]
fn turnstile_verdict_decides() {
    let seen = Seen::default();
    let address = stand_in(Arc::clone(&seen));
    let site = Site::new();
    let url = format!("http://{address}/siteverify");
    let settings = [
        ("METERING_SIGNUP__BOT_CHECK", "turnstile"),
        ("METERING_SIGNUP__TURNSTILE__SITE_KEY", "the-site-key"),
        ("METERING_SIGNUP__TURNSTILE__SECRET", "the-secret"),
        ("METERING_SIGNUP__TURNSTILE__VERIFY_URL", url.as_str()),
    ];
    let server = server(&site, &settings);
    let client = server.client();
    assert_eq!(client.get("/signup/challenge").expect(404).error(), "not_found");
    let session = initiate(&client, "name@example.com");
    let code = session["user_code"].as_str().unwrap();
    for (token, status, error) in [
        ("", 400, "challenge_failed"),
        ("bad", 400, "challenge_failed"),
        (&"x".repeat(3_000), 400, "challenge_failed"),
        ("down", 503, "challenge_unavailable"),
        ("nonsense", 503, "challenge_unavailable"),
    ] {
        assert_eq!(approve(&client, code, token).expect(status).error(), error, "{token:.10}");
    }
    let _ = approve(&client, code, "good").expect(200);
    assert!(seen.lock().unwrap().iter().any(|form| form.contains("remoteip=127.0.0.1")));
    assert_eq!(status(&client, &session).expect(200).json()["status"], "approved");
    assert!(!server.log().contains("the-secret"), "{}", server.log());
}

#[test]
fn turnstile_requires_its_keys() {
    let site = Site::new();
    let without = site.server().set("METERING_SIGNUP__BOT_CHECK", "turnstile").run();
    assert_eq!(without.code, Some(1));
    assert!(without.stderr.contains("signup.turnstile.site_key"), "{without:?}");
    let short = site.server().set("METERING_SIGNUP__CHALLENGE_SECRET", "short").run();
    assert!(short.stderr.contains("signup.challenge_secret") && !short.stderr.contains("'short'"), "{short:?}");
}
