//! Looking up requests whose credits are or were held.

use metering_client::ClientError;
use metering_client::calls::account::{GetRequest, ListHeldRequests, OfRequest};
use metering_core::wire::{RequestDocument, RequestState, RequestsDocument};

use crate::script::{Script, response};

const ID: &str = "req_0123456789abcdef0123456789abcdef";
const HELD: &str = r#"{"id":"req_0123456789abcdef0123456789abcdef","state":"held","held":0.0000694444,"charged":0,"released":0,"settled_by":null,"route_template":"/a","http_method":"GET","request_path":"/a","created_at":"2026-11-21T08:00:00.000Z","expires_at":"2026-11-21T08:02:00.000Z","settled_at":null}"#;

#[tokio::test]
async fn requests_are_listed_and_looked_up() {
    let list = format!(r#"{{"data":[{HELD}]}}"#);
    let script = Script::default().then(response(200, &[], list)).then(response(200, &[], HELD));
    let client = script.client();
    let RequestsDocument { data } = client.call::<ListHeldRequests>(&(), &()).await.unwrap().json().unwrap();
    let of = OfRequest { id: ID.to_owned() };
    let one: RequestDocument = client.call::<GetRequest>(&of, &()).await.unwrap().json().unwrap();
    assert_eq!(data, std::slice::from_ref(&one));
    assert_eq!((one.state, one.held.to_string().as_str()), (RequestState::Held, "0.0000694444"), "every digit");
    assert_eq!(script.sent(), ["GET /requests ".to_owned(), format!("GET /requests/{ID} ")]);
}

#[tokio::test]
async fn an_unknown_request_is_refused() {
    let script = Script::default().then(response(404, &[], r#"{"error":"not_found","message":"No."}"#));
    let client = script.client();
    let error = client.call::<GetRequest>(&OfRequest { id: ID.to_owned() }, &()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(refusal) if refusal.code == "not_found"), "{error}");
}
