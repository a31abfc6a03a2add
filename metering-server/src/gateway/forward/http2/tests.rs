//! Upstreams that speak HTTP/2: one of hyper's, and one that writes single frames.

use std::convert::Infallible;
use std::num::NonZeroUsize;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::server::conn::{http1, http2 as server};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::super::pool::Pool;
use super::*;
use crate::config::{GatewayConfig, Http2};
use crate::gateway::forward::HttpUpstream;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// The requests that hyper's server received, and when it responds.
struct Seen {
    connections: AtomicUsize,
    /// One permit for each response. Requests for `/now` need none.
    responses: Semaphore,
}

impl Seen {
    fn new() -> Arc<Self> {
        Arc::new(Self { connections: AtomicUsize::new(0), responses: Semaphore::new(0) })
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Echoes the request, with a trailer.
async fn respond(
    seen: Arc<Seen>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    if head.uri.path() != "/now" {
        seen.responses.acquire().await.unwrap().forget();
    }
    let has_host = head.headers.contains_key(header::HOST);
    let body = String::from_utf8(body.to_vec()).unwrap();
    let text = format!("{:?} {} {} {has_host} {body}", head.version, head.method, head.uri);
    let mut trailers = HeaderMap::new();
    trailers.insert(HeaderName::from_static("x-cost"), HeaderValue::from_static("7"));
    let frames = [Ok(Frame::data(Bytes::from(text))), Ok(Frame::trailers(trailers))];
    Ok(Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()))
}

/// Serves HTTP/2 on a connection.
async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: S, streams: u32, seen: Arc<Seen>) {
    seen.connections.fetch_add(1, Ordering::Relaxed);
    let service = service_fn(move |request| respond(Arc::clone(&seen), request));
    let mut builder = server::Builder::new(TokioExecutor::new());
    drop(builder.max_concurrent_streams(streams).serve_connection(TokioIo::new(stream), service).await);
}

/// Starts hyper's server without TLS. Returns its URL.
async fn plain_server(streams: u32, seen: &Arc<Seen>) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let seen = Arc::clone(seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, streams, Arc::clone(&seen)));
        }
    });
    url
}

fn upstream_at(url: &Url, http2: Http2) -> HttpUpstream {
    HttpUpstream::new(url, None, (&GatewayConfig::default(), http2), ONE).unwrap()
}

fn connections_of(upstream: &HttpUpstream) -> &Http2Connections {
    upstream.pool.http2.as_deref().unwrap()
}

fn request(method: Method, path: &str) -> http::request::Parts {
    Request::builder().method(method).uri(path).body(()).unwrap().into_parts().0
}

/// The text of a response, and its trailer.
async fn call(upstream: &HttpUpstream, head: &http::request::Parts, body: &'static str) -> (String, Option<String>) {
    let response = upstream.call(head, Bytes::from_static(body.as_bytes()), false).await;
    let response = response.map_err(|problem| problem.code()).unwrap();
    let read = response.into_body().collect().await.map_err(|_| "it breaks off").unwrap();
    let cost =
        read.trailers().and_then(|trailers| trailers.get("x-cost")).map(|cost| cost.to_str().unwrap().to_owned());
    (String::from_utf8(read.to_bytes().to_vec()).unwrap(), cost)
}

#[tokio::test]
async fn requests_share_a_connection_without_tls_and_trailers_pass() {
    let seen = Seen::new();
    let url = plain_server(50, &seen).await;
    let upstream = upstream_at(&url, Http2::Always);
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let now = request(Method::POST, "/now?a=1");
    let text = format!("HTTP/2.0 POST http://{authority}/now?a=1 false body");
    assert_eq!(call(&upstream, &now, "body").await, (text, Some("7".to_owned())));
    let later = request(Method::GET, "/later");
    let calls = futures_util::future::join_all((0..20).map(|_| call(&upstream, &later, "")));
    let permits = async { seen.responses.add_permits(20) };
    let (responses, ()) = tokio::join!(calls, permits);
    assert_eq!((responses.len(), seen.connections()), (20, 1));
    let open = connections_of(&upstream);
    open.expire(Duration::from_secs(60));
    assert_eq!(open.count(), 1, "it was just used");
    open.expire(Duration::ZERO);
    assert_eq!(open.count(), 0);
    call(&upstream, &now, "").await;
    assert_eq!(seen.connections(), 2);
}

#[tokio::test]
async fn another_connection_is_opened_when_all_streams_are_in_use() {
    let seen = Seen::new();
    let upstream = upstream_at(&plain_server(2, &seen).await, Http2::Always);
    call(&upstream, &request(Method::GET, "/now"), "").await;
    // Its driver reads the limit in its next turn.
    while lock(&connections_of(&upstream).places[0].open)[0].streams.allowed.load(Ordering::Relaxed) != 2 {
        tokio::task::yield_now().await;
    }
    let later = request(Method::GET, "/later");
    let calls = futures_util::future::join_all((0..3).map(|_| call(&upstream, &later, "")));
    let permits = async {
        while seen.connections() < 2 {
            tokio::task::yield_now().await;
        }
        seen.responses.add_permits(3);
    };
    tokio::join!(calls, permits);
    assert_eq!(seen.connections(), 2);
}

#[tokio::test]
async fn tls_decides_unless_http2_is_used_never_or_always() {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (issued.cert.der().clone(), issued.signing_key.serialize_der());
    // how HTTP/2 is used, what the upstream offers, the version of HTTP; None if the upstream cannot be used
    let table: [(Http2, &[&str], Option<&str>); 7] = [
        (Http2::Auto, &["h2", "http/1.1"], Some("HTTP/2.0")),
        (Http2::Auto, &["http/1.1"], Some("HTTP/1.1")),
        (Http2::Auto, &[], Some("HTTP/1.1")),
        (Http2::Never, &["h2", "http/1.1"], Some("HTTP/1.1")),
        (Http2::Always, &["h2", "http/1.1"], Some("HTTP/2.0")),
        (Http2::Always, &["http/1.1"], None),
        (Http2::Always, &[], None),
    ];
    for (http2, offered, version) in table {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.clone()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let server = server.unwrap().with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
        let mut server = server.unwrap();
        server.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let (acceptor, seen) = (TlsAcceptor::from(Arc::new(server)), Seen::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("https://localhost:{}", listener.local_addr().unwrap().port())).unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let seen = Arc::clone(&seen);
                if stream.get_ref().1.alpn_protocol() == Some(&b"h2"[..]) {
                    tokio::spawn(serve(stream, 10, seen));
                } else {
                    let service = service_fn(move |request| respond(Arc::clone(&seen), request));
                    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                }
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let client = client.with_root_certificates(roots).with_no_client_auth();
        let mut upstream = upstream_at(&url, http2);
        let uri = upstream.pool.upstream().clone();
        upstream.pool = Arc::new(Pool::trusting(&client, uri, Duration::from_secs(5), http2, ONE, ONE));
        let response = upstream.call(&request(Method::GET, "/now"), Bytes::new(), false).await;
        let text = match response {
            Ok(response) => response.into_body().collect().await.ok().map(|body| body.to_bytes().to_vec()),
            Err(_) => None,
        };
        let text = text.map(|text| String::from_utf8(text).unwrap());
        assert_eq!(text.as_deref().and_then(|text| text.split(' ').next()), version, "{http2:?} {offered:?}");
    }
}

/// An upstream's reaction to the second request of a connection.
#[derive(Debug, Clone, Copy)]
enum Second {
    /// It closes the connection soon, and announces that the first request was the last one.
    GoAway,
    /// It resets the stream with this code.
    Reset(u8),
    /// It closes the connection.
    Close,
}

/// The head of a frame.
fn frame(length: u8, kind: u8, flags: u8, stream: u8) -> [u8; 9] {
    [0, 0, length, kind, flags, 0, 0, 0, stream]
}

/// Responds to all requests of a connection with 200, except perhaps to the second one.
async fn write_frames(mut stream: TcpStream, second: Option<Second>) -> std::io::Result<()> {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    stream.write_all(&frame(0, SETTINGS, 0, 0)).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let [_, high, low, kind, flags, _, _, _, id] = head;
        let mut payload = vec![0; usize::from(u16::from_be_bytes([high, low]))];
        stream.read_exact(&mut payload).await?;
        let written = match (kind, flags & 1, id, second) {
            (SETTINGS, 0, _, _) => frame(0, SETTINGS, 1, 0).to_vec(),
            (HEADERS, _, 3, Some(Second::GoAway)) => [&frame(8, 7, 0, 0)[..], &[0, 0, 0, 1, 0, 0, 0, 0]].concat(),
            (HEADERS, _, 3, Some(Second::Reset(code))) => [&frame(4, 3, 0, 3)[..], &[0, 0, 0, code]].concat(),
            (HEADERS, _, 3, Some(Second::Close)) => return Ok(()),
            // `:status: 200`, with which the stream ends.
            (HEADERS, _, id, _) => [&frame(1, HEADERS, 5, id)[..], &[0x88]].concat(),
            _ => continue,
        };
        stream.write_all(&written).await?;
    }
}

/// Starts a server whose first connection does this with its second request. Returns its URL.
async fn frame_server(second: Second) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let mut second = Some(second);
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(write_frames(stream, second.take()));
        }
    });
    url
}

#[tokio::test]
async fn request_that_was_not_processed_is_sent_again() {
    const REFUSED_STREAM: u8 = 7;
    const INTERNAL_ERROR: u8 = 2;
    // what the upstream does, whether a POST is sent again, and a GET
    let table = [
        (Second::GoAway, [true, true]),
        (Second::Reset(REFUSED_STREAM), [true, true]),
        (Second::Reset(INTERNAL_ERROR), [false, false]),
        (Second::Close, [false, true]),
    ];
    for (second, expected) in table {
        for (method, is_sent_again) in [Method::POST, Method::GET].into_iter().zip(expected) {
            let upstream = upstream_at(&frame_server(second).await, Http2::Always);
            let head = request(method, "/");
            for expected in [true, is_sent_again] {
                let response = upstream.call(&head, Bytes::new(), false).await;
                let is_ok = response.is_ok_and(|response| response.status() == StatusCode::OK);
                assert_eq!(is_ok, expected, "{second:?} {}", head.method);
            }
        }
    }
}
