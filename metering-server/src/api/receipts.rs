//! Receipts for the purchases of the caller's account.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{ErrorBody, ReceiptDocument, ReceiptsDocument};

use crate::api::account::after_authorization;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::query::{EntryNumber, number, optional, required};
use crate::http::{Problem, Reply, json};

/// Receipts for purchases, newest first
///
/// If `next` is not null, older receipts follow: send it as `before`.
#[utoipa::path(get, path = "/credits/receipts", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("before" = Option<i64>, Query, description = "The value of `next` in the previous response", minimum = 0, example = 1000),
    ("limit" = Option<u32>, Query, description = "Maximum number of receipts, 20 by default", minimum = 1, maximum = 100, example = 20),
), responses(
    (status = 200, description = "Receipts", body = ReceiptsDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn receipts(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match (optional::<EntryNumber>(&request.query, "before"), number(&request.query, "limit", 20)) {
        (Ok(before), Ok(limit)) => app.service.receipts(&sender, before.map(|entry| entry.0), limit).await?,
        (Err(error), _) | (_, Err(error)) => return Err(after_authorization(app, &request, Scope::Read, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// The receipt for a purchase
///
/// `/metering/receipt?number=...` is the page to print.
#[utoipa::path(get, path = "/credits/receipt", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("number" = String, Query, description = "The receipt's number", pattern = "^[Rr]-(0|[1-9][0-9]{0,18})-[0-9A-Fa-f]{16}$", example = "R-8453-9F86D081884C7D65"),
), responses(
    (status = 200, description = "The receipt", body = ReceiptDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the account has no such receipt", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn receipt(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match required(&request.query, "number") {
        Ok(number) => app.service.receipt(&sender, &number).await?,
        Err(error) => return Err(after_authorization(app, &request, Scope::Read, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}
