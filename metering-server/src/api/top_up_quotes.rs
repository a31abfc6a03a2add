//! Top-up quotes: an exact amount that any wallet may pay to the caller's account.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{ErrorBody, TopUpQuoteDocument, TopUpQuoteRequest};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::endpoints::query::required;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Get a top-up quote
///
/// The amount is the plan's price plus a small tag that identifies this quote. Pay exactly that amount from any wallet,
/// once, in a plain transfer: it is credited to this account, without a signature. The native coin must come from an
/// account with a private key, not from a contract. Payments mined within a day of `expires_at` are honoured. An
/// account that asks again soon gets the same quote, unless a payment of it was seen; to pay again, ask again once it
/// is `paid`.
#[utoipa::path(post, path = "/credits/topup/quote", tag = "payments", security(("bearer" = []), ("api_key" = [])),
    request_body = TopUpQuoteRequest, responses(
    (status = 201, description = "The quote", body = TopUpQuoteDocument),
    (status = 400, description = "`invalid_json`, `validation_failed`, `unsupported_chain`, `unknown_plan`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 502, description = "`rpc_error`, `rpc_chain_mismatch`", body = ErrorBody),
    (status = 503, description = "`payment_not_configured`, `quotes_exhausted`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn top_up_quote(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.signup(&request.client()?)?;
    let sender = request.sender()?;
    let account = counted("topup_quote", app.service.authorize(&sender, Scope::TopUp).await)?;
    app.limits.top_up_quote(&account.id)?;
    let wanted: TopUpQuoteRequest = read(&request.body)?;
    let quoted = counted("topup_quote", app.service.top_up_quote(&sender, &wanted).await)?;
    Ok(json(StatusCode::CREATED, &quoted))
}

/// A top-up quote and its payment
///
/// Poll this, every few seconds, to wait for the payment: a payment in one of the newest blocks is `seen`, with its
/// confirmations, before it is credited. The request credits a confirmed payment itself. If a reorganisation of the
/// chain removes a credited payment, the status is `reversed` until the payment, or another of the amount, is mined.
#[utoipa::path(get, path = "/credits/topup/quote", tag = "payments", security(("bearer" = []), ("api_key" = [])), params(
    ("quote_id" = String, Query, description = "The quote's id", pattern = "^tuq_[0-9a-f]{64}$", example = "tuq_9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
), responses(
    (status = 200, description = "The quote", body = TopUpQuoteDocument),
    (status = 400, description = "`validation_failed`, `unsupported_chain`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the account has no such quote", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`payment_not_configured`, `storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn top_up_quote_status(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let account = app.service.authorize_any(&sender, &[Scope::TopUp, Scope::Read]).await?;
    app.limits.top_up_poll(&account.id)?;
    let id = required(&request.query, "quote_id")?;
    Ok(json(StatusCode::OK, &app.service.top_up_quote_by_id(&sender, &id).await?))
}
