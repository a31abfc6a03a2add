//! Mail is sent only over connections that are encrypted as configured, to servers whose certificate is trusted.

use std::time::Duration;

use metering_tests::mail::{self, MailServer};
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{counted, server_with, sign_up};
use crate::support::certificates::{authority, certificate};
use crate::support::wait::until;

/// The options of a server with a certificate of a trusted or another authority, and the file with the trusted one.
fn options(site: &Site, tls: &str, trusted: bool, name: &str) -> (Value, String) {
    let (right, wrong) = (authority("authority.example"), authority("other.example"));
    let (certificate, key) = certificate(if trusted { &right } else { &wrong }, &[name]);
    let path = |path: std::path::PathBuf| path.display().to_string();
    let options = json!({
        "tls": tls,
        "certificate": path(site.write("mail.pem", &certificate.pem())),
        "key": path(site.write("mail.key", &key.serialize_pem())),
    });
    (options, path(site.write("trusted.pem", &right.pem())))
}

fn with_login(mut options: Value) -> Value {
    options["user"] = "metering".into();
    options["password"] = "correct horse".into();
    options
}

#[test]
fn mail_is_sent_over_starttls_and_tls_with_a_password() {
    if mail::are_skipped() {
        return;
    }
    // the server's kind, the setting
    for (kind, setting) in [("starttls", "starttls"), ("implicit", "required")] {
        let site = Site::new();
        let (options, trusted) = options(&site, kind, true, "localhost");
        let mail = MailServer::with(&with_login(options));
        let password = site.write("password", "correct horse\n").display().to_string();
        let settings = [
            ("METERING_SMTP__TLS", setting),
            ("METERING_SMTP__USERNAME", "metering"),
            ("METERING_SMTP__PASSWORD_FILE", &password),
            ("SSL_CERT_FILE", &trusted),
        ];
        let server = server_with(&site, &mail, &settings);
        let _ = sign_up(&server.client(), "jo@example.com");
        let message = mail.next();
        assert_eq!((&message.0["encrypted"], &message.0["user"]), (&json!(true), &json!("metering")), "{kind}");
        assert!(!server.log().contains("correct horse"));
    }
}

#[test]
fn mail_is_not_sent_to_a_server_that_cannot_be_trusted() {
    if mail::are_skipped() {
        return;
    }
    // the server's kind, the setting, the certificate's authority is trusted, its name
    let table = [
        ("starttls", "starttls", false, "localhost"),
        ("starttls", "starttls", true, "other.example"),
        ("implicit", "required", false, "localhost"),
        // STARTTLS is never skipped, and an unencrypted server is not taken for an encrypted one.
        ("none", "starttls", true, "localhost"),
        ("none", "required", true, "localhost"),
    ];
    let scenes = table.map(|(kind, setting, is_trusted, name)| {
        let site = Site::new();
        let (options, trusted) = options(&site, kind, is_trusted, name);
        let mail = MailServer::with(&options);
        let settings = [("METERING_SMTP__TLS", setting), ("SSL_CERT_FILE", &trusted), ("METERING_SMTP__TIMEOUT", "2s")];
        let server = server_with(&site, &mail, &settings);
        let account = sign_up(&server.client(), "jo@example.com");
        assert_eq!(account["credit_balance"], 0, "the signup does not depend on the mail");
        (mail, server, site)
    });
    std::thread::sleep(Duration::from_millis(2_500));
    for (mail, ..) in &scenes {
        mail.gets_nothing(Duration::ZERO);
    }
}

#[test]
fn wrong_password_is_reported_and_not_tried_again() {
    if mail::are_skipped() {
        return;
    }
    let site = Site::new();
    let (options, trusted) = options(&site, "starttls", true, "localhost");
    let mail = MailServer::with(&with_login(options));
    let settings = [
        ("METERING_SMTP__TLS", "starttls"),
        ("METERING_SMTP__USERNAME", "metering"),
        ("METERING_SMTP__PASSWORD", "a wrong horse"),
        ("SSL_CERT_FILE", &trusted),
    ];
    let server = server_with(&site, &mail, &settings);
    let _ = sign_up(&server.client(), "jo@example.com");
    until("the mail has failed", || counted(&server, "verification", "failed") == 1);
    let log = server.log();
    assert!(log.contains("535") && !log.contains("wrong horse"), "{log}");
}
