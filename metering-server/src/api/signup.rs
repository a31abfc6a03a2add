//! Signup with payment: quote and claim.

use http::StatusCode;
use metering_core::wire::{ClaimRequest, ClaimResponse, ErrorBody, QuoteRequest, QuoteResponse};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Get a quote for a plan
///
/// The amount is the plan's price plus a small tag that identifies this quote. Pay exactly that amount from
/// `payer_address`, in a plain transfer. Payments mined within seven days of `expires_at` are honoured.
#[utoipa::path(post, path = "/signup/pay/quote", tag = "payments", request_body = QuoteRequest, responses(
    (status = 201, description = "The quote", body = QuoteResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`, `unsupported_chain`, `unknown_plan`, `unsupported_token`, `payer_is_contract`", body = ErrorBody),
    (status = 409, description = "`email_already_registered`, `payer_already_registered`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 502, description = "`rpc_error`, `rpc_chain_mismatch`", body = ErrorBody),
    (status = 503, description = "`payment_not_configured`, `quotes_exhausted`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn quote(app: &App, request: Request) -> Result<Reply, Problem> {
    let client = request.client()?;
    app.limits.signup(&client)?;
    let wanted: QuoteRequest = read(&request.body)?;
    app.limit_quote(&client, wanted.payer_address.as_deref())?;
    Ok(json(StatusCode::CREATED, &counted("quote", app.service.quote(&wanted).await)?))
}

/// Claim the account of a paid quote
///
/// Waits for the payment's confirmations, by default for up to 45 seconds. The key is shown only once. A claim that
/// fails changes nothing and can be repeated.
#[utoipa::path(post, path = "/signup/pay/claim", tag = "payments", request_body = ClaimRequest, responses(
    (status = 200, description = "The account and its key", body = ClaimResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`, `invalid_tx_hash`, `tx_reverted`, `payment_mismatch`, `payer_mismatch`, `payment_predates_quote`, `payment_predates_service`", body = ErrorBody),
    (status = 404, description = "`not_found`: no such quote; `tx_not_found`", body = ErrorBody),
    (status = 409, description = "`already_claimed`, `payment_unconfirmed`, `tx_already_used`, `payer_already_registered`", body = ErrorBody),
    (status = 410, description = "`quote_expired`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 502, description = "`rpc_error`, `rpc_chain_mismatch`", body = ErrorBody),
    (status = 503, description = "`payment_not_configured`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn claim(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.signup(&request.client()?)?;
    let claim: ClaimRequest = read(&request.body)?;
    Ok(json(StatusCode::OK, &counted("claim", app.service.claim(&claim).await)?))
}
