//! Replaces a lost key, with proof of the wallet that paid.

use http::StatusCode;
use metering_core::wire::{ChallengeRequest, ChallengeResponse, ErrorBody, VerifyRequest, VerifyResponse};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Get a message for the wallet to sign
#[utoipa::path(post, path = "/api-key/recover/challenge", tag = "recovery", request_body = ChallengeRequest, responses(
    (status = 201, description = "The message to sign", body = ChallengeResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 404, description = "`no_linked_wallet`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn challenge(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    let wanted: ChallengeRequest = read(&request.body)?;
    app.limit_wallet(wanted.address.as_deref())?;
    Ok(json(StatusCode::CREATED, &counted("challenge", app.service.challenge(&wanted).await)?))
}

/// Exchange the wallet's signature for a new key
///
/// The old key stops working with this response, and its streams end within five seconds. For smart-contract wallets,
/// the contract verifies the signature (EIP-1271) on the chain that the account was paid on.
#[utoipa::path(post, path = "/api-key/recover/verify", tag = "recovery", request_body = VerifyRequest, responses(
    (status = 200, description = "The new key, shown only once", body = VerifyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`, `address_mismatch`, `invalid_signature`", body = ErrorBody),
    (status = 404, description = "`not_found`: no open challenge with this nonce", body = ErrorBody),
    (status = 410, description = "`challenge_expired`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 502, description = "`rpc_error`, `rpc_chain_mismatch`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn verify(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    // Not counted per wallet: a challenge allows five wrong signatures, and its owner's correct one must get through.
    let proof: VerifyRequest = read(&request.body)?;
    Ok(json(StatusCode::OK, &counted("rotation", app.service.verify(&proof).await)?))
}
