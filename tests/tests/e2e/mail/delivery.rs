//! Mail is tried again after failures that may pass, and slows down nothing else.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use metering_tests::mail::{self, MailServer};
use metering_tests::ports::free_address;
use metering_tests::site::Site;
use serde_json::json;

use super::{counted, key_of, scene, server_at, server_with, sign_up, verified, verify};
use crate::support::wait::until;

#[test]
fn mail_is_sent_once_the_server_is_up_again() {
    if mail::are_skipped() {
        return;
    }
    let site = Site::new();
    let port = free_address().port();
    let server = server_at(&site, port, &[]);
    let account = sign_up(&server.client(), "jo@example.com");
    let mail = MailServer::with(&json!({"tls": "none", "port": port}));
    let message = mail.next();
    assert_eq!(verify(&server.client(), message.token()).expect(200).json()["org_id"], account["org_id"]);
    assert_eq!(counted(&server, "verification", "failed"), 0);
}

#[test]
fn refusals_for_now_are_tried_again_and_others_are_not() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let rejected = sign_up(&server.client(), "rejected@example.com");
    assert_eq!(mail.next_line()["refused"], "rejected@example.com");
    until("the mail has failed", || counted(&server, "verification", "failed") == 1);
    let _ = sign_up(&server.client(), "busy@example.com");
    for _ in 0..2 {
        assert_eq!(mail.next_line()["refused"], "busy@example.com", "and the other address is not tried again");
    }
    assert_eq!(mail.next().to(), "busy@example.com");
    until("the mail is counted", || counted(&server, "verification", "sent") == 1);
    let log = server.log();
    let org = rejected["org_id"].as_str().unwrap();
    assert!(log.contains(org) && log.contains("550"), "the operator can find the account: {log}");
    assert!(!log.contains("@example.com"), "{log}");
}

#[test]
fn mail_that_waits_for_another_attempt_holds_up_no_other() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    for number in 0..9 {
        let _ = sign_up(&server.client(), &format!("full{number}@example.com"));
    }
    let _ = sign_up(&server.client(), "jo@example.com");
    assert_eq!(mail.next().to(), "jo@example.com");
    assert_eq!(counted(&server, "verification", "failed"), 0, "the others are still tried");
}

#[test]
fn recovery_does_not_wait_for_other_mail() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[("METERING_SMTP__TIMEOUT", "1m")]);
    let _ = verified(&server, &mail, "jo@example.com");
    for number in 0..9 {
        let _ = sign_up(&server.client(), &format!("slow{number}@example.com"));
    }
    let _ = server.client().post("/api-key/recover/email", &json!({"email": "jo@example.com"})).expect(202);
    assert_eq!(mail.next().to(), "jo@example.com");
    assert_eq!(counted(&server, "verification", "sent"), 1, "all others still wait");
}

#[test]
fn a_slow_mail_server_slows_no_signup() {
    if mail::are_skipped() {
        return;
    }
    let (site, mail) = (Site::new(), MailServer::with(&json!({"tls": "none", "delay_seconds": 3})));
    let mut server = server_with(&site, &mail, &[]);
    let started = Instant::now();
    let accounts: Vec<_> =
        (0..3).map(|number| sign_up(&server.client(), &format!("user{number}@example.com"))).collect();
    let requests = Instant::now();
    for account in &accounts {
        let _ = server.client_with(key_of(account)).get("/credits/balance").expect(200);
    }
    let _ = server.client().post("/api-key/recover/email", &json!({"email": "user0@example.com"})).expect(202);
    assert!(requests.elapsed() < Duration::from_millis(2_900), "{:?}", requests.elapsed());
    // Each signup waits a second before it polls its status. Signups that waited for their mail would take twelve
    // seconds.
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
    // An orderly shutdown sends what is queued.
    server.terminate();
    assert!(server.wait().success());
    let mut recipients = [mail.next(), mail.next(), mail.next()].map(|message| message.to().to_owned());
    recipients.sort();
    assert_eq!(recipients, ["user0@example.com", "user1@example.com", "user2@example.com"]);
}

#[test]
fn a_shutdown_does_not_wait_for_a_dead_mail_server() {
    if mail::are_skipped() {
        return;
    }
    let site = Site::new();
    // Accepts connections, and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = server_at(&site, silent.local_addr().unwrap().port(), &[]);
    let _ = sign_up(&server.client(), "jo@example.com");
    let stopping = Instant::now();
    server.terminate();
    assert!(server.wait().success());
    assert!(stopping.elapsed() < Duration::from_secs(50), "{:?}", stopping.elapsed());
    server.expect_log("mail was still waiting");
}
