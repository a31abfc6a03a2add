//! Webhooks, received by programs that verify with the official libraries of Standard Webhooks.

mod delivery;
mod endpoints;
mod operators;
mod receivers;
mod refused;
mod usage;

use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;
use metering_tests::webhooks::{Library, Receiver};
use serde_json::{Value, json};

use crate::support::certificates::Loopback;
use crate::support::wait::until;

/// A site whose servers may send webhooks to this machine, and trust its certificate.
pub(super) struct Scene {
    pub(super) site: Site,
    pub(super) files: Loopback,
}

/// A webhook that a test created.
pub(super) struct Hook {
    pub(super) id: String,
    pub(super) secret: String,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self { site: Site::new(), files: Loopback::new() }
    }

    /// A server that trusts the receivers.
    pub(super) fn server(&self) -> ServerSetup {
        let server = self.site.server().set("METERING_WEBHOOKS__CA_FILE", &self.files.authority.display().to_string());
        server.set("METERING_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.0/8, ::1")
    }

    /// A receiver with HTTPS; `None` if these tests are disabled.
    pub(super) fn receiver(&self, library: Library) -> Option<Receiver> {
        Receiver::start(library, Some(&self.files.identity))
    }
}

/// Creates a webhook for these events, or for all if there are none, and gives its secret to the receiver.
#[track_caller]
pub(super) fn hook(client: &Client, receiver: &mut Receiver, events: &[&str]) -> Hook {
    let mut body = json!({"url": receiver.url("localhost", "/hooks?from=e2e")});
    if !events.is_empty() {
        body["events"] = json!(events);
    }
    let hook = Hook::of(&client.post("/webhooks", &body).expect(201));
    receiver.set_secrets(&[&hook.secret]);
    hook
}

impl Hook {
    #[track_caller]
    pub(super) fn of(response: &Response) -> Self {
        let document = response.json();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{document}")).to_owned();
        Self { id: text(&document["data"]["id"]), secret: text(&document["secret"]) }
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/webhooks/{}{rest}", self.id)
    }

    /// Its deliveries, newest first.
    #[track_caller]
    pub(super) fn deliveries(&self, client: &Client) -> Vec<Value> {
        client.get(&self.path("/deliveries")).expect(200).json()["data"].as_array().unwrap().clone()
    }

    /// Waits until its newest delivery is in this state and the last of these attempts has ended, and returns it. While
    /// the first attempt is in progress, it counts already, but has no result.
    #[track_caller]
    pub(super) fn newest(&self, client: &Client, state: &str, attempts: u64) -> Value {
        let is_there = |delivery: &Value| {
            let has_ended = !delivery["last_attempt_at"].is_null();
            delivery["state"] == state && delivery["attempts"] == attempts && has_ended
        };
        until(&format!("the delivery is {state} after {attempts} attempts"), || {
            self.deliveries(client).first().is_some_and(is_there)
        });
        self.deliveries(client)[0].clone()
    }
}

/// The server's log has none of these texts.
#[track_caller]
pub(super) fn never_logged(server: &Server, secrets: &[&str]) {
    let log = server.log();
    for secret in secrets {
        let bare = secret.trim_start_matches("whsec_");
        assert!(!log.contains(bare), "a secret is in the log: {log}");
    }
}
