//! Child accounts and roles on the account page, in a real browser: scenes of `tests/browser/children.mjs`.

use serde_json::json;

use super::{account, play};
use crate::signup::server;
use metering_tests::site::Site;

/// One server for both: each scene has a separate account. The books agree after them.
#[test]
fn children_are_managed_and_members_see_what_their_role_allows() {
    let site = Site::new();
    let server = server(&site, &[("METERING_LIMITS__MAX_CHILD_ACCOUNTS", "3")]);
    play("children", &server, json!({"key": account(&site, "reseller", "2")}));
    play("viewer", &server, json!({"key": account(&site, "holder", "2")}));
    assert!(!server.log().contains("sk_live_"));
    site.verify();
}
