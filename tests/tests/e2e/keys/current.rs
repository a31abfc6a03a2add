//! Rotation with the key itself: for every account, and safe when the response is lost.

use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::site::Site;
use serde_json::json;

const ROTATION: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

fn rotate(client: &Client) -> Response {
    client.send("POST", "/keys/current/rotate", None)
}

fn key_of(response: Response) -> String {
    response.expect(200).json()["api_key"].as_str().unwrap().to_owned()
}

#[test]
fn holder_of_a_key_replaces_it() {
    let (_site, account, server) = Site::serving("2");
    let old = server.client_with(&account.api_key);
    let response = rotate(&old).expect(200);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let document = response.json();
    assert_eq!((&document["status"], &document["rotated"]), (&json!("ok"), &json!(true)));
    assert_eq!((&document["org_id"], document["credit_balance"].to_string()), (&json!(account.org_id), "2".to_owned()));
    let new = key_of(response);
    assert_eq!(old.get("/credits/balance").expect(401).error(), "unauthorized");
    assert_eq!(rotate(&old).expect(401).error(), "unauthorized", "without an idempotency key there is no second try");
    assert_eq!(server.client_with(&new).get("/credits/balance").expect(200).json()["org_id"], json!(account.org_id));
    assert_eq!(rotate(&server.client()).expect(401).error(), "unauthorized");
    assert_eq!(server.client_with(&new).get("/keys/current/rotate").status, 405);
    assert!(!server.log().contains("sk_live_"));
}

#[test]
fn lost_response_can_be_fetched_again() {
    let (site, account, server) = Site::serving("2");
    let old = server.client_with(&account.api_key).with_header("Idempotency-Key", ROTATION);
    let new = key_of(rotate(&old));
    assert_eq!(key_of(rotate(&old)), new, "the same request, the same key");
    // Also in the quoted form, and after a restart.
    drop(server);
    let server = site.server().start();
    let quoted = server.client_with(&account.api_key).with_header("Idempotency-Key", &format!("\"{ROTATION}\""));
    assert_eq!(key_of(rotate(&quoted)), new);
    let other = server.client_with(&account.api_key).with_header("Idempotency-Key", &ROTATION.replace('8', "9"));
    assert_eq!(rotate(&other).expect(401).error(), "unauthorized");
    // Once the new key is replaced as well, the retry finds nothing.
    let newest = key_of(rotate(&server.client_with(&new)));
    assert_eq!(rotate(&quoted).expect(401).error(), "unauthorized");
    assert_eq!(server.client_with(&newest).get("/credits/balance").status, 200);
}

#[test]
fn guessable_idempotency_key_is_refused() {
    let (_site, account, server) = Site::serving("2");
    let client = server.client_with(&account.api_key);
    for text in ["1", &ROTATION[..31], "two words", ""] {
        let refused = rotate(&client.clone().with_header("Idempotency-Key", text)).expect(400);
        assert!(refused.json()["fields"]["Idempotency-Key"].is_string(), "{text}: {}", refused.text());
        assert_eq!(rotate(&server.client().with_header("Idempotency-Key", text)).status, 401, "{text}");
    }
    assert_eq!(client.get("/credits/balance").status, 200, "nothing changed");
}
