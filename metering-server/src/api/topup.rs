//! Tops up an existing account with a payment.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{CompletionRequest, CompletionResponse, ErrorBody, TopUpRequest, TopUpResponse};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Top up the account with a payment
///
/// The payment must be at least the plan's price, from a wallet that is known to belong to the account. For any other
/// wallet, sign the `message` of the `payer_proof_required` response with it and repeat the request with that
/// `signature`. Submitting the same payment again changes nothing.
#[utoipa::path(post, path = "/credits/topup", tag = "payments", security(("bearer" = []), ("api_key" = [])),
    request_body = TopUpRequest, responses(
    (status = 200, description = "Credited, now or earlier", body = TopUpResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`, `invalid_tx_hash`, `invalid_signature`, `unsupported_chain`, `unknown_plan`, `tx_reverted`, `payment_mismatch`, `payment_predates_service`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`; `payer_proof_required`: `message` is the text that the payer must sign", body = ErrorBody),
    (status = 404, description = "`tx_not_found`", body = ErrorBody),
    (status = 409, description = "`payment_unconfirmed`, `tx_already_used`, `payment_reserved`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 501, description = "`checkout_not_available`: without `tx_hash`", body = ErrorBody),
    (status = 502, description = "`rpc_error`, `rpc_chain_mismatch`", body = ErrorBody),
    (status = 503, description = "`payment_not_configured`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn top_up(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.signup(&request.client()?)?;
    let sender = request.sender()?;
    let payment: TopUpRequest = match read(&request.body) {
        Ok(payment) => payment,
        Err(problem) => {
            app.service.authorize(&sender, Scope::TopUp).await?;
            return Err(problem);
        }
    };
    Ok(json(StatusCode::OK, &counted("topup", app.service.top_up(&sender, &payment).await)?))
}

/// Have a payment credited, as its payer
///
/// For the page that the `complete_url` of a `payer_proof_required` response leads to: the wallet that paid says which
/// account gets the credits. Needs no key. Without a `signature`, the response has the text to sign.
#[utoipa::path(post, path = "/credits/topup/complete", tag = "payments", request_body = CompletionRequest, responses(
    (status = 200, description = "Credited, now or earlier", body = CompletionResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`, `invalid_tx_hash`, `invalid_signature`, `unsupported_chain`, `unknown_plan`, `tx_reverted`, `payment_mismatch`, `payment_predates_service`", body = ErrorBody),
    (status = 403, description = "`payer_proof_required`: `message` is the text that the payer must sign", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such account; `tx_not_found`", body = ErrorBody),
    (status = 409, description = "`payment_unconfirmed`, `tx_already_used`, `payment_reserved`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 502, description = "`rpc_error`, `rpc_chain_mismatch`", body = ErrorBody),
    (status = 503, description = "`payment_not_configured`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn complete_top_up(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.signup(&request.client()?)?;
    let payment: CompletionRequest = read(&request.body)?;
    Ok(json(StatusCode::OK, &counted("topup", app.service.complete_top_up(&payment).await)?))
}
