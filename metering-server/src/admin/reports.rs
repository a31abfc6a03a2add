//! The report about the business, and the bounds of what operators ask for.

use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use metering_core::administration::AdminError;
use metering_core::store::Cursor;
use metering_core::wire::admin::{
    AccountsUsageDocument, RefusalsDocument, ReportDocument, UnreportedDocument, UnreportedRow, VerificationDocument,
};
use metering_core::wire::{ErrorBody, ErrorCode};
use metering_core::{Error, StoreError};

use super::app::AdminApp;
use super::problem::sentence;
use crate::endpoints::Request;
use crate::endpoints::query::{number, optional};
use crate::http::{Problem, Reply, json};

/// The longest report, in days: ten years.
const MAX_DAYS: u32 = 3_660;
/// The longest window of an account's usage, in days: a hundred years, as on the command line.
const MAX_USAGE_DAYS: u32 = 36_500;

/// What was sold, granted and used, by day, plan, route and account
///
/// UTC days; all parts but the refusals and the unreported requests, which are of this server, are read at one moment. Reads the usage of all accounts in those days.
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
    let report = app.administration.report(bounded(&request.query, "days", 30, MAX_DAYS)?).await?;
    let stats = app.app.meter.stats();
    let refusals = RefusalsDocument {
        since: app.started_at.to_string(),
        insufficient_credits: stats.insufficient.load(Relaxed),
        rate_limited: stats.rate_limited.load(Relaxed),
        unknown_key: stats.unknown_key.load(Relaxed),
        repeated: stats.repeated.load(Relaxed),
        overloaded: stats.overloaded.load(Relaxed),
    };
    let document = ReportDocument { refusals: Some(refusals), unreported: unreported(app), ..report };
    Ok(json(StatusCode::OK, &document))
}

/// The requests whose responses did not say what they cost, if a route can have any.
fn unreported(app: &AdminApp) -> Option<UnreportedDocument> {
    let rows = app.app.gateway.reports().unreported().routes().into_iter().map(|seen| UnreportedRow {
        route_template: seen.route.to_string(),
        requests: seen.requests,
        in_full: seen.in_full,
        last_at: seen.last.to_string(),
    });
    let routes: Vec<_> = rows.collect();
    let by_usage = app.app.service.catalogue().routes().iter().any(|route| route.usage_price().is_some());
    (by_usage || !routes.is_empty()).then(|| UnreportedDocument { since: app.started_at.to_string(), routes })
}

/// 429: another request of this kind is in progress.
pub(super) fn busy(what: &str) -> Problem {
    Problem::new(ErrorCode::RateLimited, format!("Another {what} is being made; try again in a moment.")).retry_after(1)
}

/// The usage of all accounts, in total
///
/// UTC days; each account's totals are from one moment. Reads the usage of every account of the page.
#[utoipa::path(get, path = "/admin/usage", tag = "reports", security(("operator" = [])), params(
    ("days" = Option<u32>, Query, description = "UTC days including today, 30 by default", minimum = 1, maximum = 36500),
    ("after" = Option<String>, Query, description = "Where to continue"),
    ("limit" = Option<u32>, Query, description = "Maximum number of accounts, 100 by default", minimum = 1, maximum = 1000),
), responses(
    (status = 200, description = "The usage of accounts", body = AccountsUsageDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn usage(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let days = usage_days(&request.query)?;
    let after = optional::<String>(&request.query, "after")?.map(Cursor::new);
    let limit = limit(&request.query, 100, 1_000)?;
    Ok(json(StatusCode::OK, &app.administration.usage_of_accounts(days, after.as_ref(), limit).await?))
}

/// Check whether the books add up
///
/// Recomputes every account's amounts from ledger and usage, in a snapshot of one moment. In a SQLite file, also checks
/// every page and index. Changes nothing. Reads the whole database, so only one verification runs at a time.
#[utoipa::path(post, path = "/admin/verify", tag = "reports", security(("operator" = [])), responses(
    (status = 200, description = "The accounts, and every amount that differs", body = VerificationDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 500, description = "`internal_error`: the database is damaged", body = ErrorBody),
    (status = 503, description = "`overloaded`: a verification is running; `storage_unavailable`", body = ErrorBody),
))]
pub(super) async fn verify(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?.check_csrf(&request.headers)?;
    let running = "A verification is running; wait until it ends.";
    let _running = app.verifying.try_lock().map_err(|_| Problem::new(ErrorCode::Overloaded, running))?;
    match app.administration.verify().await {
        Ok(document) => Ok(json(StatusCode::OK, &document)),
        Err(AdminError::Store(error @ StoreError::Corrupt(_))) => {
            tracing::error!(%error, "a verification found damage");
            Err(Problem::new(ErrorCode::InternalError, sentence(&error.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}

/// The parameter `days` of an account's usage, 30 by default.
pub(super) fn usage_days(query: &str) -> Result<u32, Problem> {
    bounded(query, "days", 30, MAX_USAGE_DAYS)
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
