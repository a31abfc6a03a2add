//! Who calls: a key that the service knows at this moment, its account, and whether that can pay.

use std::sync::Arc;

use http::HeaderMap;
use metering_client::{Client, ClientError};
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Credits, Error, KeyFault};
use serde::Deserialize;

use super::shares::AccountKey;
use crate::credentials;
use crate::http::Problem;

/// After how many seconds a service that cannot say whose a key is may be asked again.
const RETRY_SECONDS: u64 = 1;

/// A live key, and what its account has.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) key: ApiKey,
    pub(crate) account: AccountKey,
    pub(crate) has_credit: bool,
}

/// What of the balance's document counts here.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: Arc<str>,
    credit_balance: Credits,
}

/// The caller of a request, if its key is live: the service is asked, every time.
///
/// # Errors
/// 401 for any other; 502 or 503 when the service cannot say.
pub(crate) async fn authenticate(service: &Client, headers: &HeaderMap) -> Result<Caller, Problem> {
    let key = credentials::key(headers)?.ok_or(Error::Unauthorized)?;
    match look_up(service, &key).await {
        Ok(Some(caller)) => Ok(caller),
        Ok(None) => Err(Error::KeyRefused(KeyFault::NotLive).into()),
        Err(error) => {
            tracing::warn!(%error, "whether a key is live cannot be found out");
            let message = "The service behind the tools cannot be asked at the moment; try again.";
            Err(Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS))
        }
    }
}

/// Whose a key is; `None` when it is not live.
///
/// # Errors
/// When the service cannot say.
pub(crate) async fn look_up(service: &Client, key: &ApiKey) -> Result<Option<Caller>, ClientError> {
    // An answer at any balance, and free.
    let answer = match service.with_key(key.clone()).get("/credits/balance").await {
        Ok(answer) => answer,
        Err(ClientError::Refused(refusal)) if refusal.status == http::StatusCode::UNAUTHORIZED => return Ok(None),
        Err(error) => return Err(error),
    };
    let balance: Balance = serde_json::from_slice(&answer.body)
        .map_err(|error| ClientError::Garbled(format!("the balance cannot be read: {error}")))?;
    let (account, has_credit) = (balance.org_id, balance.credit_balance.is_positive());
    Ok(Some(Caller { key: key.clone(), account, has_credit }))
}
