//! Receipts for the purchases of the caller's account.

use metering_client::calls::account::{GetReceipt, ListReceipts};
use metering_core::access::Scope;
use metering_core::wire::{ReceiptDocument, ReceiptsDocument};

use crate::api::account::parameters;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::Problem;

pub(crate) async fn receipts(app: &App, request: Request) -> Result<ReceiptsDocument, Problem> {
    let page = parameters::<ListReceipts>(app, &request, Scope::Read).await?;
    Ok(app.service.payments().receipts(&request.sender()?, page.before.map(|entry| entry.0), page.limit.0).await?)
}

pub(crate) async fn receipt(app: &App, request: Request) -> Result<ReceiptDocument, Problem> {
    let of = parameters::<GetReceipt>(app, &request, Scope::Read).await?;
    Ok(app.service.payments().receipt(&request.sender()?, &of.number).await?)
}
