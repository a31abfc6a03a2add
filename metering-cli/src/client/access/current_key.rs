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
use crate::output::notice;

/// How often a request without a response is sent before the user is asked to try later.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// The new key. `given` is the idempotency key of an earlier run whose response was lost.
pub(super) async fn replaced(session: &Session, given: Option<&IdempotencyKey>) -> Result<Issued, Failure> {
    let rotation = given.cloned().unwrap_or_else(generate_key);
    let again = format!("metering rotate --current --idempotency-key {}", rotation.as_str());
    notice(&format!("If this is interrupted, keep the old key and get the new one with `{again}`."));
    let client = session.client()?.with_idempotency_key(rotation);
    let mut is_begun = given.is_some();
    for attempt in 1.. {
        let error = match client.post("/keys/current/rotate", &json!({})).await.and_then(|response| response.json()) {
            Ok(issued) => return Ok(issued),
            Err(error) => error,
        };
        // Once an attempt may have replaced the key, only a key that is not live says that there is no new one to get.
        let is_over = if is_begun { is_unauthorized(&error) } else { !is_uncertain(&error) };
        if is_over {
            return Err(error.into());
        }
        is_begun = true;
        if attempt == ATTEMPTS {
            return Err(Failure::TryLater(format!(
                "the response was lost ({error}): the key may have been replaced. To get the new key, keep the old one \
                 and run `{again}`"
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
    unreachable!("the last attempt returns")
}

fn is_unauthorized(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.status == 401)
}

/// Whether the key may have been replaced, or may be by another attempt.
fn is_uncertain(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refusal) => refusal.status.is_server_error(),
        _ => true,
    }
}
