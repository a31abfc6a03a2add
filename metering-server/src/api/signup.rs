//! Signup with payment: quote and claim.

use metering_core::wire::{ClaimRequest, ClaimResponse, QuoteRequest, QuoteResponse};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn quote(app: &App, request: Request) -> Result<QuoteResponse, Problem> {
    let client = request.client()?;
    app.limits.signup(&client)?;
    let wanted: QuoteRequest = read(&request.body)?;
    app.limit_quote(&client, wanted.payer_address.as_deref())?;
    Ok(counted("quote", app.service.payments().quote(&wanted).await)?)
}

pub(crate) async fn claim(app: &App, request: Request) -> Result<ClaimResponse, Problem> {
    app.limits.signup(&request.client()?)?;
    let claim: ClaimRequest = read(&request.body)?;
    Ok(counted("claim", app.service.payments().claim(&claim).await)?)
}
