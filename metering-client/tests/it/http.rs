//! The client over real sockets, with services that behave and services that do not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header;
use bytes::Bytes;
use metering_client::{Client, ClientError, Events, HttpTransport};
use metering_core::{ApiKey, ClientSource, SystemRandomness};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::script::{Chunk, Script, chunks};

/// The request that a service received: the request line, the headers that matter, and the body.
type Seen = Arc<Mutex<Vec<String>>>;

const TIMEOUT: Duration = Duration::from_secs(60);

fn client(url: &str, timeout: Duration) -> (Client, ApiKey) {
    let key = ApiKey::generate(&SystemRandomness);
    let transport = HttpTransport::new(url.parse().unwrap(), timeout).unwrap();
    (Client::new(Arc::new(transport), ClientSource::Cli).with_key(key.clone()), key)
}

/// Serves until the test ends. Returns the URL.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A service that records requests and redirects those for `/away` to `elsewhere`.
async fn recorder(elsewhere: Option<String>) -> (String, Seen) {
    let seen = Seen::default();
    let record = Arc::clone(&seen);
    let router = Router::new().fallback(move |request: Request| {
        let (seen, elsewhere) = (Arc::clone(&record), elsewhere.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, 1024).await.unwrap();
            let names = ["authorization", "x-bds-client-source", "content-type", "accept", "last-event-id"];
            let values = names.map(|name| head.headers.get(name).map_or("-", |value| value.to_str().unwrap()));
            let line = format!("{} {} {} {body:?}", head.method, head.uri, values.join(" "));
            seen.lock().unwrap().push(line);
            match elsewhere.filter(|_| head.uri.path() == "/away") {
                Some(url) => {
                    http::Response::builder().status(307).header(header::LOCATION, url).body(Body::empty()).unwrap()
                }
                None => http::Response::new(Body::from(r#"{"ok":true}"#)),
            }
        }
    });
    (serve(router).await, seen)
}

/// Responds to every connection with these bytes and closes it. Returns the URL.
async fn respond_with(response: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            socket.write_all(response).await.unwrap();
            socket.shutdown().await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn requests_go_below_the_services_path_with_key_and_source() {
    let (url, seen) = recorder(None).await;
    let (client, key) = client(&format!("{url}/v1/"), TIMEOUT);
    let bearer = format!("Bearer {}", key.expose());
    assert_eq!(&client.get("/mpp/x?page=2&q=a%20b").await.unwrap().body[..], br#"{"ok":true}"#);
    client.post("/credits/topup", &serde_json::json!({"a": 1})).await.unwrap();
    client.events("/mpp/s", Some("41")).await.unwrap_err();
    let expected = [
        format!("GET /v1/mpp/x?page=2&q=a%20b {bearer} cli - */* - b\"\""),
        format!("POST /v1/credits/topup {bearer} cli application/json */* - b\"{{\\\"a\\\":1}}\""),
        format!("GET /v1/mpp/s {bearer} cli - text/event-stream 41 b\"\""),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn redirect_is_not_followed_so_the_key_does_not_leak() {
    let (elsewhere, stolen) = recorder(None).await;
    let (url, seen) = recorder(Some(elsewhere)).await;
    let (client, _) = client(&url, TIMEOUT);
    for outcome in [client.get("/away").await.map(drop), client.events("/away", None).await.map(drop)] {
        let Err(ClientError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((refusal.status.as_u16(), refusal.code.as_str()), (307, "http_307"));
    }
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert!(stolen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn broken_responses_are_distinguished() {
    use ClientError::{Garbled, Unreachable};
    let cut_error = b"HTTP/1.1 402 Payment Required\r\ncontent-length: 100\r\n\r\n{\"error\":";
    let limit = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
    // the service's response, the expected error
    type Check = fn(&ClientError) -> bool;
    let table: [(&'static [u8], Check); 7] = [
        (b"", |error| matches!(error, Unreachable(_))),
        (b"SSH-2.0-OpenSSH\r\n", |error| matches!(error, Unreachable(_))),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"cut\":",
            |error| matches!(error, Unreachable(why) if why.0.starts_with("the response was cut off")),
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cut\r\n", |error| {
            matches!(error, Unreachable(_))
        }),
        (cut_error, |error| matches!(error, ClientError::Refused(refusal) if refusal.code == "http_402")),
        (
            limit,
            |error| matches!(error, ClientError::Refused(refusal) if refusal.retry_after == Some(Duration::from_secs(7))),
        ),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", |error| matches!(error, Garbled(_))),
    ];
    for (response, is_expected) in table {
        let (client, key) = client(&respond_with(response).await, TIMEOUT);
        let outcome =
            client.get("/x").await.and_then(|response| response.json::<std::collections::BTreeMap<String, u8>>());
        let error = outcome.expect_err("the response is broken");
        assert!(is_expected(&error), "{:?}: {error:?}", String::from_utf8_lossy(response));
        assert!(!format!("{error} {error:?}").contains(&key.expose()[8..]), "{error:?}");
    }
}

#[tokio::test]
async fn closed_or_silent_service_is_unreachable_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let closed = {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", gone.local_addr().unwrap())
    };
    for url in [silent, closed] {
        let (client, _) = client(&url, Duration::from_millis(200));
        let start = std::time::Instant::now();
        let error = client.get("/x").await.unwrap_err();
        assert!(matches!(&error, ClientError::Unreachable(why) if why.0.starts_with(&url)), "{error:?}");
        assert_eq!(error.code(), None);
        assert!(start.elapsed() < TIMEOUT);
    }
}

/// The events of a stream until its end or an error.
async fn all(mut events: Events) -> (Vec<String>, Option<ClientError>) {
    let mut seen = Vec::new();
    loop {
        match events.next().await {
            Ok(Some(event)) => seen.push(format!("{} {:?} {}", event.kind, event.id.as_deref(), event.data)),
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error)),
        }
    }
}

#[tokio::test]
async fn events_are_read_in_any_chunks_and_breaks_reported() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    // the rest of the response, the events, whether it breaks off
    let table: [(&'static str, &[&str], bool); 4] = [
        (
            "connection: close\r\n\r\nid: 1\nevent: a\ndata: x\n\n: beat\n\ndata: y\r\n\r\n",
            &["a Some(\"1\") x", "message None y"],
            false,
        ),
        ("connection: close\r\n\r\nretry: 5\n\ndata: p\ndata: q\n\ndata: cut", &["message None p\nq"], false),
        ("content-length: 500\r\n\r\ndata: x\n\ndata: cut", &["message None x"], true),
        ("transfer-encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n7\r\ndata", &["message None x"], true),
    ];
    for (rest, expected, breaks) in table {
        let (client, _) = client(&respond_with(format!("{HEAD}{rest}").leak().as_bytes()).await, TIMEOUT);
        let (events, error) = all(client.events("/s", None).await.unwrap()).await;
        assert_eq!(events, expected, "{rest}");
        assert_eq!(matches!(error, Some(ClientError::Unreachable(_))), breaks, "{rest}: {error:?}");
    }
}

#[tokio::test]
async fn other_media_types_are_not_read_as_events() {
    let page = respond_with(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p>\n").await;
    let bare = respond_with(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    for url in [page, bare] {
        let error = client(&url, TIMEOUT).0.events("/s", None).await.unwrap_err();
        assert!(matches!(error, ClientError::Garbled(_)), "{error:?}");
    }
    let noise = respond_with(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: \xff\xfe\n\n",
    )
    .await;
    let (events, error) = all(client(&noise, TIMEOUT).0.events("/s", None).await.unwrap()).await;
    assert_eq!(events, [""; 0]);
    assert!(matches!(error, Some(ClientError::Garbled(_))), "{error:?}");
}

#[tokio::test]
async fn dropping_events_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        assert!(socket.read(&mut buffer).await.unwrap() > 0);
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n").await.unwrap();
        // Zero bytes: the peer has closed.
        socket.read(&mut buffer).await.unwrap_or(0)
    });
    let mut events = client(&url, TIMEOUT).0.events("/s", None).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().data, "1");
    drop(events);
    assert_eq!(tokio::time::timeout(TIMEOUT, service).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn endless_responses_and_events_are_cut_off() {
    const MEBIBYTE: usize = 1024 * 1024;
    let piece = Chunk::Data(Bytes::from(vec![b'x'; MEBIBYTE]));
    let endless = || vec![piece.clone(); 65];
    let headers = [("content-type", "text/event-stream")];
    let script = Script::default().then(chunks(200, &[], endless())).then(chunks(200, &headers, endless()));
    let client = Client::new(Arc::new(script.clone()), ClientSource::Direct);
    let error = client.get("/x").await.unwrap_err();
    assert!(matches!(error, ClientError::Garbled(_)), "{error:?}");
    assert!(client.events("/s", None).await.unwrap().next().await.is_err());
    script.all_closed().await;
}

#[tokio::test]
async fn invalid_request_is_not_sent() {
    let script = Script::default();
    let client = Client::new(Arc::new(script.clone()), ClientSource::Direct);
    assert!(!client.has_key());
    for target in ["/a b", "", "/é\n", "/x\r\nX-Evil: 1"] {
        assert!(matches!(client.get(target).await, Err(ClientError::Garbled(_))), "{target:?}");
    }
    assert!(matches!(client.events("/s", Some("a\nb")).await, Err(ClientError::Garbled(_))));
    assert!(script.requests().is_empty());
}
