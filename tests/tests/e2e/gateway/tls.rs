//! HTTPS upstreams: requests are forwarded only if the certificate is trusted and matches the host name.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

use metering_tests::site::Site;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::certificates::{authority, certificate};
use crate::support::upstream::catalogue;
use crate::support::wire::{amount, balance};

/// Starts an upstream with a certificate, and returns its port. Its responses have the number of requests on their
/// connection.
fn serve((certificate, key): (rcgen::Certificate, rcgen::KeyPair)) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
            std::thread::spawn(move || {
                for request in 1.. {
                    let mut line = String::new();
                    while line != "\r\n" {
                        line.clear();
                        if stream.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nrequest {request}");
                    stream.get_mut().write_all(response.as_bytes()).unwrap();
                }
            });
        }
    });
    port
}

#[test]
fn upstream_is_trusted_by_certificate_and_name() {
    let site = Site::verified();
    let account = site.account("1");
    let (right, wrong) = (authority("authority.example"), authority("other.example"));
    let trusted = site.write("trusted.pem", &right.pem()).display().to_string();
    let localhost = serve(certificate(&right, &["localhost"]));
    let other_name = serve(certificate(&right, &["other.example"]));
    let other_authority = serve(certificate(&wrong, &["localhost"]));
    let server = |port: u16| {
        let url = format!("https://localhost:{port}");
        // Each worker has its own connections to the upstream.
        let one_worker = site.server().set("METERING_WORKERS", "1").set("SSL_CERT_FILE", &trusted);
        one_worker.args(["--upstream", &url]).args(catalogue(&site)).start()
    };
    let accepted = server(localhost);
    let client = accepted.client_with(&account.api_key);
    for request in 1..=2 {
        assert_eq!(client.get("/api/echo").expect(200).text(), format!("request {request}"), "one connection");
    }
    drop(accepted);
    for port in [other_name, other_authority] {
        let refused = server(port);
        let client = refused.client_with(&account.api_key);
        assert_eq!(client.get("/api/echo").expect(502).error(), "upstream_unreachable");
        assert_eq!(balance(&client), amount(7_198 * 1_000_000), "it was refunded");
    }
}
