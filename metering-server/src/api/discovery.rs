//! The service's published descriptions: its paid routes, for agents and directories of paid services, and the keys
//! that sign its receipts of requests and its log.

use metering_core::Error;
use metering_core::wire::{ErrorBody, ErrorCode, ReceiptKeysDocument};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, cached};
use crate::signed_receipts::SignedReceipts;

/// What can be paid with a request
///
/// The metered routes with their offers, for agents and directories of paid services: `resources` are URLs to try, and
/// `items` describe how to call and pay each route. The offers of a 402 count, not these.
#[utoipa::path(get, path = "/.well-known/x402", operation_id = "x402", tag = "descriptions", responses(
    (status = 200, description = "The routes and their offers", content_type = "application/json"),
    (status = 404, description = "`not_found`: the service offers no payments with requests", body = ErrorBody),
))]
pub(crate) async fn x402(app: &App, request: Request) -> Result<Reply, Problem> {
    app.documents.manifest(&app.service, &app.payments, &request.headers).ok_or_else(|| {
        Problem::new(ErrorCode::NotFound, "This service offers no payments with requests; see /credits/plans.")
    })
}

/// What can be paid with a request
///
/// The same document as `/.well-known/x402`.
#[utoipa::path(get, path = "/.well-known/x402.json", operation_id = "x402_json", tag = "descriptions", responses(
    (status = 200, description = "The routes and their offers", content_type = "application/json"),
    (status = 404, description = "`not_found`: the service offers no payments with requests", body = ErrorBody),
))]
pub(crate) async fn x402_json(app: &App, request: Request) -> Result<Reply, Problem> {
    x402(app, request).await
}

pub(crate) async fn receipt_keys(app: &App, request: Request) -> Result<Reply, Problem> {
    let running = app.log.running().borrow().clone();
    let read = async {
        let logs = app.log.documents().await.map_err(Error::from)?;
        let keys = app.receipts.as_ref().map(SignedReceipts::keys).unwrap_or_default().to_vec();
        Ok::<_, Problem>(ReceiptKeysDocument { keys, logs })
    };
    let none = || Problem::new(ErrorCode::NotFound, "This service signs no receipts of requests, and no log.");
    let document = app.published_keys.document(running, read).await?.ok_or_else(none)?;
    Ok(cached(&document, &request.headers))
}
