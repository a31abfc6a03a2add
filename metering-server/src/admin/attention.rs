//! What needs an operator's attention.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use metering_admin::wire::{AttentionDocument, RunwayDocument};
use metering_core::wire::ErrorBody;

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

/// For how long the list of accounts that run out is used. It reads the usage of all accounts.
const MAX_AGE: Duration = Duration::from_secs(60);

/// What needs attention: payments that nobody claimed, usage that was not paid, webhooks that fail, accounts that run out
///
/// At most 20 of each. The accounts are at most a minute old.
#[utoipa::path(get, path = "/admin/attention", tag = "reports", security(("operator" = [])), responses(
    (status = 200, description = "What needs attention", body = AttentionDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn attention(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let (unclaimed, unclaimed_count) = app.administration.unclaimed_payments(&app.chains).await?;
    let document = AttentionDocument {
        unclaimed,
        unclaimed_count,
        unpaid: app.administration.unpaid_usage().await?,
        webhooks: app.administration.failing_webhooks().await?,
        running_out: running_out(app).await?.to_vec(),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Several operators who ask at the same time share one read.
async fn running_out(app: &AdminApp) -> Result<Arc<[RunwayDocument]>, Problem> {
    let mut known = app.runways.lock().await;
    let now = app.app.clock.now();
    if let Some((read_at, runways)) = &*known
        && (*read_at..read_at.saturating_add(MAX_AGE)).contains(&now)
    {
        return Ok(Arc::clone(runways));
    }
    let runways: Arc<[RunwayDocument]> = app.administration.accounts_running_out().await?.into();
    *known = Some((now, Arc::clone(&runways)));
    Ok(runways)
}
