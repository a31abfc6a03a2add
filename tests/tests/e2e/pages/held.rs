//! The account page while credits are held, in a real browser: scenes of `tests/browser/held.mjs`.

use serde_json::json;

use super::{account, play};
use crate::signup::server;
use metering_tests::site::Site;

const SECRET: &str = "correct horse battery staple";

/// Plays a scene with the key of a new account and the secret of services that hold credits. The books agree after it.
fn scene(name: &str) {
    let site = Site::new();
    let server = server(&site, &[("METERING_BILLING__INTERNAL_SECRET", SECRET)]);
    play(name, &server, json!({"key": account(&site, "holder", "2"), "secret": SECRET}));
    assert!(!server.log().contains("sk_live_"));
    site.verify();
}

#[test]
fn held_credits_are_shown_with_their_requests() {
    scene("heldRequests");
}

#[test]
fn a_list_of_held_requests_may_fail() {
    scene("heldFailures");
}

#[test]
fn held_requests_fit_phones_and_desktops() {
    scene("heldLooks");
}
