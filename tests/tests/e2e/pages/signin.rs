//! Staying signed in, in a real browser: scenes of `tests/browser/signin.mjs`.

use serde_json::json;

use super::{account, play};
use crate::signup::server;
use metering_tests::site::Site;

#[test]
fn a_browser_stays_signed_in_until_it_signs_out_or_its_key_is_replaced() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("keepSignedIn", &server, json!({"key": account(&site, "holder", "2")}));
    let log = server.log();
    assert!(!log.contains("sk_live_") && !log.contains("bst_"), "{log}");
    site.verify();
}

#[test]
fn an_owner_gives_a_program_access() {
    let site = Site::new();
    let server = server(&site, &[]);
    play("giveAccess", &server, json!({"key": account(&site, "holder", "2")}));
    let log = server.log();
    assert!(!log.contains("sk_live_") && !log.contains("ogt_"), "{log}");
    site.verify();
}

#[test]
fn an_account_without_mail_is_told_whom_to_write_to() {
    let site = Site::new();
    play("whomToWriteTo", &server(&site, &[("METERING_OPERATOR__CONTACT", "help@acme.example")]), json!({}));
}
