//! Requests whose credits are held: placed and settled by services that serve requests themselves, and looked up by the
//! accounts that pay.

use http::{HeaderMap, StatusCode};
use metering_core::wire::{
    CaptureRequest, ErrorBody, HoldFieldNames, HoldRequest, HoldResponse, ReleaseRequest, RequestDocument,
    RequestsDocument,
};

use super::billing::{caller, check_secret};
use crate::api::app::App;
use crate::api::payable::Payable;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};

/// Requests whose credits are held now, newest first
///
/// At most 100.
#[utoipa::path(get, path = "/requests", tag = "account", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "The requests", body = RequestsDocument),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn held_requests(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &app.service.held_requests(&request.sender()?).await?))
}

/// What a request holds, or what it was charged
///
/// For requests whose cost is known only after their response. Their id is in the header `X-BDS-Request-Id`. A settled
/// request is kept for a day. A key without the scope `read` finds only its own requests.
#[utoipa::path(get, path = "/requests/{id}", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The id of the request, from `X-BDS-Request-Id`"),
), responses(
    (status = 200, description = "The request", body = RequestDocument),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the account has no such request, or no longer", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn request(app: &App, request: Request) -> Result<Reply, Problem> {
    let id = request.path.first().map(String::as_str).unwrap_or_default();
    let document = app.service.request(&request.sender()?, id).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Hold credits for a request that another service serves
///
/// For requests whose cost is known only afterwards: hold the most that it may cost, serve it, then capture what it
/// cost, or release the hold if it was not served. A hold that is neither captured nor released is charged its
/// `fallback` when its lease ends. With a `request_id`, a retry gets the first hold. Exists only if the operator has
/// configured an internal billing secret.
#[utoipa::path(post, path = "/internal/billing/hold", tag = "internal",
    security(("billing_secret" = [], "bearer" = [])), request_body = HoldRequest, responses(
    (status = 200, description = "Held", body = HoldResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 402, description = "`insufficient_credits`: the balance does not cover the hold; `key_budget_exhausted`, `payment_refused`; offers as in the 402 of metered routes", body = ErrorBody),
    (status = 403, description = "`forbidden`: the secret is wrong; `key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: no secret is configured", body = ErrorBody),
    (status = 409, description = "`payment_credited`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`overloaded`, `storage_unavailable`, `outcome_unknown`, `settlement_pending`, `settlement_unavailable`", body = ErrorBody),
))]
pub(crate) async fn hold(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = caller(app, &request.headers)?;
    // Each part from the same object, so that errors name the field.
    let parts = || {
        let _: HoldFieldNames = read(&request.body)?;
        Ok(HoldRequest { of: read(&request.body)?, terms: read(&request.body)? })
    };
    let parts = parts();
    let hold = match parts {
        Ok(hold) => hold,
        Err(problem) => {
            // Not `authenticate`: the client's address is in the body.
            app.service.lookup(key.as_ref()).await?;
            return Err(problem);
        }
    };
    let payable = Payable::read(&app.service, app.service.resource_of(&hold.of), &request.headers)?;
    match app.service.hold_paid(key.as_ref(), &hold, payable.payment()).await {
        Ok(held) => Ok(payable.charged(json(StatusCode::OK, &held), held.credit_balance)),
        Err(error) => Err(payable.refused(error)),
    }
}

/// Capture what a held request cost
///
/// Charges `amount`, or the price of `units`, and releases the rest. Without either, the hold's fallback is charged. A
/// hold is settled once: a repeated request changes nothing and gets the first outcome. Needs no key.
#[utoipa::path(post, path = "/internal/billing/capture", tag = "internal",
    security(("billing_secret" = [])), request_body = CaptureRequest, responses(
    (status = 200, description = "Captured, now or before", body = HoldResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 403, description = "`forbidden`: the secret is wrong", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such request, or no secret is configured", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn capture(app: &App, request: Request) -> Result<Reply, Problem> {
    let report: CaptureRequest = settling(app, &request.headers, &request.body)?;
    Ok(json(StatusCode::OK, &app.service.capture_held(&report).await?))
}

/// Release what is held for a request that was not served
///
/// Nothing is charged. A hold is settled once: a repeated request changes nothing and gets the first outcome. Needs no
/// key.
#[utoipa::path(post, path = "/internal/billing/release", tag = "internal",
    security(("billing_secret" = [])), request_body = ReleaseRequest, responses(
    (status = 200, description = "Released, now or before", body = HoldResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 403, description = "`forbidden`: the secret is wrong", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such request, or no secret is configured", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn release(app: &App, request: Request) -> Result<Reply, Problem> {
    let release: ReleaseRequest = settling(app, &request.headers, &request.body)?;
    Ok(json(StatusCode::OK, &app.service.release_held(&release.id).await?))
}

/// The body of a request that settles a hold, from a service that sent the billing secret.
fn settling<T: serde::de::DeserializeOwned>(app: &App, headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    check_secret(app, headers)?;
    read(body)
}
