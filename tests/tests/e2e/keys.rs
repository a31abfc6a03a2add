//! API keys: authentication and rotation; child keys, and what they may do.

mod authentication;
mod budgets;
mod current;
mod delegation;
mod imported;
mod in_flight;
mod lifecycle;
mod networks;
mod replacing;
mod rotation;
mod rotation_signatures;
mod scopes;
mod sessions;

use metering_tests::client::Client;
use metering_tests::response::Response;
use serde_json::{Value, json};

/// A key that another one made.
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Made {
    /// From the response that issued it.
    #[track_caller]
    pub(crate) fn of(response: &Response) -> Self {
        let document = response.json();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{document}")).to_owned();
        Self { id: text(&document["data"]["id"]), secret: text(&document["key"]) }
    }

    /// Its path.
    pub(crate) fn path(&self) -> String {
        format!("/keys/{}", self.id)
    }
}

/// Makes a child of the client's key, with these terms in addition to a name.
#[track_caller]
pub(crate) fn made(client: &Client, terms: &Value) -> Made {
    let mut body = json!({"name": "made by a test"});
    body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
    Made::of(&client.post("/keys", &body).expect(201))
}

/// Changes a key.
#[track_caller]
pub(crate) fn change(client: &Client, key: &Made, change: &Value) -> Response {
    client.send("PATCH", &key.path(), Some(change.to_string().as_bytes()))
}
