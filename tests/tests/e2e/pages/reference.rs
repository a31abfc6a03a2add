//! The API reference in a real browser: scenes of `tests/browser/reference.mjs`.

use metering_tests::ports::free_address;
use metering_tests::{skipped, venv};
use serde_json::json;

use super::{account, play};
use crate::signup::server;
use crate::support::upstream::Upstream;
use metering_tests::site::Site;

#[test]
fn reference_lists_prices_and_needs_a_key_to_try() {
    let site = Site::new();
    play("reference", &server(&site, &[("METERING_BRAND__NAME", "Acme Data")]), json!({}));
}

#[test]
fn unusual_documents_and_streams_are_read() {
    let site = Site::new();
    play("unusual", &server(&site, &[]), json!({}));
}

#[test]
fn samples_are_copied_and_run() {
    let site = Site::new();
    let server = server(&site, &[]);
    // The environment of the generated client has httpx, which the Python sample uses.
    let python = (!skipped::by("TESTS_SKIP_CLIENTS")).then(|| venv::program("clients-venv", "python"));
    play("samples", &server, json!({"key": account(&site, "holder", "2"), "python": python}));
    site.verify();
}

#[test]
fn trying_a_route_charges_its_price_once() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("tryIt", &server, json!({"key": account(&site, "holder", "2")}));
    site.verify();
}

#[test]
fn bodies_are_prefilled_checked_and_sent() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let message = json!({"type": "object", "required": ["role", "content"], "properties": {
        "role": {"enum": ["user", "assistant"]}, "content": {"type": "string", "examples": ["Hello"]}}});
    let schema = json!({"type": "object", "required": ["model", "messages", "max_tokens"], "properties": {
        "model": {"type": "string", "enum": ["small", "large"], "description": "Which model answers"},
        "messages": {"type": "array", "items": message, "minItems": 1},
        "max_tokens": {"type": "integer", "minimum": 16},
        "stream": {"type": "boolean", "default": false}}});
    let word = json!([{"name": "word", "in": "path", "type": "string", "required": true}]);
    // Text, because `json!` would sort the members.
    let written = r#"{"path": "/api/letter", "method": "POST", "metered": true, "price": "0.01", "request": {
        "schema": {"type": "object", "properties": {
            "to": {"type": "string"}, "count": {"type": "integer"}, "body": {"type": "string"}}},
        "example": {"to": "Ada", "count": 2, "body": "Hi"}}}"#;
    let catalogue = json!({"market": "TEST", "version": 1, "endpoints": [
        {"path": "/api/echo", "method": "POST", "metered": true, "price": "0.01", "description": "Chat with a model",
         "request": {"schema": schema}},
        {"path": "/api/echo/{word}", "method": "POST", "metered": true, "price": "0.01", "params": word}]});
    let catalogue = catalogue.to_string().replacen('[', &format!("[{written},"), 1);
    let catalogue = site.write("bodies.json", &catalogue);
    let flags = ["--upstream", &upstream.url(), "--catalogue", catalogue.to_str().unwrap()];
    let server = site.server().args(flags).start();
    play("tryBody", &server, json!({"key": account(&site, "holder", "2")}));
    site.verify();
}

#[test]
fn stream_shows_events_until_stopped() {
    let site = Site::new();
    let server = server(&site, &[("METERING_SAMPLE__BLOCK_TIME", "200ms")]);
    play("tryStream", &server, json!({"key": account(&site, "holder", "2")}));
    site.verify();
}

#[test]
fn reference_works_with_the_keyboard_alone() {
    let site = Site::new();
    play("keyboard", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn reference_is_accessible_in_both_schemes_and_widths() {
    let site = Site::new();
    play("referenceLooks", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn reference_calls_routes_of_another_origin() {
    let site = Site::new();
    let port = free_address().port();
    let [pages, api] = ["account", "api"].map(|name| format!("http://{name}.localhost:{port}"));
    let server = site
        .server_at(&format!("127.0.0.1:{port}"))
        .set("METERING_PAGES_URL", &pages)
        .set("METERING_PUBLIC_URL", &api)
        .start();
    play("otherOrigin", &server, json!({"base": pages, "api": api, "key": account(&site, "holder", "2")}));
    site.verify();
}
