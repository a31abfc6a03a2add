//! The report about the business, and the bounds of what operators ask for.

use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use metering_core::Error;
use metering_core::wire::admin::{RefusalsDocument, ReportDocument};
use metering_core::wire::{ErrorBody, ErrorCode};

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::endpoints::query::number;
use crate::http::{Problem, Reply, json};

/// The longest report, in days: ten years.
const MAX_DAYS: u32 = 3_660;

/// What was sold, granted and used, by day, plan, route and account
///
/// UTC days; all parts but the refusals are read at one moment. Reads the usage of all accounts in those days.
#[utoipa::path(get, path = "/admin/report", tag = "reports", security(("operator" = [])), params(
    ("days" = Option<u32>, Query, description = "UTC days including today, 30 by default", minimum = 1, maximum = 3660),
), responses(
    (status = 200, description = "The report", body = ReportDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 429, description = "`rate_limited`: another report is being made", body = ErrorBody),
))]
pub(super) async fn report(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let _permit = app.reports.try_acquire().map_err(|_| busy("report"))?;
    let report = app.administration.report(days(&request.query)?).await?;
    let stats = app.app.meter.stats();
    let refusals = RefusalsDocument {
        since: app.started_at.to_string(),
        insufficient_credits: stats.insufficient.load(Relaxed),
        rate_limited: stats.rate_limited.load(Relaxed),
        unknown_key: stats.unknown_key.load(Relaxed),
        repeated: stats.repeated.load(Relaxed),
        overloaded: stats.overloaded.load(Relaxed),
    };
    Ok(json(StatusCode::OK, &ReportDocument { refusals: Some(refusals), ..report }))
}

/// 429: another request of this kind is in progress.
pub(super) fn busy(what: &str) -> Problem {
    Problem::new(ErrorCode::RateLimited, format!("Another {what} is being made; try again in a moment.")).retry_after(1)
}

/// The parameter `days`, 30 by default.
pub(super) fn days(query: &str) -> Result<u32, Problem> {
    bounded(query, "days", 30, MAX_DAYS)
}

/// The parameter `limit`.
pub(super) fn limit(query: &str, default: u32, most: u32) -> Result<u32, Problem> {
    bounded(query, "limit", default, most)
}

fn bounded(query: &str, name: &str, default: u32, most: u32) -> Result<u32, Problem> {
    let value = number(query, name, default)?;
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::field(name, format!("must be from 1 to {most}")).into())
}
