//! The receipts of any account, as its owner gets them.

use http::StatusCode;
use metering_core::wire::{ErrorBody, ReceiptDocument};
use metering_core::{AccountId, Error};

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::endpoints::query::required;
use crate::http::{Problem, Reply, json};
use crate::receipt_file;

/// The receipt for a payment of an account
///
/// What the account's owner gets from `GET /credits/receipt`. The `receipt` of a payment in a list is its `number`.
#[utoipa::path(get, path = "/admin/accounts/{id}/receipt", operation_id = "account_receipt", tag = "payments",
    security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("number" = String, Query, description = "The number of the receipt, or of one of its credit notes"),
), responses(
    (status = 200, description = "The receipt", body = ReceiptDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such account, or it has no such receipt", body = ErrorBody),
))]
pub(super) async fn receipt(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let (receipt, _) = find(app, &request).await?;
    Ok(json(StatusCode::OK, &receipt))
}

/// The receipt for a payment of an account, as a PDF file
///
/// With the number of a credit note, the file of the credit note.
#[utoipa::path(get, path = "/admin/accounts/{id}/receipt.pdf", operation_id = "account_receipt_pdf", tag = "payments",
    security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("number" = String, Query, description = "The number of the receipt, or of one of its credit notes"),
), responses(
    (status = 200, description = "The receipt", body = String, content_type = "application/pdf"),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such account, or it has no such receipt", body = ErrorBody),
))]
pub(super) async fn receipt_pdf(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let (receipt, number) = find(app, &request).await?;
    Ok(receipt_file::reply(&receipt, &number))
}

/// The receipt that a viewer requested, and the number in the request.
async fn find(app: &AdminApp, request: &Request) -> Result<(ReceiptDocument, String), Problem> {
    app.viewer(request).await?;
    let id: AccountId = request.segment(0).parse().map_err(|error| Error::field("id", error))?;
    let number = required(&request.query, "number")?;
    let account = app.administration.account(&id).await?;
    let receipt = app.app.service.payments().receipt_of_account(&account, &number).await?;
    Ok((receipt, number.into_owned()))
}
