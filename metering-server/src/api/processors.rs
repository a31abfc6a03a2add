//! Payments that a processor took, reported by the operator's own checkout.

use metering_core::wire::{
    ProcessorPaymentRequest, ProcessorPaymentResponse, ProcessorReversalRequest, ProcessorReversalResponse,
};

use super::billing::admit;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn credit_payment(app: &App, request: Request) -> Result<ProcessorPaymentResponse, Problem> {
    admit(app.payments_secret.as_ref(), "payments", &request.headers)?;
    let payment: ProcessorPaymentRequest = read(&request.body)?;
    Ok(counted("processor", app.service.payments().credit_from_processor(&payment).await)?)
}

pub(crate) async fn reverse_payment(app: &App, request: Request) -> Result<ProcessorReversalResponse, Problem> {
    admit(app.payments_secret.as_ref(), "payments", &request.headers)?;
    let reversal: ProcessorReversalRequest = read(&request.body)?;
    Ok(app.service.payments().reverse_from_processor(&reversal).await?)
}
