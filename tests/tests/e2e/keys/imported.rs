//! Keys of a service that moved in: they continue working over HTTP until they are rotated.

use metering_core::ApiKey;
use metering_tests::site::Site;
use serde_json::json;

use crate::support::wire::BASE;

#[test]
fn imported_key_is_charged_and_rotated_into_one_of_ours() {
    let site = Site::new();
    let old = format!("sk_live_{}", "0123456789abcdef".repeat(6));
    let hash = ApiKey::parse(&old).unwrap().hash();
    let hash: String = hash.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let rows = format!("agent_name,credit_balance,key_hash,hash_kind\nmoved,2,{hash},sha256\n");
    let file = site.write("accounts.csv", &rows);
    let report = site.admin_json(&["import", "--from", file.to_str().unwrap(), "--format", "accounts"]);
    assert_eq!((&report["created"], &report["equal"]), (&json!(1), &json!(1)));

    let server = site.server().start();
    let customer = server.client_with(&old);
    let _ = customer.get(BASE).expect(200);
    assert_eq!(customer.get("/credits/balance").expect(200).json()["credit_balance"].to_string(), "1.9998611111");
    // An unknown key, and a truncated one.
    for key in [old.replace('0', "1"), old[..103].to_owned()] {
        assert_eq!(server.client_with(&key).get(BASE).expect(401).error(), "unauthorized");
    }

    let rotated = customer.send("POST", "/keys/current/rotate", None).expect(200).json();
    let new = rotated["api_key"].as_str().unwrap();
    assert_eq!(new.len(), 46);
    assert_eq!(customer.get(BASE).expect(401).error(), "unauthorized");
    let _ = server.client_with(new).get(BASE).expect(200);
    assert!(!server.log().contains("sk_live_"));
    site.verify();

    // An import that is repeated does not bring the old key back.
    let again = site.admin_json(&["import", "--from", file.to_str().unwrap(), "--format", "accounts"]);
    assert_eq!((&again["already_there"], &again["changed_since"]), (&json!(1), &json!(1)));
    assert_eq!(customer.get(BASE).status, 401);
}
