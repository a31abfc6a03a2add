//! `metering rotate --current`: replaces the profile's key with the key itself as proof. A lost response loses no key: the
//! request has an idempotency key, with which the service returns the same new key again.

use std::time::Duration;

use metering_client::ClientError;
use metering_core::charging::IdempotencyKey;
use serde_json::json;

use crate::client::charging::call::generate_key;
use crate::client::payments::payment::paid::Issued;
use crate::client::session::Session;
use crate::failure::Failure;

/// How often a request without a response is sent before the user is asked to try later.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// The new key. `given` is the idempotency key of an earlier run whose response was lost.
pub(super) async fn replaced(session: &Session, given: Option<&IdempotencyKey>) -> Result<Issued, Failure> {
    let rotation = given.cloned().unwrap_or_else(generate_key);
    let client = session.client()?.with_idempotency_key(rotation.clone());
    let mut attempt = 1;
    loop {
        let error = match client.post("/keys/current/rotate", &json!({})).await {
            Ok(response) => return Ok(response.json()?),
            Err(error) => error,
        };
        if !is_uncertain(&error) {
            return Err(error.into());
        }
        if attempt == ATTEMPTS {
            return Err(Failure::TryLater(format!(
                "the response was lost ({error}): the key may have been replaced. To get the new key, keep the old one \
                 and run `metering rotate --current --idempotency-key {}`",
                rotation.as_str()
            )));
        }
        attempt += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether the key may have been replaced, or may be by another attempt.
fn is_uncertain(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refusal) => refusal.status.is_server_error(),
        _ => true,
    }
}
