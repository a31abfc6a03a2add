//! Dishonest signups: guessed codes and floods.

use metering_tests::site::Site;
use serde_json::json;

use crate::signup::{approve, initiate, server, solution};

#[test]
fn wrong_code_costs_a_solution_but_not_the_session() {
    let site = Site::new();
    let server = server(&site, &[]);
    let client = server.client();
    let session = initiate(&client, "name@example.com");
    let code = session["user_code"].as_str().unwrap();
    let token = solution(&client);
    let wrong = if code == "BCDF-GHJK" { "BCDF-GHJL" } else { "BCDF-GHJK" };
    assert_eq!(approve(&client, wrong, &token).expect(400).error(), "invalid_code");
    assert_eq!(approve(&client, code, &token).expect(400).error(), "challenge_failed", "a guess uses up a solution");
    let body = json!({"user_code": code, "tos_accepted": false, "captcha_token": solution(&client)});
    assert_eq!(client.post("/verify", &body).expect(400).error(), "terms_not_accepted");
    assert_eq!(client.get("/signup/pending?code=BCDF").expect(400).error(), "invalid_code");
    let _ = approve(&client, code, &solution(&client)).expect(200);
}

#[test]
fn too_many_signup_requests_are_refused() {
    let site = Site::new();
    let settings = [
        ("METERING_SIGNUP__POLL_INTERVAL", "30s"),
        ("METERING_LIMITS__SIGNUP_PER_EMAIL", "2/1h"),
        ("METERING_LIMITS__SIGNUP_PER_NETWORK", "3/1h"),
        ("METERING_LIMITS__VERIFICATION_PER_IP", "2/1h"),
        ("METERING_LIMITS__VERIFICATION_PER_NETWORK", "3/1h"),
        ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let server = server(&site, &settings);
    let from = |address: &str| server.client().with_header("X-Forwarded-For", address);
    let session = initiate(&from("1.1.1.1"), "name@example.com");
    let poll = format!("/signup/status?session_token={}", session["session_token"].as_str().unwrap());
    let _ = from("1.1.1.1").get(&poll).expect(200);
    let again = from("9.9.9.9").get(&poll).expect(429);
    assert_eq!((again.error().as_str(), again.header("retry-after").is_some()), ("rate_limited", true));

    let _ = initiate(&from("2.2.2.2"), "name@example.com");
    let begin = |address: &str, email: &str| {
        from(address).post("/signup/initiate", &json!({"email": email, "agent_name": "agent"})).status
    };
    assert_eq!(begin("3.3.3.3", "NAME@example.com"), 429, "limited per email address, from any client");
    assert_eq!((begin("5.5.5.1", "a@example.com"), begin("5.5.5.2", "b@example.com")), (201, 201));
    assert_eq!(
        (begin("5.5.5.3", "c@example.com"), begin("5.5.5.4", "d@example.com")),
        (201, 429),
        "limited per network"
    );
    let look = |address: &str| from(address).get("/signup/pending?code=BCDF-GHJK").status;
    assert_eq!((look("7.7.7.7"), look("7.7.7.7"), look("7.7.7.7")), (400, 400, 429), "codes limited per address");
    assert_eq!((look("7.7.7.8"), look("7.7.7.9"), look("8.8.8.8")), (400, 429, 400), "codes limited per network");
}

#[test]
fn others_cannot_block_an_email_address_from_signing_up() {
    let site = Site::new();
    let usual = [("METERING_SIGNUP__BOT_CHECK", "off"), ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let server = usual.into_iter().fold(site.server(), |setup, (name, value)| setup.set(name, value)).start();
    let begin = |address: &str| {
        let client = server.client().with_header("X-Forwarded-For", address);
        client.post("/signup/initiate", &json!({"email": "name@example.com", "agent_name": "agent"})).status
    };
    let responses: Vec<_> = (0..30).map(|host| begin(&format!("6.6.6.{}", host % 3))).collect();
    assert_eq!(responses.iter().filter(|status| **status == 201).count(), 10, "{responses:?}");
    assert_eq!(begin("1.1.1.1"), 201);
}
