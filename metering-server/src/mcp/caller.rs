//! Who calls: a key that the service knows at this moment.

use http::HeaderMap;
use metering_client::{Client, ClientError};
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Credentials, Error};

use crate::credentials;
use crate::http::Problem;

/// After how many seconds a service that cannot say whose a key is may be asked again.
const RETRY_SECONDS: u64 = 1;

/// The key of a request, if it is live: the service is asked, every time.
///
/// # Errors
/// 401 for any other; 502 or 503 when the service cannot say.
pub(crate) async fn authenticate(service: &Client, headers: &HeaderMap) -> Result<ApiKey, Problem> {
    let Credentials { key, .. } = credentials::of(headers);
    let key = key.ok_or(Error::Unauthorized)?;
    match is_live(service, &key).await {
        Ok(true) => Ok(key),
        Ok(false) => Err(Error::Unauthorized.into()),
        Err(error) => {
            tracing::warn!(%error, "whether a key is live cannot be found out");
            let message = "The service behind the tools cannot be asked at the moment; try again.";
            Err(Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS))
        }
    }
}

/// Whether a key is live.
///
/// # Errors
/// When the service cannot say.
pub(crate) async fn is_live(service: &Client, key: &ApiKey) -> Result<bool, ClientError> {
    // An answer at any balance, and free.
    match service.with_key(key.clone()).get("/credits/balance").await {
        Ok(_) => Ok(true),
        Err(ClientError::Refused(refusal)) if refusal.status == http::StatusCode::UNAUTHORIZED => Ok(false),
        Err(error) => Err(error),
    }
}
