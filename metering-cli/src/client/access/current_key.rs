//! `metering rotate --current`: replaces the profile's key with the key itself as proof.

use metering_core::charging::IdempotencyKey;
use serde_json::json;

use crate::client::access::new_key::Replacement;
use crate::client::charging::call::generate_key;
use crate::client::payments::payment::paid::Issued;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::output::notice;

/// The new key. `given` is the idempotency key of an earlier run whose response was lost.
pub(super) async fn replaced(session: &Session, given: Option<&IdempotencyKey>) -> Result<Issued, Failure> {
    let rotation = given.cloned().unwrap_or_else(generate_key);
    let again = format!("metering rotate --current --idempotency-key {}", rotation.as_str());
    notice(&format!("If this is interrupted, keep the old key and get the new one with `{again}`."));
    let client = session.client()?.with_idempotency_key(rotation);
    let replacement = Replacement {
        path: "/keys/current/rotate",
        body: json!({}),
        final_status: 401,
        is_begun: given.is_some(),
        advice: format!("keep the old one and run `{again}`"),
    };
    replacement.get(&client).await
}
