//! Tops up an existing account with a payment.

use metering_core::access::Scope;
use metering_core::wire::{CompletionRequest, CompletionResponse, TopUpRequest, TopUpResponse};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn top_up(app: &App, request: Request) -> Result<TopUpResponse, Problem> {
    app.limits.signup(&request.client()?)?;
    let sender = request.sender()?;
    let payment: TopUpRequest = match read(&request.body) {
        Ok(payment) => payment,
        Err(problem) => {
            app.service.access().authorize(&sender, Scope::TopUp).await?;
            return Err(problem);
        }
    };
    Ok(counted("topup", app.service.payments().top_up(&sender, &payment).await)?)
}

pub(crate) async fn complete_top_up(app: &App, request: Request) -> Result<CompletionResponse, Problem> {
    app.limits.signup(&request.client()?)?;
    let payment: CompletionRequest = read(&request.body)?;
    Ok(counted("topup", app.service.payments().complete_top_up(&payment).await)?)
}
