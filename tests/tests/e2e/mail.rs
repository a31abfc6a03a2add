//! Mail: verified addresses and recovery by email, through a real SMTP server.

mod alerts;
mod delivery;
mod encryption;
mod pages;
mod recovery;
mod sign_in;
mod verification;

use metering_tests::client::Client;
use metering_tests::mail::{self, MailServer};
use metering_tests::ports::free_address;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::signup::{initiate, server, status};

/// A site, and a mail server; `None` if tests of mail are disabled.
#[track_caller]
fn scene() -> Option<(Site, MailServer)> {
    (!mail::are_skipped()).then(|| (Site::new(), MailServer::start()))
}

/// A server that sends mail through `mail`, without a bot check.
pub(crate) fn server_with(site: &Site, mail: &MailServer, more: &[(&str, &str)]) -> Server {
    server_at(site, mail.port(), more)
}

/// A server that sends mail through a port of this machine.
fn server_at(site: &Site, port: u16, more: &[(&str, &str)]) -> Server {
    let port = port.to_string();
    let settings = [
        ("METERING_SMTP__HOST", "localhost"),
        ("METERING_SMTP__PORT", port.as_str()),
        ("METERING_SMTP__TLS", "none"),
        ("METERING_SMTP__FROM", "hello@acme.example"),
        ("METERING_PUBLIC_URL", "https://acme.example/"),
        ("METERING_BRAND__NAME", "Acme"),
        ("METERING_SIGNUP__BOT_CHECK", "off"),
        ("METERING_LIMITS__RECOVERY_PER_IP", "off"),
    ];
    server(site, &[settings.as_slice(), more].concat())
}

/// A server whose links lead to itself.
fn server_with_pages(site: &Site, mail: &MailServer) -> Server {
    let free = free_address();
    let url = format!("http://{free}");
    let smtp_port = mail.port().to_string();
    let settings = [
        ("METERING_SMTP__HOST", "127.0.0.1"),
        ("METERING_SMTP__PORT", smtp_port.as_str()),
        ("METERING_SMTP__TLS", "none"),
        ("METERING_SMTP__FROM", "hello@acme.example"),
        ("METERING_PUBLIC_URL", url.as_str()),
        ("METERING_SIGNUP__BOT_CHECK", "off"),
        ("METERING_SIGNUP__POLL_INTERVAL", "1s"),
    ];
    let setup = settings.iter().fold(site.server_at(&free.to_string()), |setup, (name, value)| setup.set(name, value));
    setup.start()
}

/// Signs up, and returns the response with the key.
fn sign_up(client: &Client, email: &str) -> Value {
    let session = initiate(client, email);
    let body = json!({"user_code": session["user_code"], "tos_accepted": true});
    let _ = client.post("/verify", &body).expect(200);
    status(client, &session).expect(200).json()
}

fn key_of(account: &Value) -> &str {
    account["api_key"].as_str().unwrap()
}

fn verify(client: &Client, token: &str) -> Response {
    client.post("/signup/email/verify", &json!({"token": token}))
}

/// An account with a verified address: its key.
fn verified(server: &Server, mail: &MailServer, email: &str) -> String {
    let account = sign_up(&server.client(), email);
    let _ = verify(&server.client(), mail.next().token()).expect(200);
    key_of(&account).to_owned()
}

fn balance(server: &Server, key: &str) -> Value {
    server.client_with(key).get("/credits/balance").expect(200).json()
}

/// The number of mails of a kind and outcome, as the metrics have it.
fn counted(server: &Server, kind: &str, outcome: &str) -> u32 {
    let metrics = server.client().get("/metrics").expect(200).text();
    let name = format!("metering_mails_total{{kind=\"{kind}\",outcome=\"{outcome}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
}
