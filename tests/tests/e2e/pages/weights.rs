//! The sizes of the pages: scenes of `tests/browser/weights.mjs`. The number of requests matters most on a slow
//! connection.

use metering_tests::site::Site;
use serde_json::json;

use super::{account, play};
use crate::signup::server;

#[test]
fn pages_are_light() {
    let site = Site::new();
    let most = |requests: u32, bytes: u32| json!({"requests": requests, "bytes": bytes});
    // Half of the reference is the OpenAPI document.
    let most = json!({"front": most(8, 110_000), "docs": most(8, 120_000), "guide": most(6, 110_000), "account": most(10, 110_000)});
    play("weights", &server(&site, &[]), json!({"key": account(&site, "holder", "2"), "most": most}));
}

#[test]
fn account_works_on_a_slow_connection() {
    let site = Site::new();
    play("slowAccount", &server(&site, &[]), json!({"key": account(&site, "holder", "2")}));
}
