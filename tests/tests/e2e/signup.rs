//! Signup without payment: the flow behind the page and terminals, and its proof of work.

mod abuse;
mod turnstile;

use std::thread;
use std::time::Duration;

use altcha::{Challenge, Payload, SolveChallengeOptions, solve_challenge};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

/// A server with an instant proof of work, and limits that do not affect the tests.
pub(crate) fn server(site: &Site, settings: &[(&str, &str)]) -> Server {
    let usual = [
        ("METERING_SIGNUP__ALTCHA_COST", "2"),
        ("METERING_SIGNUP__POLL_INTERVAL", "1s"),
        ("METERING_LIMITS__SIGNUP_PER_IP", "off"),
        ("METERING_LIMITS__SIGNUP_PER_EMAIL", "off"),
        ("METERING_LIMITS__SIGNUP_PER_EMAIL_AND_NETWORK", "off"),
        ("METERING_LIMITS__VERIFICATION_PER_IP", "off"),
        ("METERING_LIMITS__VERIFICATION_PER_NETWORK", "off"),
        ("METERING_LIMITS__POLLS_PER_IP", "off"),
    ];
    let setup = usual.iter().chain(settings).fold(site.server(), |setup, (name, value)| setup.set(name, value));
    setup.start()
}

pub(crate) fn initiate(client: &Client, email: &str) -> Value {
    client.post("/signup/initiate", &json!({"email": email, "agent_name": "agent"})).expect(201).json()
}

/// A solved challenge, as the widget sends it.
pub(crate) fn solution(client: &Client) -> String {
    let challenge = client.get("/signup/challenge").expect(200);
    encode(&solve(&serde_json::from_slice(&challenge.body).unwrap()))
}

fn solve(challenge: &Challenge) -> Payload {
    let solution = solve_challenge(SolveChallengeOptions::new(challenge)).unwrap().unwrap();
    Payload { challenge: challenge.clone(), solution }
}

fn encode(payload: &Payload) -> String {
    STANDARD.encode(serde_json::to_vec(payload).unwrap())
}

pub(crate) fn approve(client: &Client, code: &str, token: &str) -> Response {
    client.post("/verify", &json!({"user_code": code, "tos_accepted": true, "captcha_token": token}))
}

/// The status of a session, requested no sooner than allowed.
pub(crate) fn status(client: &Client, session: &Value) -> Response {
    thread::sleep(Duration::from_millis(1_050));
    client.get(&format!("/signup/status?session_token={}", session["session_token"].as_str().unwrap()))
}

#[test]
fn approved_terminal_gets_its_key_once() {
    let site = Site::verified();
    let server = server(&site, &[]);
    let client = server.client();
    let session = initiate(&client, "name@example.com");
    let code = session["user_code"].as_str().unwrap();
    assert!(
        session["verification_url_complete"].as_str().unwrap().ends_with(&format!("/verify?code={code}")),
        "{session}"
    );
    assert_eq!((&session["expires_in"], &session["interval"]), (&900.into(), &1.into()));
    assert_eq!(status(&client, &session).expect(200).json()["status"], "pending");
    let shown = client.get(&format!("/signup/pending?code={}", code.to_lowercase())).expect(200).json();
    assert_eq!((&shown["email"], &shown["agent_name"]), (&"name@example.com".into(), &"agent".into()));

    let token = solution(&client);
    assert_eq!(approve(&client, code, &token).expect(200).json()["status"], "approved");
    let approved = status(&client, &session).expect(200);
    assert_eq!(approved.json()["status"], "approved");
    assert_eq!(approved.member("credit_balance"), "2");
    let key = approved.json()["api_key"].as_str().unwrap().to_owned();
    let _ = server.client_with(&key).get("/mpp/ethPrice").expect(200);
    assert_eq!(status(&client, &session).expect(404).error(), "not_found");
    let again = client.post("/signup/initiate", &json!({"email": "NAME@Example.com", "agent_name": "agent"}));
    assert_eq!(again.expect(409).error(), "email_already_registered");
    assert!(!server.log().contains(&key) && !server.log().contains(session["session_token"].as_str().unwrap()));
}

#[test]
fn form_approval_accepts_the_widgets_field_name() {
    let site = Site::new();
    let server = server(&site, &[]);
    let client = server.client();
    for field in ["altcha", "captcha_token"] {
        let session = initiate(&client, &format!("{field}@example.com"));
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("user_code", session["user_code"].as_str().unwrap());
        form.append_pair("tos_accepted", "on").append_pair(field, &solution(&client));
        let body = form.finish();
        let head = format!(
            "POST /verify HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let response = metering_tests::client::exchange(server.address(), head.as_bytes()).unwrap();
        let _ = Response::parse(&response).unwrap().expect(200);
        assert_eq!(status(&client, &session).expect(200).json()["status"], "approved");
    }
}

#[test]
fn a_browsers_form_gets_a_page() {
    let site = Site::new();
    let server = server(&site, &[]);
    let client = server.client();
    let session = initiate(&client, "name@example.com");
    let post = |accept: &str, code: &str| {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("user_code", code)
            .append_pair("tos_accepted", "true")
            .append_pair("altcha", &solution(&client));
        let body = form.finish();
        let head = format!(
            "POST /verify HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: {accept}\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Response::parse(&metering_tests::client::exchange(server.address(), head.as_bytes()).unwrap()).unwrap()
    };
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    let refused = post(browser, "<b>BBBB").expect(400);
    assert!(
        refused.text().contains("Not approved") && refused.text().contains("href=\"/verify\""),
        "{}",
        refused.text()
    );
    assert!(refused.header("content-security-policy").is_some());
    let code = session["user_code"].as_str().unwrap();
    assert_eq!(post("application/json", "BBBB-BBBB").expect(400).error(), "invalid_code");
    let approved = post(browser, code).expect(200);
    assert!(approved.text().starts_with("<!doctype html>") && approved.text().contains("gets its key now"));
    assert_eq!(status(&client, &session).expect(200).json()["status"], "approved");
}

#[test]
fn pending_signup_survives_a_restart() {
    let site = Site::new();
    let secret = [("METERING_SIGNUP__CHALLENGE_SECRET", "a secret that servers share")];
    let first = server(&site, &secret);
    let session = initiate(&first.client(), "name@example.com");
    let token = solution(&first.client());
    first.kill();
    let second = server(&site, &secret);
    let _ = approve(&second.client(), session["user_code"].as_str().unwrap(), &token).expect(200);
    assert_eq!(status(&second.client(), &session).expect(200).json()["status"], "approved");
}

#[test]
fn bot_check_can_be_disabled() {
    let site = Site::new();
    let server = server(&site, &[("METERING_SIGNUP__BOT_CHECK", "off"), ("METERING_SIGNUP__FREE_CREDITS", "0.5")]);
    let client = server.client();
    server.expect_log("bot_check is off");
    assert_eq!(client.get("/signup/challenge").expect(404).error(), "not_found");
    let session = initiate(&client, "name@example.com");
    let body = json!({"user_code": session["user_code"], "tos_accepted": true});
    let _ = client.post("/verify", &body).expect(200);
    assert_eq!(status(&client, &session).expect(200).member("credit_balance"), "0.5");
}
