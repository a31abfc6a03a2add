//! Charging over HTTP, for services (resolvers) that serve the requests themselves.

use http::{HeaderMap, StatusCode};
use metering_core::ApiKey;
use metering_core::wire::{
    DeductRequest, DeductResponse, ErrorBody, ErrorCode, HoldResponse, LookupResponse, SettleRequest, metered_headers,
};

use crate::access::credentials;
use crate::api::app::App;
use crate::api::payable::Payable;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json, with_headers};

const SECRET_HEADER: &str = "x-bds-internal-billing-secret";

/// Charge a request that another service serves
///
/// Exists only if the operator has configured an internal billing secret. Where the service offers payments with
/// requests, pass on the client's payment headers with this request, and the payment headers of the response to the
/// client.
#[utoipa::path(post, path = "/internal/billing/deduct", tag = "internal",
    security(("billing_secret" = [], "bearer" = [])), request_body = DeductRequest, responses(
    (status = 200, description = "Charged", body = DeductResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 402, description = "`insufficient_credits`, `key_budget_exhausted`, `payment_refused`; offers as in the 402 of metered routes", body = ErrorBody),
    (status = 403, description = "`forbidden`: the secret is wrong; `key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: no secret is configured", body = ErrorBody),
    (status = 409, description = "`payment_credited`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`overloaded`, `storage_unavailable`, `outcome_unknown`, `settlement_pending`, `settlement_unavailable`", body = ErrorBody),
))]
pub(crate) async fn deduct(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = caller(app, &request.headers)?;
    // A resolver may send nothing at all: that is a request of the default weight.
    let body: &[u8] = if request.body.trim_ascii().is_empty() { b"{}" } else { &request.body };
    let charge: DeductRequest = match read(body) {
        Ok(charge) => charge,
        Err(problem) => {
            // Not `authenticate`: the client's address is in the body.
            app.service.lookup(key.as_ref()).await?;
            return Err(problem);
        }
    };
    let payable = Payable::read(&app.service, app.service.resource_of(&charge), &request.headers)?;
    let receipt = match app.service.deduct_paid(key.as_ref(), &charge, payable.payment()).await {
        Ok(receipt) => receipt,
        Err(error) => return Err(payable.refused(error)),
    };
    let response = DeductResponse {
        ok: true,
        credit_balance: receipt.balance,
        amount_charged: receipt.charged,
        org_id: receipt.account.to_string(),
    };
    let reply = with_headers(json(StatusCode::OK, &response), metered_headers(&receipt));
    Ok(payable.charged(reply, receipt.balance))
}

/// Look up the account of a key, without charging
///
/// Exists only if the operator has configured an internal billing secret.
#[utoipa::path(post, path = "/internal/billing/lookup", tag = "internal",
    security(("billing_secret" = [], "bearer" = [])), responses(
    (status = 200, description = "The account", body = LookupResponse),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 403, description = "`forbidden`", body = ErrorBody),
    (status = 404, description = "`not_found`: no secret is configured", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn lookup(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = caller(app, &request.headers)?;
    Ok(json(StatusCode::OK, &app.service.lookup(key.as_ref()).await?))
}

/// Settle a request that a proxy asked about
///
/// With the status of the response: one of the route's free statuses, by default 429 and 5xx, releases what is held,
/// and any other status charges it. A request is settled once: a repeated one changes nothing and gets the first
/// outcome. Without it, the request is charged when `authorize.settle_within` has passed. Needs no key.
#[utoipa::path(post, path = "/internal/billing/settle", tag = "internal",
    security(("billing_secret" = [])), request_body = SettleRequest, responses(
    (status = 200, description = "Settled, now or before", body = HoldResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 403, description = "`forbidden`: the secret is wrong", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such request, or no secret is configured", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn settle(app: &App, request: Request) -> Result<Reply, Problem> {
    check_secret(app, &request.headers)?;
    let ended: SettleRequest = read(&request.body)?;
    Ok(json(StatusCode::OK, &app.service.settle_proxied(&ended).await?))
}

/// The client's key, passed on by a service that sent the billing secret.
pub(super) fn caller(app: &App, headers: &HeaderMap) -> Result<Option<ApiKey>, Problem> {
    check_secret(app, headers)?;
    Ok(credentials::key(headers)?)
}

/// Rejects callers without the billing secret.
pub(super) fn check_secret(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let secret = app.billing_secret.as_ref().ok_or_else(Problem::not_found)?;
    let sent = headers.get(SECRET_HEADER).map(http::HeaderValue::as_bytes).unwrap_or_default();
    if !secret.admits(sent) {
        let message = "Send the internal billing secret in the X-BDS-Internal-Billing-Secret header.";
        return Err(Problem::new(ErrorCode::Forbidden, message));
    }
    Ok(())
}
