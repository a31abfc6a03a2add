//! The requests that are sent, and the meaning of responses.

use super::*;

#[tokio::test]
async fn a_customers_webhook_has_its_headers_and_a_valid_signature() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], accept);
    let client = customers(&authority, &[&["127.0.0.1"]]);
    let response = send(&client, &format!("https://{HOST}:{}/in?team=7", receiver.port)).await;
    assert_eq!(response, Ok(WebhookResponse { status: StatusCode::NO_CONTENT, retry_after: None, body: Vec::new() }));

    let [received] = receiver.received().try_into().unwrap();
    assert_eq!(received.head.lines().next(), Some("POST /in?team=7 HTTP/1.1"));
    let version = env!("CARGO_PKG_VERSION");
    let host = format!("{HOST}:{}", receiver.port);
    let user_agent = format!("metering-webhooks/{version}");
    for (name, value) in [
        ("host", host.as_str()),
        ("content-type", "application/json"),
        ("user-agent", &user_agent),
        ("webhook-id", ID),
        ("webhook-timestamp", "1795248000"),
        ("content-length", "18"),
    ] {
        assert_eq!(received.header(name), [value], "{name}");
    }
    // As a receiver checks it: from the headers and the body that arrived.
    let secret = WebhookSecret::parse(SECRET).unwrap();
    let seconds: i64 = received.header("webhook-timestamp")[0].parse().unwrap();
    let at = Timestamp::from_unix_millis(seconds * 1_000);
    let expected = signature(&[&secret], received.header("webhook-id")[0], at, received.body.as_bytes());
    assert_eq!(received.header("webhook-signature"), [expected]);
    assert_eq!(received.body, BODY);
    for name in ["authorization", "cookie", "accept-encoding", "referer", "proxy-authorization"] {
        assert!(received.header(name).is_empty(), "{name}");
    }
}

#[tokio::test]
async fn every_status_is_a_result_with_its_body() {
    for code in [200, 202, 400, 401, 404, 410, 429, 500, 502, 503] {
        let receiver = Receiver::http(move |mut connection| {
            let _ = connection.send(&format!("HTTP/1.1 {code} X\r\ncontent-length: 2\r\n\r\nno"));
        });
        let response = send(&operators(), &format!("http://{HOST}:{}/", receiver.port)).await.unwrap();
        assert_eq!((response.status.as_u16(), response.body), (code, b"no".to_vec()));
    }
}

#[tokio::test]
async fn retry_after_is_read_as_seconds_or_as_a_date() {
    // The attempt is at 2026-11-21T08:00:00.900Z.
    let table = [
        ("120", Some(Duration::from_secs(120))),
        ("0", Some(Duration::ZERO)),
        ("Sat, 21 Nov 2026 08:01:00 GMT", Some(Duration::from_millis(59_100))),
        ("Saturday, 21-Nov-26 08:01:00 GMT", Some(Duration::from_millis(59_100))),
        ("Sat, 21 Nov 2026 07:59:00 GMT", Some(Duration::ZERO)),
        ("18446744073709551615", Some(Duration::from_secs(u64::MAX))),
        ("18446744073709551616", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
    ];
    for (value, expected) in table {
        let receiver = Receiver::http(move |mut connection| {
            let _ = connection.send(&format!("HTTP/1.1 503 X\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n"));
        });
        let response = send(&operators(), &format!("http://{HOST}:{}/", receiver.port)).await.unwrap();
        assert_eq!(response.retry_after, expected, "{value}");
    }
}

#[tokio::test]
async fn redirects_are_results_and_are_not_followed() {
    let authority = Authority::new();
    let elsewhere = Receiver::https(&authority, &[HOST], accept);
    let target = format!("https://{HOST}:{}/", elsewhere.port);
    for code in [301, 302, 303, 307, 308] {
        let target = target.clone();
        let receiver = Receiver::https(&authority, &[HOST], move |mut connection| {
            let head = format!("HTTP/1.1 {code} X\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
            let _ = connection.send(&head);
        });
        let client = customers(&authority, &[&["127.0.0.1"]]);
        assert_eq!(status(send(&client, &format!("https://{HOST}:{}/", receiver.port)).await), Ok(code));
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn cookies_are_not_kept() {
    let receiver = Receiver::http(|mut connection| {
        let _ = connection.send("HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n");
    });
    let client = operators();
    for _ in 0..2 {
        assert_eq!(status(send(&client, &format!("http://{HOST}:{}/", receiver.port)).await), Ok(200));
    }
    assert!(receiver.received().iter().all(|received| received.header("cookie").is_empty()));
}

#[tokio::test]
async fn certificates_must_be_trusted_and_match_the_host() {
    let (trusted, other) = (Authority::new(), Authority::new());
    // receiver, failure
    let table = [
        (Receiver::https(&trusted, &[HOST], accept), None),
        (Receiver::https(&other, &[HOST], accept), Some("the issuer of the certificate is not trusted")),
        (Receiver::https(&trusted, &["other.example"], accept), Some("the certificate is for another host name")),
    ];
    for (receiver, problem) in table {
        let client = customers(&trusted, &[&["127.0.0.1"]]);
        let sent = send(&client, &format!("https://{HOST}:{}/", receiver.port)).await;
        let expected = problem.map_or(Ok(204), |problem| Err(WebhookFailure::Tls(problem)));
        assert_eq!(status(sent), expected);
        assert_eq!(receiver.received().len(), usize::from(problem.is_none()), "{problem:?}");
    }
}

#[tokio::test]
async fn a_receiver_without_tls_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = io::Write::write_all(&mut connection, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        std::thread::sleep(Duration::from_secs(60));
    });
    let client = customers(&Authority::new(), &[&["127.0.0.1"]]);
    let sent = send(&client, &format!("https://{HOST}:{port}/")).await;
    assert_eq!(sent, Err(WebhookFailure::Tls("the handshake failed")));
}

#[tokio::test]
async fn ca_files_are_checked_at_the_start() {
    let problem = |text: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        let problem = WebhookClient::for_operator(Some(file.path())).unwrap_err().to_string();
        assert!(problem.contains(&file.path().display().to_string()), "{problem}");
        problem
    };
    assert!(problem("").ends_with("there is no certificate in this file"));
    assert!(problem("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").ends_with("not a PEM file"));
    assert!(WebhookClient::for_operator(Some(Path::new("/nonexistent/ca.pem"))).is_err());
    assert!(WebhookClient::for_operator(Some(Authority::new().file.path())).is_ok());
}

#[tokio::test]
async fn an_invalid_header_is_an_error_and_not_a_panic() {
    let url = WebhookUrl::parse_trusted("http://127.0.0.1:1/").unwrap();
    let timestamp = Timestamp::from_unix_millis(0);
    let request = WebhookRequest { url: &url, id: "a\nb", timestamp, signature: "v1,x", body: Bytes::new() };
    assert_eq!(operators().send(request).await, Err(WebhookFailure::InvalidRequest));
}

/// Set for a child process that runs one test behind a proxy that does not work.
const BEHIND_A_PROXY: &str = "METERING_TEST_BEHIND_A_PROXY";

#[tokio::test]
async fn the_environments_proxy_is_not_used() {
    if std::env::var_os(BEHIND_A_PROXY).is_some() {
        let receiver = Receiver::http(accept);
        assert_eq!(status(send(&operators(), &format!("http://{HOST}:{}/", receiver.port)).await), Ok(204));
        return;
    }
    let name = "webhooks::client::tests::delivery::the_environments_proxy_is_not_used";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(BEHIND_A_PROXY, "1");
    for variable in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        child.env(variable, "http://127.0.0.1:1");
    }
    let output = child.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
