//! The account page's Keys tab in a real browser: scenes of `tests/browser/keytab.mjs`.

use serde_json::json;

use super::{account, play};
use crate::signup::server;
use metering_tests::site::Site;

/// Plays a scene with the first key of a new account. The books agree after it, and no secret is in the log.
fn scene(name: &str) {
    let site = Site::new();
    let server = server(&site, &[]);
    play(name, &server, json!({"key": account(&site, "holder", "2")}));
    assert!(!server.log().contains("sk_live_"));
    site.verify();
}

#[test]
fn key_is_created_used_changed_and_deleted() {
    scene("manageKeys");
}

#[test]
fn keys_below_keys_stop_with_them() {
    scene("keyTree");
}

#[test]
fn keys_are_managed_with_the_keyboard_alone() {
    scene("keysByKeyboard");
}

#[test]
fn many_keys_are_shown_in_parts() {
    scene("manyKeys");
}

#[test]
fn keys_fit_phones_and_desktops() {
    scene("keyLooks");
}
