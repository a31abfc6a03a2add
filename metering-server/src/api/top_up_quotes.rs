//! Top-up quotes: an exact amount that any wallet may pay to the caller's account.

use metering_client::calls::payments::GetTopUpQuote;
use metering_core::access::Scope;
use metering_core::wire::{TopUpQuoteDocument, TopUpQuoteRequest};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn top_up_quote(app: &App, request: Request) -> Result<TopUpQuoteDocument, Problem> {
    app.limits.signup(&request.client()?)?;
    let sender = request.sender()?;
    let account = counted("topup_quote", app.service.access().authorize(&sender, Scope::TopUp).await)?;
    app.limits.top_up_quote(&account.id)?;
    let wanted: TopUpQuoteRequest = read(&request.body)?;
    Ok(counted("topup_quote", app.service.payments().top_up_quote(&sender, &wanted).await)?)
}

pub(crate) async fn top_up_quote_status(app: &App, request: Request) -> Result<TopUpQuoteDocument, Problem> {
    let sender = request.sender()?;
    let account = app.service.access().authorize_any(&sender, &[Scope::TopUp, Scope::Read]).await?;
    app.limits.top_up_poll(&account.id)?;
    let of = request.parameters::<GetTopUpQuote>()?;
    Ok(app.service.payments().top_up_quote_by_id(&sender, &of.quote_id).await?)
}
