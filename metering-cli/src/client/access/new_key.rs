//! Requests a new key until it arrives. A lost response does not lose the key: the request has an idempotency key, with
//! which the service returns the same new key again.

use std::time::Duration;

use metering_client::{Client, ClientError};
use serde::Serialize;

use crate::client::payments::payment::paid::Issued;
use crate::failure::Failure;

/// How often a request without a response is retried before the command gives up.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// A request that replaces a key.
pub(super) struct Replacement<'a, B> {
    pub(super) path: &'a str,
    pub(super) body: B,
    /// The status that proves that there is no new key, even if an earlier response was lost.
    pub(super) final_status: u16,
    /// Whether an earlier run may have replaced the key.
    pub(super) is_begun: bool,
    /// What to do if no response arrives.
    pub(super) advice: String,
}

impl<B: Serialize> Replacement<'_, B> {
    /// The new key. `client` has the idempotency key.
    pub(super) async fn get(self, client: &Client) -> Result<Issued, Failure> {
        let mut is_begun = self.is_begun;
        for attempt in 1.. {
            let error = match client.post(self.path, &self.body).await.and_then(|response| response.json()) {
                Ok(issued) => return Ok(issued),
                Err(error) => error,
            };
            // Once an attempt may have replaced the key, only this status means that there is no new one.
            let is_over = if is_begun { has_status(&error, self.final_status) } else { !is_uncertain(&error) };
            if is_over {
                return Err(error.into());
            }
            is_begun = true;
            if attempt == ATTEMPTS {
                return Err(Failure::TryLater(format!(
                    "the response was lost ({error}): the key may have been replaced. To get the new key, {}",
                    self.advice
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
        unreachable!("the last attempt returns")
    }
}

fn has_status(error: &ClientError, status: u16) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.status == status)
}

/// Whether the key may have been replaced, or another attempt may replace it.
fn is_uncertain(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refusal) => refusal.status.is_server_error(),
        _ => true,
    }
}
