//! The receivers themselves: each accepts what `metering_core` signs and rejects the rest. Otherwise "verified" in
//! other tests would prove nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metering_core::events::{WebhookSecret, signature};
use metering_core::{Clock as _, SystemClock, SystemRandomness, Timestamp};
use metering_tests::client::connect;
use metering_tests::webhooks::{Library, Receiver};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;

use crate::support::certificates::Loopback;

const ID: &str = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W";
const BODY: &str = r#"{"type": "credits.low", "data": {"balance": "0.1000000000", "name": "Zoë"}}"#;
/// The tolerance of the specification's libraries between a timestamp and the receiver's clock.
const TOLERANCE_SECONDS: i64 = 5 * 60;

fn new_secret() -> WebhookSecret {
    WebhookSecret::generate(&SystemRandomness)
}

/// Gives a receiver these secrets.
#[track_caller]
fn share(receiver: &mut Receiver, secrets: &[&WebhookSecret]) {
    let exposed: Vec<_> = secrets.iter().map(|secret| secret.expose()).collect();
    receiver.set_secrets(&exposed.iter().map(|text| text.as_str()).collect::<Vec<_>>());
}

/// This many seconds from now.
fn in_seconds(seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis(SystemClock.now().unix_millis() + seconds * 1_000)
}

/// Headers of a message with this signature.
fn signed(timestamp: Timestamp, signature: &str) -> Vec<(&'static str, String)> {
    vec![
        ("webhook-id", ID.to_owned()),
        ("webhook-timestamp", timestamp.unix_seconds().to_string()),
        ("webhook-signature", signature.to_owned()),
    ]
}

/// A client that trusts one authority.
struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    fn trusting(authority: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Self(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
    }

    fn open(&self, receiver: &Receiver, host: &'static str) -> StreamOwned<ClientConnection, TcpStream> {
        let connection = ClientConnection::new(Arc::clone(&self.0), host.try_into().unwrap()).unwrap();
        StreamOwned::new(connection, connect(receiver.address()).unwrap())
    }

    /// Posts a body, and returns the status.
    #[track_caller]
    fn post(&self, receiver: &Receiver, headers: &[(&'static str, String)], body: &str) -> u16 {
        let mut stream = self.open(receiver, "localhost");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = "POST /hooks?a=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        write!(stream, "{head}{headers}Content-Length: {length}\r\n\r\n{body}").unwrap();
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{line:?}"))
    }
}

/// A receiver of each library, and a client that trusts them; empty if these tests are disabled.
fn with_tls() -> (Vec<Receiver>, TlsClient) {
    let files = Loopback::new();
    let receivers = Library::ALL.into_iter().filter_map(|library| Receiver::start(library, Some(&files.identity)));
    (receivers.collect(), TlsClient::trusting(&files.authority))
}

#[test]
fn a_right_signature_is_accepted() {
    let (receivers, client) = with_tls();
    for mut receiver in receivers {
        let (secret, now) = (new_secret(), in_seconds(0));
        share(&mut receiver, &[&secret]);
        let mut headers = signed(now, &signature(&[&secret], ID, now, BODY.as_bytes()));
        headers.push(("User-Agent", "a-test/1".to_owned()));
        assert_eq!(client.post(&receiver, &headers, BODY), 204);
        let received = receiver.next();
        assert!(received.verified(), "{received:?}");
        assert_eq!((received.method(), received.path(), received.error()), ("POST", "/hooks?a=1", ""));
        assert_eq!((received.id(), received.timestamp(), received.signatures()), (ID, Some(now.unix_seconds()), 1));
        assert_eq!(received.text(), BODY);
        assert_eq!(received.body()["data"], json!({"balance": "0.1000000000", "name": "Zoë"}));
        assert_eq!(received.header("user-agent"), "a-test/1");
        receiver.gets_nothing(Duration::ZERO);
    }
}

#[test]
fn everything_else_is_rejected_with_a_reason() {
    const NO_MATCH: &str = "No matching signature found";
    const MISSING: &str = "Missing required headers";
    let (receivers, client) = with_tls();
    for mut receiver in receivers {
        let (secret, other, now) = (new_secret(), new_secret(), in_seconds(0));
        share(&mut receiver, &[&secret]);
        let sign = |secret: &WebhookSecret, id: &str, at: Timestamp| signature(&[secret], id, at, BODY.as_bytes());
        let right = |at: Timestamp| signed(at, &sign(&secret, ID, at));
        let without = |name: &str| right(now).into_iter().filter(|(header, _)| *header != name).collect::<Vec<_>>();
        let other_scheme = sign(&secret, ID, now).replace("v1,", "v1a,");
        // Room for the time that a busy machine takes to send it.
        let (old, early) = (in_seconds(-TOLERANCE_SECONDS - 5), in_seconds(TOLERANCE_SECONDS + 60));
        let cases = [
            ("another secret", signed(now, &sign(&other, ID, now)), BODY, NO_MATCH),
            ("another id", signed(now, &sign(&secret, "msg_other", now)), BODY, NO_MATCH),
            ("another time", signed(now, &sign(&secret, ID, in_seconds(-1))), BODY, NO_MATCH),
            ("another body", right(now), "{}", NO_MATCH),
            ("another scheme", signed(now, &other_scheme), BODY, NO_MATCH),
            ("too old", right(old), BODY, "Message timestamp too old"),
            ("too new", right(early), BODY, "Message timestamp too new"),
            ("not too old", right(in_seconds(60 - TOLERANCE_SECONDS)), BODY, ""),
            ("no id", without("webhook-id"), BODY, MISSING),
            ("no timestamp", without("webhook-timestamp"), BODY, MISSING),
            ("no signature", without("webhook-signature"), BODY, MISSING),
            ("no headers", vec![], BODY, MISSING),
        ];
        for (case, headers, body, error) in cases {
            let status = client.post(&receiver, &headers, body);
            let received = receiver.next();
            assert_eq!((received.error(), received.verified()), (error, error.is_empty()), "{case}: {received:?}");
            assert_eq!(status, if error.is_empty() { 204 } else { 400 }, "{case}");
        }
    }
}

#[test]
fn one_of_two_signatures_is_enough() {
    let (receivers, client) = with_tls();
    for mut receiver in receivers {
        let ([old, new, other], now) = ([new_secret(), new_secret(), new_secret()], in_seconds(0));
        let both = signature(&[&old, &new], ID, now, BODY.as_bytes());
        let cases = [(vec![&old], Some(0)), (vec![&new], Some(0)), (vec![&other, &new], Some(1)), (vec![&other], None)];
        for (secrets, index) in cases {
            share(&mut receiver, &secrets);
            let status = client.post(&receiver, &signed(now, &both), BODY);
            let received = receiver.next();
            assert_eq!((received.secret(), received.verified()), (index, index.is_some()), "{received:?}");
            assert_eq!((status, received.signatures()), (if index.is_some() { 204 } else { 400 }, 2));
        }
    }
}
