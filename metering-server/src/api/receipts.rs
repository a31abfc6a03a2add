//! Receipts for the purchases of the caller's account, and whom they name.

use metering_client::calls::account::{AddReceiptBuyer, GetReceipt, GetReceiptPdf, ListReceipts};
use metering_core::access::{Right, Scope};
use metering_core::wire::{BuyerRequest, BuyerResponse, ReceiptDocument, ReceiptsDocument};

use crate::api::account::{first_key, parameters};
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply};
use crate::operations::metrics::counted;
use crate::receipt_file;

pub(crate) async fn receipts(app: &App, request: Request) -> Result<ReceiptsDocument, Problem> {
    let page = parameters::<ListReceipts>(app, &request, Scope::Read).await?;
    Ok(app.service.payments().receipts(&request.sender()?, page.before.map(|entry| entry.0), page.limit.0).await?)
}

pub(crate) async fn receipt(app: &App, request: Request) -> Result<ReceiptDocument, Problem> {
    let of = parameters::<GetReceipt>(app, &request, Scope::Read).await?;
    Ok(app.service.payments().receipt(&request.sender()?, &of.number).await?)
}

pub(crate) async fn receipt_pdf(app: &App, request: Request) -> Result<Reply, Problem> {
    let of = parameters::<GetReceiptPdf>(app, &request, Scope::Read).await?;
    let receipt = app.service.payments().receipt(&request.sender()?, &of.number).await?;
    Ok(receipt_file::reply(&receipt, &of.number))
}

pub(crate) async fn add_receipt_buyer(app: &App, request: Request) -> Result<ReceiptDocument, Problem> {
    let (sender, _) = first_key(app, &request, Right::Pay).await?;
    let of = parameters::<AddReceiptBuyer>(app, &request, Scope::Manage).await?;
    let added = app.service.payments().add_receipt_buyer(&sender, &of.number).await;
    Ok(counted("receipt_buyer", added)?)
}

pub(crate) async fn buyer(app: &App, request: Request) -> Result<BuyerResponse, Problem> {
    Ok(app.service.payments().buyer(&request.sender()?).await?)
}

pub(crate) async fn set_buyer(app: &App, request: Request) -> Result<BuyerResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Pay).await?;
    let wanted: BuyerRequest = read(&request.body)?;
    Ok(counted("buyer", app.service.payments().set_buyer(&sender, &wanted).await)?)
}
