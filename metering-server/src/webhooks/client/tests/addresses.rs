//! Where webhooks are sent, and where not.

use super::*;

#[tokio::test]
async fn names_with_private_addresses_are_refused() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], accept);
    for address in ["127.0.0.2", "::1", "::ffff:127.0.0.2", "10.0.0.1", "169.254.169.254", "fd00:ec2::254"] {
        let client = customers(&authority, &[&[address]]);
        let sent = send(&client, &format!("https://{HOST}:{}/", receiver.port)).await;
        assert_eq!(sent, Err(WebhookFailure::RefusedAddress), "{address}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_that_becomes_private_is_refused() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], |mut connection| {
        let _ = connection.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n");
        std::thread::sleep(Duration::from_secs(5));
    });
    let client = customers(&authority, &[&["127.0.0.1"], &["127.0.0.2"]]);
    let url = format!("https://{HOST}:{}/", receiver.port);
    assert_eq!(status(send(&client, &url).await), Ok(200));
    assert_eq!(send(&client, &url).await, Err(WebhookFailure::RefusedAddress));
    assert_eq!(receiver.connections(), 1, "the first connection was not used again");
}

#[tokio::test]
async fn private_addresses_are_dropped_from_a_mixed_answer() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], accept);
    let client = customers(&authority, &[&["127.0.0.2", "10.0.0.1", "127.0.0.1", "127.0.0.3"]]);
    assert_eq!(status(send(&client, &format!("https://{HOST}:{}/", receiver.port)).await), Ok(204));
    assert_eq!(receiver.connections(), 1);
    assert_eq!(receiver.received()[0].to.to_string(), "127.0.0.1");
}

#[tokio::test]
async fn private_addresses_are_not_tried_when_public_ones_fail() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], accept);
    // A public address that refuses connections: nothing listens on ::1.
    let policy = AddressPolicy::with_networks(vec!["::1/128".parse().unwrap()]);
    let lookup = answers(&[&["::1", "127.0.0.1"]]);
    let client = WebhookClient::new(Some(policy), Some(authority.file.path()), lookup, LONG).unwrap();
    let sent = send(&client, &format!("https://{HOST}:{}/", receiver.port)).await;
    assert!(matches!(sent, Err(WebhookFailure::Connect(_))), "{sent:?}");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn private_ip_literals_are_refused_in_every_spelling() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &[HOST], accept);
    let client = customers(&authority, &[&["127.0.0.1"]]);
    for host in ["127.0.0.2", "127.2", "0x7f000002", "2130706434", "0177.0.0.2", "[::1]", "[::ffff:127.0.0.2]"] {
        let sent = send(&client, &format!("https://{host}:{}/", receiver.port)).await;
        assert_eq!(sent, Err(WebhookFailure::RefusedAddress), "{host}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn ip_literals_that_are_allowed_are_sent_to() {
    let authority = Authority::new();
    let receiver = Receiver::https(&authority, &["127.0.0.1"], accept);
    let client = customers(&authority, &[]);
    assert_eq!(status(send(&client, &format!("https://127.1:{}/", receiver.port)).await), Ok(204));
}

#[tokio::test]
async fn customers_get_webhooks_by_https_only() {
    let receiver = Receiver::http(accept);
    let client = customers(&Authority::new(), &[&["127.0.0.1"]]);
    for host in [HOST, "127.0.0.1"] {
        let sent = send(&client, &format!("http://{host}:{}/", receiver.port)).await;
        assert_eq!(sent, Err(WebhookFailure::InvalidRequest), "{host}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn operators_get_webhooks_at_any_address_and_by_http() {
    let receiver = Receiver::http(accept);
    for host in ["127.0.0.2", "localhost"] {
        let client = WebhookClient::for_operator(None).unwrap();
        assert_eq!(status(send(&client, &format!("http://{host}:{}/", receiver.port)).await), Ok(204), "{host}");
    }
}

/// With the system's resolver, and the policy that customers get by default.
#[tokio::test]
async fn localhost_is_refused_to_customers() {
    let receiver = Receiver::http(accept);
    let client = WebhookClient::for_customers(AddressPolicy::default(), None).unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let sent = send(&client, &format!("https://{host}:{}/", receiver.port)).await;
        assert_eq!(sent, Err(WebhookFailure::RefusedAddress), "{host}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn names_without_an_address_are_unresolved() {
    let authority = Authority::new();
    for addresses in [&[] as &[&[&str]], &[&[]]] {
        let sent = send(&customers(&authority, addresses), &format!("https://{HOST}/")).await;
        assert_eq!(sent, Err(WebhookFailure::Unresolved));
    }
}

#[tokio::test]
async fn at_most_eight_addresses_are_tried() {
    let lookup = answers(&[&["127.0.0.1"; 20]]);
    let resolver = Resolver { lookup, policy: Some(Arc::new(one_public_address())) };
    let addresses = reqwest::dns::Resolve::resolve(&resolver, HOST.parse().unwrap()).await;
    assert_eq!(addresses.map(Iterator::count).ok(), Some(8));
}
