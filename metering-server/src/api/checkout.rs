//! Buying plans by card, and the events of the processor that takes the payments.

use http::StatusCode;
use metering_core::Error;
use metering_core::access::Scope;
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{CheckoutRequest, CheckoutResponse, ErrorBody, ErrorCode};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};
use crate::stripe::{SIGNATURE_HEADER, Stripe};

fn stripe(app: &App) -> Result<&Stripe, Problem> {
    let not_offered =
        || Problem::new(ErrorCode::NotFound, "This service does not take cards; GET /credits/plans lists plans.");
    app.stripe.as_deref().ok_or_else(not_offered)
}

pub(crate) async fn create_checkout(app: &App, request: Request) -> Result<CheckoutResponse, Problem> {
    let account = app.service.access().authorize(&request.sender()?, Scope::TopUp).await?;
    app.limits.signup(&request.client()?)?;
    let stripe = stripe(app)?;
    let wanted: CheckoutRequest = read(&request.body)?;
    let plan = wanted.plan_id.ok_or_else(|| Error::field("plan_id", "is required"))?;
    let key = request.idempotency_key()?;
    stripe.checkout(&account, &plan, key.as_ref().map(IdempotencyKey::as_str)).await
}

/// Take an event of Stripe
///
/// For Stripe alone, which signs its events. Exists only if the operator has configured Stripe.
#[utoipa::path(post, path = "/stripe/webhook", tag = "internal",
    request_body(content = String, content_type = "application/json"),
    responses(
        (status = 200, description = "Taken, now or before", content_type = "application/json"),
        (status = 400, description = "`validation_failed`: the event has an unexpected form", body = ErrorBody),
        (status = 403, description = "`forbidden`: Stripe did not sign it", body = ErrorBody),
        (status = 404, description = "`not_found`: Stripe is not configured, or the account is gone", body = ErrorBody),
        (status = 409, description = "`conflict`: what was paid is not what was sold", body = ErrorBody),
        (status = 502, description = "`upstream_unreachable`: Stripe cannot be asked at the moment", body = ErrorBody),
        (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
    )
)]
pub(crate) async fn stripe_webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    let stripe = stripe(app)?;
    let signatures = request.headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    stripe.receive(app.service.payments(), signatures, &request.body, app.clock.now()).await?;
    Ok(json(StatusCode::OK, &serde_json::json!({"received": true})))
}
