//! Buying credits alone with signed authorizations (x402).

use http::StatusCode;
use metering_core::Error;
use metering_core::access::Scope;
use metering_pay::Bought;
use metering_pay::wire::OffersDocument;

use super::payable::Payable;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json, with_headers};
use crate::operations::metrics::counted;

/// Where people and clients pay.
const PAY: &str = "/credits/pay";
/// The same for the operator's own machines.
const PAY_INTERNAL: &str = "/internal/billing/pay";

pub(crate) async fn offers(app: &App, _: Request) -> Result<OffersDocument, Problem> {
    Ok(app.payments.offers_document(&app.service).await?)
}

pub(crate) async fn pay(app: &App, request: Request) -> Result<Reply, Problem> {
    bought(app, &request, PAY).await
}

pub(crate) async fn pay_internal(app: &App, request: Request) -> Result<Reply, Problem> {
    bought(app, &request, PAY_INTERNAL).await
}

async fn bought(app: &App, request: &Request, path: &str) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    // A caller that may not top up gets no further information, and pays nothing.
    app.service.access().authorize(&sender, Scope::TopUp).await?;
    let asked = app.service.offers().resource(path, None, None);
    let payable = Payable::read(&app.service, asked, sender.key.as_ref(), &request.headers)?;
    let bought = app.payments.buy(&app.service, (&sender).into(), payable.payment()).await;
    // Requesting the offers is not a step of a purchase.
    let bought = if matches!(bought, Err(Error::CreditsForSale)) { bought } else { counted("pay", bought) };
    match bought {
        Ok(Bought { document, receipt }) => {
            Ok(with_headers(json(StatusCode::OK, &document), receipt.into_iter().collect()))
        }
        Err(error) => Err(payable.refused(error)),
    }
}
