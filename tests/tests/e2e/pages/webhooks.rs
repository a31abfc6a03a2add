//! The account page's Webhooks tab in a real browser: scenes of `tests/browser/webhooks.mjs`, which receive webhooks on
//! this machine and verify them with the official library.

use serde_json::json;

use super::{account, play};
use crate::signup::server;
use crate::support::certificates::Loopback;
use metering_tests::site::Site;

/// Plays a scene with the first key of a new account. The books agree after it, and no secret is in the log.
fn scene(name: &str) {
    // The library is installed with those of the clients.
    if metering_tests::skipped::by("TESTS_SKIP_CLIENTS") {
        return;
    }
    let (site, files) = (Site::new(), Loopback::new());
    let authority = files.authority.display().to_string();
    let settings =
        [("METERING_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.0/8"), ("METERING_WEBHOOKS__CA_FILE", authority.as_str())];
    let server = server(&site, &settings);
    let identity = json!({"certificate": files.identity.certificate, "key": files.identity.key});
    play(name, &server, json!({"key": account(&site, "holder", "2"), "identity": identity}));
    let log = server.log();
    assert!(!log.contains("sk_live_") && !log.contains("whsec_"), "{log}");
    site.verify();
}

#[test]
fn webhook_is_created_tested_changed_and_deleted() {
    scene("manageWebhooks");
}

#[test]
fn failing_webhook_says_since_when_and_what_waits() {
    scene("failingWebhook");
}

#[test]
fn thresholds_of_alerts_are_set_and_removed() {
    scene("balanceAlert");
}

#[test]
fn webhooks_are_managed_with_the_keyboard_alone() {
    scene("webhooksByKeyboard");
}

#[test]
fn lists_of_webhooks_may_be_read_only_missing_or_long() {
    scene("webhookFailures");
}

#[test]
fn webhooks_fit_phones_and_desktops() {
    scene("webhookLooks");
}
