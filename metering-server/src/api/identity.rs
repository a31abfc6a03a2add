//! The DID document of the service: where verifiers look for the key of a signed offer or receipt of x402.

use metering_core::wire::{ErrorBody, ErrorCode};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply};

/// The service as a DID
///
/// The DID document of `did:web:HOST`, with the public keys of `/.well-known/metering-keys`. Offers and receipts of x402 that
/// are signed as JWS name one of them in `kid`.
#[utoipa::path(get, path = "/.well-known/did.json", operation_id = "did", tag = "descriptions", responses(
    (status = 200, description = "The DID document", content_type = "application/did+json"),
    (status = 404, description = "`not_found`: the service signs no receipts of requests, or its URL has a path", body = ErrorBody),
))]
pub(crate) async fn did(app: &App, request: Request) -> Result<Reply, Problem> {
    let none = || Problem::new(ErrorCode::NotFound, "This service has no DID document.");
    app.receipts.as_ref().and_then(|receipts| receipts.did(&request.headers)).ok_or_else(none)
}
