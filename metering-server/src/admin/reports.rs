//! The business report, whose refusals are those of this server, and the check of the books.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::StatusCode;
use metering_admin::AdminError;
use metering_admin::wire::{RefusalsDocument, ReportDocument, UnreportedDocument, UnreportedRow, VerificationDocument};
use metering_core::charging::RefusalKind;
use metering_core::wire::call::{Bounded, Parameter};
use metering_core::wire::{ErrorBody, ErrorCode};
use metering_core::{Error, StoreError};

use super::app::AdminApp;
use super::problem::sentence;
use crate::endpoints::Request;
use crate::endpoints::query::optional;
use crate::http::{Problem, Reply, json};

/// How long a report waits for another one. The console requests two reports: one for a range of days, and one for the
/// days before it.
const REPORT_WAIT: Duration = Duration::from_secs(5);
/// The longest report, in days: ten years.
const MAX_DAYS: u32 = 3_660;

/// What was sold, granted and used, by day, plan, route and account
///
/// UTC days; all parts but the refusals and the unreported requests, which are of this server, are read at one moment. Reads the usage of all accounts in those days.
#[utoipa::path(get, path = "/admin/report", tag = "reports", security(("operator" = [])), params(
    ("days" = Option<u32>, Query, description = "UTC days including the last one, 30 by default", minimum = 1, maximum = 3660),
    ("until" = Option<String>, Query, description = "The last UTC day, `YYYY-MM-DD`; today by default"),
), responses(
    (status = 200, description = "The report", body = ReportDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 429, description = "`rate_limited`: another report is being made", body = ErrorBody),
))]
pub(super) async fn report(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let permit = tokio::time::timeout(REPORT_WAIT, app.reports.acquire()).await;
    let _permit = permit.ok().and_then(Result::ok).ok_or_else(|| busy("report"))?;
    let (days, until) = (bounded::<30, MAX_DAYS>(&request.query, "days")?, optional(&request.query, "until")?);
    let report = app.administration.report(days, until).await?;
    let stats = app.app.meter.stats();
    let refusals = RefusalsDocument {
        since: app.started_at.to_string(),
        insufficient_credits: stats.refused(RefusalKind::InsufficientCredits),
        rate_limited: stats.refused(RefusalKind::RateLimited),
        unknown_key: stats.refused(RefusalKind::UnknownKey),
        repeated: stats.refused(RefusalKind::Repeated),
        overloaded: stats.overloaded.load(Relaxed),
    };
    let document = ReportDocument { refusals: Some(refusals), unreported: unreported(app), ..report };
    Ok(json(StatusCode::OK, &document))
}

/// The requests whose responses did not report their cost, if a route can have any.
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

/// A number in the query, within its bounds.
pub(super) fn bounded<const DEFAULT: u32, const MAX: u32>(query: &str, name: &str) -> Result<u32, Error> {
    let text: Option<String> = optional(query, name)?;
    Bounded::<DEFAULT, MAX>::read(name, text.as_deref()).map(|number| number.0)
}
