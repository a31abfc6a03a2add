//! The endpoint over gRPC, as Envoy calls it: which proxies may call it, how often a request is charged, and which
//! messages are invalid.

use std::collections::HashMap;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use metering_tests::site::Site;
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::support::upstream::catalogue;
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

type Headers<'h> = &'h [(&'h str, &'h str)];

/// `CheckRequest`, with the messages in it.
#[derive(Clone, PartialEq, Message)]
struct Check {
    #[prost(message, optional, tag = "1")]
    attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Message)]
struct Attributes {
    #[prost(message, optional, tag = "4")]
    request: Option<SentCheck>,
}

#[derive(Clone, PartialEq, Message)]
struct SentCheck {
    #[prost(message, optional, tag = "2")]
    http: Option<Http>,
}

#[derive(Clone, PartialEq, Message)]
struct Http {
    #[prost(string, tag = "2")]
    method: String,
    #[prost(map = "string, string", tag = "3")]
    headers: HashMap<String, String>,
    #[prost(string, tag = "4")]
    path: String,
}

/// `CheckResponse`, only the fields of a refusal.
#[derive(Clone, PartialEq, Message)]
struct Checked {
    #[prost(message, optional, tag = "1")]
    status: Option<Code>,
    #[prost(message, optional, tag = "2")]
    denied: Option<Denied>,
}

#[derive(Clone, PartialEq, Message)]
struct Code {
    #[prost(int32, tag = "1")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Denied {
    #[prost(message, optional, tag = "1")]
    status: Option<Code>,
    #[prost(string, tag = "3")]
    body: String,
}

/// An open connection of HTTP/2 without TLS.
struct Channel {
    runtime: Runtime,
    sender: http2::SendRequest<Full<Bytes>>,
}

impl Channel {
    fn open(address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let sender = runtime.block_on(async {
            let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
            let (sender, connection) = http2::handshake(TokioExecutor::new(), socket).await.unwrap();
            tokio::spawn(connection);
            sender
        });
        Self { runtime, sender }
    }

    /// Calls a method, and returns the status of the call and its message; nothing if the connection fails.
    fn call(&mut self, path: &str, body: Vec<u8>) -> Option<(String, Bytes)> {
        let Self { runtime, sender } = self;
        let request = Request::post(format!("http://metering{path}")).header("content-type", "application/grpc");
        let request = request.header("te", "trailers").body(Full::new(body.into())).unwrap();
        runtime.block_on(async {
            let response = sender.send_request(request).await.ok()?;
            let in_head = response.headers().get("grpc-status").cloned();
            let collected = response.into_body().collect().await.ok()?;
            let status = in_head.or_else(|| collected.trailers()?.get("grpc-status").cloned());
            Some((status.map_or_else(String::new, |status| status.to_str().unwrap().to_owned()), collected.to_bytes()))
        })
    }

    /// Asks about a request: nothing for a yes, else the status and the body of the refusal.
    fn check(&mut self, key: &str, path: &str, headers: Headers<'_>) -> Option<(i32, String)> {
        let (status, message) = self.call(CHECK, framed(&question(key, path, headers))).unwrap();
        assert_eq!(status, "0");
        let checked = Checked::decode(message.slice(5..)).unwrap();
        let denied = checked.denied.map(|denied| (denied.status.unwrap_or_default().code, denied.body));
        assert_eq!(checked.status.unwrap_or_default().code == 0, denied.is_none());
        denied
    }
}

fn question(key: &str, path: &str, headers: Headers<'_>) -> Vec<u8> {
    let key = format!("Bearer {key}");
    let own = [("authorization", key.as_str()), (":path", path)];
    let headers = headers.iter().chain(&own).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let http = Http { method: "GET".to_owned(), headers, path: path.to_owned() };
    Check { attributes: Some(Attributes { request: Some(SentCheck { http: Some(http) }) }) }.encode_to_vec()
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

#[test]
fn a_request_is_charged_once_for_each_id_of_envoy() {
    let site = Site::verified();
    let account = site.account("1");
    let server = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let server = server.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").start();
    let client = server.client_with(&account.api_key);
    let mut envoy = Channel::open(server.address());
    for _ in 0..3 {
        assert_eq!(envoy.check(&account.api_key, "/api/echo/word", &[("x-request-id", "r1")]), None);
    }
    assert_eq!(balance(&client), amount(CREDIT - BASE_CALL), "retries are not charged");
    // headers, path, status, code
    let table: [(Headers<'_>, &str, i32, &str); 6] = [
        (&[("x-request-id", "r1")], "/api/echo/word", 409, "idempotency_key_used"),
        (&[("x-original-uri", "/api/free")], "/api/echo/word", 400, "validation_failed"),
        (&[("x-http-method-override", "DELETE")], "/api/echo/word", 400, "validation_failed"),
        (&[], "/api/echo/word#a", 400, "validation_failed"),
        (&[], "", 400, "validation_failed"),
        (&[], "/api/unheard-of", 404, "unknown_route"),
    ];
    for (headers, path, status, code) in table {
        let (found, body) = envoy.check(&account.api_key, path, headers).unwrap();
        assert_eq!((found, body.contains(code)), (status, true), "{path}: {body}");
    }
    assert_eq!(envoy.check("sk_live_no", "/api/echo/word", &[]).unwrap().0, 401);
    assert_eq!(envoy.check("sk_live_no", "/api/free", &[]), None);
    assert_eq!(balance(&client), amount(CREDIT - BASE_CALL));
    let metrics = client.get("/metrics").expect(200).text();
    let refused = "metering_http_request_seconds_count{surface=\"authorize\",status=\"4xx\"} 7";
    assert!(metrics.contains(refused), "{metrics}");
}

#[test]
fn what_is_no_question_has_a_status_of_grpc() {
    let site = Site::new();
    let server = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let server = server.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").start();
    let mut envoy = Channel::open(server.address());
    let message = question("sk_live_no", "/api/free", &[]);
    let compressed = [&[1], &framed(&message)[1..]].concat();
    assert_eq!(envoy.call(CHECK, compressed).unwrap().0, "12");
    assert_eq!(envoy.call(CHECK, Vec::new()).unwrap().0, "12");
    assert_eq!(envoy.call(CHECK, vec![0; 10_000_000]).map(|(status, _)| status), Some("3".to_owned()));
    // Also the rest of HTTP can be spoken, as HTTP/2.
    assert!(envoy.call("/health", Vec::new()).is_some());
}

#[test]
fn only_trusted_proxies_may_speak_http2_without_tls() {
    let site = Site::new();
    let server = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let server = server.set("METERING_HTTP__TRUSTED_PROXIES", "192.0.2.1").start();
    let question = framed(&question("sk_live_no", "/api/free", &[]));
    assert_eq!(Channel::open(server.address()).call(CHECK, question), None);
    let _ = server.client().get("/health").expect(200);
}
