//! URLs contain keys. They are sent to their source, and appear nowhere else.

use metering_core::chains::ChainReader;
use metering_evm::ChainConfig;
use serde_json::json;

use crate::node::{Chain, Fault, Node, address};
use crate::scene::{SHORT, config, reader, status};

const KEY: &str = "topsecret-0123456789";

/// Every way to put a key into the URL of a node.
fn urls(node: &Node) -> [String; 3] {
    let host = node.host();
    [format!("http://{host}/v2/{KEY}"), format!("http://{host}/rpc?apikey={KEY}"), format!("http://me:{KEY}@{host}/")]
}

#[tokio::test]
async fn the_whole_url_is_called() {
    let node = Node::start(Chain::default()).await;
    for url in urls(&node) {
        reader(&config(&[url])).check().await.unwrap();
    }
    assert_eq!(node.state().targets, [format!("/v2/{KEY}"), format!("/rpc?apikey={KEY}"), "/".to_owned()]);
}

#[tokio::test]
async fn no_error_shows_more_than_the_host() {
    let node = Node::start(Chain::default()).await;
    let problem = format!("key {KEY} has no credit left at /v2/{KEY}");
    let faults = [
        Fault::Status(403, None),
        Fault::StatusWith(403, json!({ "error": { "code": 1, "message": problem } })),
        Fault::Body("\"topsecret-0123456789\""),
        Fault::Errs(-32_001, "unknown key topsecret-0123456789"),
        Fault::Hangs,
    ];
    for url in urls(&node) {
        let config = ChainConfig { request_timeout: SHORT, ..config(std::slice::from_ref(&url)) };
        let reader = reader(&config);
        for fault in &faults {
            node.always(fault.clone());
            for error in [status(&reader).await.unwrap_err(), reader.has_code(address(1)).await.unwrap_err()] {
                let shown = format!("{error} {error:?}");
                assert!(!shown.contains(KEY) && shown.contains(&node.host()), "{url} {fault:?}: {shown}");
            }
        }
        let shown = format!("{reader:?} {config:?}");
        assert!(!shown.contains(KEY), "{shown}");
    }
}

#[tokio::test]
async fn a_source_that_cannot_be_reached_is_named_by_its_host() {
    let node = Node::start(Chain::default()).await;
    let urls = urls(&node);
    let host = node.host();
    drop(node);
    for url in urls {
        let error = status(&reader(&config(&[url]))).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(KEY) && shown.contains(&host), "{shown}");
    }
}

#[tokio::test]
async fn messages_are_shortened_to_one_line() {
    let node = Node::start(Chain::default()).await;
    let problem = format!("first\r\nsecond {}", "é".repeat(5000));
    node.always(Fault::StatusWith(400, json!({ "error": { "code": 1, "message": problem } })));
    let error = status(&reader(&config(&[node.url()]))).await.unwrap_err().to_string();
    assert!(error.contains("first  second é") && error.chars().count() < 400, "{error}");
}
