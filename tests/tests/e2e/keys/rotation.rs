//! Rotation by wallet: what the old key and the keys that it made can do afterwards.

use serde_json::json;

use super::made;
use crate::support::shop::{Kind, Shop, key_of};

#[test]
fn rotation_by_wallet_leaves_keys_that_cannot_manage_and_names_them() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let key = shop.signed_up(Kind::Token, &customer);
    let address = customer.address();
    let owner = shop.server.client_with(&key);
    let [harmless, manager] = [json!({"name": "helper"}), json!({"name": "manager", "scopes": ["call", "manage"]})]
        .map(|terms| made(&owner, &terms));
    let (nonce, message) = shop.challenge(&address);
    let right = shop.chain.wallet().sign_message(&customer, &message);
    let rotated = shop.verify(&address, &nonce, &right).expect(200);
    assert_eq!(shop.verify(&address, &nonce, &right).expect(404).error(), "not_found");
    assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(shop.balance(&key_of(&rotated)), "12.5");
    // A thief of the first key may have made more: the response names those that remain.
    let remaining = rotated.json()["remaining_keys"].clone();
    assert_eq!(remaining.as_array().unwrap().len(), 1, "and no key that can manage keys: {remaining}");
    assert_eq!((&remaining[0]["id"], &remaining[0]["name"]), (&json!(harmless.id), &json!("helper")));
    assert_eq!(remaining[0]["scopes"], json!(["call", "read"]));
    assert!(remaining[0]["created_at"].is_string(), "{remaining}");
    let current = |secret: &str| shop.server.client_with(secret).get("/keys/current").status;
    assert_eq!((current(&harmless.secret), current(&manager.secret)), (200, 401));
}
