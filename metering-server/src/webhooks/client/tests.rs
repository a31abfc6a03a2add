mod addresses;
mod delivery;
mod hostile;
mod receiver;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Mutex;

use async_trait::async_trait;
use metering_core::events::{WebhookSecret, signature};

use super::*;
use receiver::{Authority, Connection, Receiver};

/// The name of all receivers.
const HOST: &str = "hooks.example.com";
const ID: &str = "evt_1";
const BODY: &str = r#"{"type":"example"}"#;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Long enough for a busy machine.
const LONG: Timeouts =
    Timeouts { connect: Duration::from_secs(40), total: Duration::from_secs(60), body: Duration::from_secs(2) };

/// Short enough to wait for in a test.
const SHORT: Timeouts = Timeouts { total: Duration::from_secs(1), ..LONG };

/// A DNS server whose answers change: each lookup gets the next one; the last one repeats.
#[derive(Debug)]
struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

#[async_trait]
impl Lookup for Answers {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        assert_eq!(name, HOST);
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        answer.ok_or_else(|| io::Error::other("no such name"))
    }
}

fn answers(answers: &[&[&str]]) -> Arc<dyn Lookup> {
    let answer = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(Answers(Mutex::new(answers.iter().map(answer).collect())))
}

/// A policy that treats 127.0.0.1 as a public address. The rest of 127.0.0.0/8 is private.
fn one_public_address() -> AddressPolicy {
    AddressPolicy::with_networks(vec!["127.0.0.1/32".parse().unwrap()])
}

/// A client for customers whose names resolve to these addresses.
fn customers(authority: &Authority, addresses: &[&[&str]]) -> WebhookClient {
    customers_within(LONG, authority, addresses)
}

/// The same, with these timeouts.
fn customers_within(timeouts: Timeouts, authority: &Authority, addresses: &[&[&str]]) -> WebhookClient {
    WebhookClient::new(Some(one_public_address()), Some(authority.file.path()), answers(addresses), timeouts).unwrap()
}

/// A client for operators whose names resolve to 127.0.0.1.
fn operators() -> WebhookClient {
    WebhookClient::new(None, None, answers(&[&["127.0.0.1"]]), LONG).unwrap()
}

/// Sends a webhook to a URL, which need not be one that customers may register.
async fn send(client: &WebhookClient, url: &str) -> Result<WebhookResponse, WebhookFailure> {
    let url = WebhookUrl::parse_trusted(url).unwrap();
    let timestamp = Timestamp::from_unix_millis(1_795_248_000_900);
    let secret = WebhookSecret::parse(SECRET).unwrap();
    let signature = signature(&[&secret], ID, timestamp, BODY.as_bytes());
    let body = Bytes::from_static(BODY.as_bytes());
    client.send(WebhookRequest { url: &url, id: ID, timestamp, signature: &signature, body }).await
}

fn status(response: Result<WebhookResponse, WebhookFailure>) -> Result<u16, WebhookFailure> {
    response.map(|response| response.status.as_u16())
}

/// Responds with 204.
fn accept(mut connection: Connection) {
    let _ = connection.send("HTTP/1.1 204 No Content\r\n\r\n");
}
