//! Receivers that are broken, slow or hostile. None of them blocks the client, or makes it read forever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Instant;

use super::*;

/// Sends a webhook to a receiver that responds like this, and measures how long it takes.
async fn sent_to(respond: impl Fn(Connection) + Send + Sync + 'static) -> (Result<u16, WebhookFailure>, Duration) {
    sent_within(LONG, respond).await
}

/// The same, with these timeouts.
async fn sent_within(
    timeouts: Timeouts,
    respond: impl Fn(Connection) + Send + Sync + 'static,
) -> (Result<u16, WebhookFailure>, Duration) {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], respond);
    let client = customers_within(timeouts, &authority, &[&["127.0.0.1"]]);
    let start = Instant::now();
    let sent = status(send(&client, &format!("https://{HOST}:{}/", receiver.port)).await);
    assert_eq!(receiver.connections(), 1, "one attempt only");
    (sent, start.elapsed())
}

/// Sends a text again and again until the client is gone. Returns how many bytes were sent.
fn flood(connection: &mut Connection, text: &str) -> usize {
    let mut sent = 0;
    while sent < 100_000_000 && connection.send(text).is_ok() {
        sent += text.len();
    }
    sent
}

#[tokio::test]
async fn a_receiver_that_does_not_respond_times_out() {
    let (sent, took) = sent_within(SHORT, |_connection| sleep(Duration::from_secs(10))).await;
    assert_eq!(sent, Err(WebhookFailure::TimedOut));
    assert!((SHORT.total..LONG.total / 2).contains(&took), "{took:?}");
}

#[tokio::test]
async fn headers_that_drip_time_out() {
    let (sent, took) = sent_within(SHORT, |mut connection| {
        let _ = connection.send("HTTP/1.1 200 OK\r\n");
        while connection.send("x: y\r\n").is_ok() {
            sleep(Duration::from_millis(50));
        }
    })
    .await;
    assert_eq!(sent, Err(WebhookFailure::TimedOut));
    assert!(took < LONG.total / 2, "{took:?}");
}

#[tokio::test]
async fn informational_responses_without_end_time_out() {
    let (sent, took) = sent_within(SHORT, |mut connection| {
        while connection.send("HTTP/1.1 103 Early Hints\r\n\r\n").is_ok() {
            sleep(Duration::from_millis(5));
        }
    })
    .await;
    assert_eq!(sent, Err(WebhookFailure::TimedOut));
    assert!(took < LONG.total / 2, "{took:?}");
}

#[tokio::test]
async fn a_body_that_drips_does_not_matter() {
    let (sent, took) = sent_to(|mut connection| {
        let _ = connection.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
        while connection.send("x").is_ok() {
            sleep(Duration::from_millis(50));
        }
    })
    .await;
    assert_eq!(sent, Ok(200));
    assert!(took < LONG.total / 2, "{took:?}");
}

#[tokio::test]
async fn a_body_without_end_is_not_read() {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    let (sent, took) = sent_to(|mut connection| {
        let _ = connection.send("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        BYTES.store(flood(&mut connection, &"x".repeat(16_384)), Ordering::SeqCst);
    })
    .await;
    assert_eq!(sent, Ok(200));
    assert!(took < LONG.total / 2, "{took:?}");
    while BYTES.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The size of the socket buffers; the client stops after 4 KiB.
    assert!(BYTES.load(Ordering::SeqCst) < 20_000_000, "{BYTES:?}");
}

#[tokio::test]
async fn a_body_that_breaks_does_not_matter() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let invalid = move |mut connection: Connection| drop(connection.send(&format!("{head}zz\r\n")));
    assert_eq!(sent_to(invalid).await.0, Ok(200), "an invalid chunk");
    let half = move |mut connection: Connection| drop(connection.send(&format!("{head}5\r\nab")));
    assert_eq!(sent_to(half).await.0, Ok(200), "half a chunk");
}

#[tokio::test]
async fn too_many_headers_are_not_read() {
    let (sent, took) = sent_to(|mut connection| {
        let headers: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
        let _ = connection.send(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n"));
        sleep(Duration::from_secs(5));
    })
    .await;
    assert_eq!(sent, Err(WebhookFailure::InvalidResponse));
    assert!(took < LONG.total / 2, "{took:?}");
}

#[tokio::test]
async fn a_header_without_end_is_not_read() {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    let (sent, _) = sent_to(|mut connection| {
        let _ = connection.send("HTTP/1.1 200 OK\r\nx: ");
        BYTES.store(flood(&mut connection, &"x".repeat(16_384)), Ordering::SeqCst);
    })
    .await;
    assert_eq!(sent, Err(WebhookFailure::InvalidResponse));
    while BYTES.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(BYTES.load(Ordering::SeqCst) < 20_000_000, "{BYTES:?}");
}

#[tokio::test]
async fn responses_that_are_not_http_are_refused() {
    for text in ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n"] {
        let (sent, _) = sent_to(move |mut connection| {
            let _ = connection.send(text);
            sleep(Duration::from_secs(2));
        })
        .await;
        assert_eq!(sent, Err(WebhookFailure::InvalidResponse), "{text}");
    }
}

#[tokio::test]
async fn connections_that_end_early_are_disconnected() {
    assert_eq!(sent_to(Connection::reset).await.0, Err(WebhookFailure::Disconnected), "reset");
    assert_eq!(sent_to(drop).await.0, Err(WebhookFailure::Disconnected), "closed");
    let half = |mut connection: Connection| drop(connection.send("HTTP/1.1 200 OK\r\n"));
    assert_eq!(sent_to(half).await.0, Err(WebhookFailure::Disconnected), "half of the headers");
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = customers(&Authority::new(), &[&["127.0.0.1"]]);
    let sent = send(&client, &format!("https://{HOST}:{port}/")).await;
    assert_eq!(sent, Err(WebhookFailure::Connect(io::ErrorKind::ConnectionRefused)));
    assert_eq!(sent.unwrap_err().to_string(), "could not connect: connection refused");
}

/// A lookup that never returns.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl Lookup for Silent {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn lookups_and_handshakes_count_towards_the_connect_timeout() {
    let (start, timeouts) = (Instant::now(), Timeouts { connect: Duration::from_millis(500), ..LONG });
    let client = WebhookClient::new(Some(one_public_address()), None, Arc::new(Silent), timeouts).unwrap();
    assert_eq!(send(&client, &format!("https://{HOST}/")).await, Err(WebhookFailure::TimedOut));
    // A listener that never accepts: the kernel does, but there is no handshake.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = customers_within(timeouts, &Authority::new(), &[&["127.0.0.1"]]);
    assert_eq!(send(&client, &format!("https://{HOST}:{port}/")).await, Err(WebhookFailure::TimedOut));
    assert!((timeouts.connect * 2..LONG.total / 2).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[test]
fn timeouts_are_those_of_the_documentation() {
    let seconds = [TIMEOUTS.connect, TIMEOUTS.total, TIMEOUTS.body].map(|timeout| timeout.as_secs());
    assert_eq!(seconds, [5, 15, 1]);
}
