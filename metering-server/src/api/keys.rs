//! Replaces a key, with the key itself as proof.

use http::StatusCode;
use metering_core::Error;
use metering_core::wire::{ErrorBody, VerifyResponse};

use crate::access::credentials;
use crate::api::account::after_authentication;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Replace the key that this request is sent with
///
/// The old key stops working with this response, and its streams end within five seconds. The new key is shown only
/// once, so send an `Idempotency-Key` of at least 32 random characters, and keep it until you have stored the new key: if
/// the response is lost, the same request, with the old key and the same `Idempotency-Key`, returns the same new key.
#[utoipa::path(post, path = "/keys/current/rotate", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("Idempotency-Key" = Option<String>, Header, min_length = 32, max_length = 258, description = "Makes a lost response available again. At least 32 random characters, such as a UUID; keep it secret"),
), responses(
    (status = 200, description = "The new key", body = VerifyResponse),
    (status = 400, description = "`validation_failed`: the `Idempotency-Key` is too short or malformed", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn rotate_current_key(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    let rotation = match credentials::of(&request.headers).idempotency_key.transpose() {
        Ok(rotation) => rotation,
        Err(problem) => {
            let error = Error::field("Idempotency-Key", problem);
            return Err(after_authentication(app, &request.headers, error).await);
        }
    };
    let key = credentials::key(&request.headers)?;
    let rotated = counted("rotation", app.service.rotate_key(key.as_ref(), rotation.as_ref()).await)?;
    Ok(json(StatusCode::OK, &rotated))
}
