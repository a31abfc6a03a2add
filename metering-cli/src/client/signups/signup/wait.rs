//! Waits for the approval: polls at the service's pace, and keeps polling through short outages.

use std::pin::pin;
use std::time::Duration;

use metering_client::{Client, ClientError, Refusal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::access::profile::Profile;
use crate::client::money::amount::Amount;
use crate::client::session::documents::Caps;
use crate::client::session::interruption::Interruption;
use crate::client::session::percent::push_encoded;
use crate::client::signups::signup::pending::Pending;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::printable;

/// How long a poll in flight may still take after Ctrl-C: its response may contain the key.
const FINAL_POLL_TIMEOUT: Duration = Duration::from_secs(5);

/// How the waiting ended.
pub(super) enum SignupOutcome {
    Approved(Approved),
    Expired,
}

/// The account and its key, which the service does not return again.
pub(super) struct Approved {
    pub(super) api_key: Zeroizing<String>,
    pub(super) org_id: String,
    pub(super) credit_balance: Amount,
    pub(super) rate_limits: Caps,
    pub(super) email_verification: Option<Verification>,
}

/// Whether the email address must be verified.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct Verification {
    pub(super) status: String,
    pub(super) free_credits: Amount,
}

/// The response to `GET /signup/status`. One struct, because serde buffers tagged enums, and amounts do not survive
/// that.
#[derive(Deserialize)]
struct Status {
    status: String,
    api_key: Option<Zeroizing<String>>,
    org_id: Option<String>,
    credit_balance: Option<Amount>,
    rate_limits: Option<Caps>,
    email_verification: Option<Verification>,
}

/// The result of one poll.
enum PollResult {
    Done(SignupOutcome),
    /// Not approved yet; poll again after at least this long.
    Pending(Option<Duration>),
    /// The service is unreachable or failing.
    Unreachable(Failure, Option<Duration>),
}

/// Polls until the session is approved or has expired.
pub(super) async fn wait(
    client: &Client,
    profile: &Profile,
    pending: &Pending,
    mut interruption: Interruption,
) -> Result<SignupOutcome, Failure> {
    let mut target = "/signup/status?session_token=".to_owned();
    push_encoded(&pending.session_token, &mut target);
    let target = Zeroizing::new(target);
    let mut was_unreachable = false;
    loop {
        let result = poll(client, profile, &target, &mut interruption).await?;
        let left = pending.time_left();
        let at_least = match result {
            PollResult::Done(outcome) => return Ok(outcome),
            PollResult::Pending(_) if left.is_zero() => return Ok(SignupOutcome::Expired),
            PollResult::Unreachable(failure, _) if left.is_zero() => return Err(failure),
            PollResult::Pending(pause) => {
                was_unreachable = false;
                pause
            }
            PollResult::Unreachable(failure, pause) => {
                if !was_unreachable {
                    notice(&printable(&format!("{failure}; still trying")));
                }
                was_unreachable = true;
                pause
            }
        };
        // The last poll is at the end of the session, even if the service requests a longer pause.
        let pause = pending.interval().max(at_least.unwrap_or_default()).min(left);
        tokio::select! {
            () = tokio::time::sleep(pause.max(Duration::from_millis(100))) => {}
            () = interruption.next() => return Err(interrupted()),
        }
    }
}

async fn poll(
    client: &Client,
    profile: &Profile,
    target: &str,
    interruption: &mut Interruption,
) -> Result<PollResult, Failure> {
    let mut request = pin!(client.get(target));
    let (response, stop) = tokio::select! {
        response = &mut request => (response, false),
        () = interruption.next() => match tokio::time::timeout(FINAL_POLL_TIMEOUT, request).await {
            Ok(response) => (response, true),
            Err(_) => return Err(interrupted()),
        },
    };
    let result = match response {
        Ok(response) => read(response.json()?),
        Err(ClientError::Refused(refusal)) => refused(*refusal, profile),
        Err(error @ ClientError::Unreachable(_)) => Ok(PollResult::Unreachable(error.into(), None)),
        Err(error @ ClientError::Garbled(_)) => Err(error.into()),
    }?;
    if stop && !matches!(result, PollResult::Done(_)) { Err(interrupted()) } else { Ok(result) }
}

fn read(response: Status) -> Result<PollResult, Failure> {
    let Status { status, api_key, org_id, credit_balance, rate_limits, email_verification } = response;
    match (status.as_str(), api_key, org_id, credit_balance, rate_limits) {
        ("pending", ..) => Ok(PollResult::Pending(None)),
        ("expired", ..) => Ok(PollResult::Done(SignupOutcome::Expired)),
        ("approved", Some(api_key), Some(org_id), Some(credit_balance), Some(rate_limits)) => {
            let approved = Approved { api_key, org_id, credit_balance, rate_limits, email_verification };
            Ok(PollResult::Done(SignupOutcome::Approved(approved)))
        }
        _ => Err(ClientError::Garbled("not a signup status".to_owned()).into()),
    }
}

fn refused(refusal: Refusal, profile: &Profile) -> Result<PollResult, Failure> {
    let pause = refusal.retry_after;
    match refusal.status.as_u16() {
        429 => Ok(PollResult::Pending(pause)),
        500..=599 => Ok(PollResult::Unreachable(ClientError::from(refusal).into(), pause)),
        // The session no longer exists, so there is nothing to poll.
        404 => {
            Pending::remove(profile)?;
            Err(Failure::NotFound(
                "the service no longer knows this signup. If it was approved, its key was returned, once, in a \
                response that did not arrive: ask the operator of the service for a new key for that account, or \
                sign up with another email address. If it was not approved, run `metering signup` again."
                    .to_owned(),
            ))
        }
        409 => {
            Pending::remove(profile)?;
            Err(ClientError::from(refusal).into())
        }
        _ => Err(ClientError::from(refusal).into()),
    }
}

fn interrupted() -> Failure {
    Failure::Interrupted("stopped waiting; run `metering signup` again to continue with the same code".to_owned())
}
