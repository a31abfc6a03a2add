//! Buying plans by card, and the events of the processor that takes the payments.

use http::StatusCode;
use metering_core::Error;
use metering_core::access::{Right, Scope};
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{
    AutoTopUpRequest, AutoTopUpResponse, CheckoutRequest, CheckoutResponse, ErrorBody, ErrorCode,
};

use crate::api::account::first_key;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;
use crate::stripe::{SIGNATURE_HEADER, Stripe};

fn stripe(app: &App) -> Result<&Stripe, Problem> {
    let not_offered =
        || Problem::new(ErrorCode::NotFound, "This service does not take cards; GET /credits/plans lists plans.");
    app.stripe.as_deref().ok_or_else(not_offered)
}

pub(crate) async fn create_checkout(app: &App, request: Request) -> Result<CheckoutResponse, Problem> {
    let sender = request.sender()?;
    let account = app.service.access().authorize(&sender, Scope::TopUp).await?;
    app.limits.signup(&request.client()?)?;
    let stripe = stripe(app)?;
    let wanted: CheckoutRequest = read(&request.body)?;
    if wanted.save_card {
        app.service.access().first_key(&sender, Right::Pay).await?;
    }
    let plan = wanted.plan_id.ok_or_else(|| Error::field("plan_id", "is required"))?;
    let key = request.idempotency_key()?;
    stripe.checkout(&account, &plan, wanted.save_card, key.as_ref().map(IdempotencyKey::as_str)).await
}

pub(crate) async fn auto_top_up(app: &App, request: Request) -> Result<AutoTopUpResponse, Problem> {
    Ok(app.service.payments().auto_top_up(&request.sender()?).await?)
}

pub(crate) async fn set_auto_top_up(app: &App, request: Request) -> Result<AutoTopUpResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Pay).await?;
    stripe(app)?;
    let wanted: AutoTopUpRequest = read(&request.body)?;
    let set = counted("auto_top_up", app.service.payments().set_auto_top_up(&sender, &wanted).await)?;
    app.service.webhooks().mail_stopped_top_ups(&sender).await?;
    Ok(set)
}

pub(crate) async fn end_auto_top_up(app: &App, request: Request) -> Result<AutoTopUpResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Pay).await?;
    Ok(counted("auto_top_up", app.service.payments().end_auto_top_up(&sender).await)?)
}

pub(crate) async fn remove_card(app: &App, request: Request) -> Result<AutoTopUpResponse, Problem> {
    let (sender, account) = first_key(app, &request, Right::Pay).await?;
    stripe(app)?.remove_card(&account).await?;
    Ok(app.service.payments().auto_top_up(&sender).await?)
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
