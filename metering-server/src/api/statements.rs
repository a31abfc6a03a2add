//! Statements of the caller's account: ledger and daily usage, as JSON and as CSV files.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{DailyUsageDocument, ErrorBody, LedgerDocument};

use crate::api::account::after_authorization;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::query::{EntryNumber, number, optional};
use crate::http::csv::{Cell, csv};
use crate::http::{Problem, Reply, json};

/// The ledger, oldest entry first
///
/// Every change of the balance except usage. If `next` is not null, more entries follow: send it as `after`.
#[utoipa::path(get, path = "/credits/ledger", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("after" = Option<i64>, Query, description = "The number of the entry to continue after", minimum = 0, example = 0),
    ("limit" = Option<u32>, Query, description = "Maximum number of entries, 100 by default", minimum = 1, maximum = 10000, example = 100),
), responses(
    (status = 200, description = "Ledger entries", body = LedgerDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn ledger(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &entries(app, &request, 100).await?.0))
}

/// The ledger as a CSV file
///
/// The columns are `id,created_at,type,credits,description,plan_id,chain_id,tx_hash`. If more entries follow, the
/// `Link` header has their URL (`rel="next"`). A text that a spreadsheet would take for a formula begins with an
/// apostrophe.
#[utoipa::path(get, path = "/credits/ledger.csv", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("after" = Option<i64>, Query, description = "The number of the entry to continue after", minimum = 0, example = 0),
    ("limit" = Option<u32>, Query, description = "Maximum number of entries, 10,000 by default", minimum = 1, maximum = 10000, example = 10000),
), responses(
    (status = 200, description = "Ledger entries", body = String, content_type = "text/csv"),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn ledger_csv(app: &App, request: Request) -> Result<Reply, Problem> {
    let (document, limit) = entries(app, &request, 10_000).await?;
    let columns = ["id", "created_at", "type", "credits", "description", "plan_id", "chain_id", "tx_hash"];
    let next = document.next.map(|after| format!("/credits/ledger.csv?after={after}&limit={limit}"));
    let rows = document.entries.iter().map(|entry| {
        [
            Cell::Value(entry.id.to_string()),
            Cell::Value(entry.created_at.clone()),
            Cell::Value(entry.kind.clone()),
            Cell::Value(entry.amount.to_string()),
            Cell::Text(&entry.description),
            Cell::Text(entry.plan_id.as_deref().unwrap_or_default()),
            Cell::Value(entry.chain_id.map(|id| id.to_string()).unwrap_or_default()),
            Cell::Value(entry.tx_hash.clone().unwrap_or_default()),
        ]
    });
    Ok(csv(&format!("ledger-{}", document.org_id), columns, rows, next))
}

/// Usage by day, route, method and source
///
/// UTC days, oldest first, at most 366. If `next` is not null, more days follow: send it as `from`, with the same `to`.
#[utoipa::path(get, path = "/credits/usage/daily", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("from" = Option<String>, Query, description = "The first day, 29 days before the last by default", format = Date, example = "2026-11-01"),
    ("to" = Option<String>, Query, description = "The last day, today by default", format = Date, example = "2026-11-30"),
), responses(
    (status = 200, description = "Daily usage", body = DailyUsageDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_daily(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &days(app, &request).await?))
}

/// Usage by day, route, method and source, as a CSV file
///
/// The columns are `day,route,method,source,calls,credits,key_id,key_name`. If more days follow, the `Link` header has
/// their URL (`rel="next"`). A text that a spreadsheet would take for a formula begins with an apostrophe.
#[utoipa::path(get, path = "/credits/usage.csv", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("from" = Option<String>, Query, description = "The first day, 29 days before the last by default", format = Date, example = "2026-11-01"),
    ("to" = Option<String>, Query, description = "The last day, today by default", format = Date, example = "2026-11-30"),
), responses(
    (status = 200, description = "Daily usage", body = String, content_type = "text/csv"),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_csv(app: &App, request: Request) -> Result<Reply, Problem> {
    let document = days(app, &request).await?;
    let DailyUsageDocument { org_id, from, to, usage, next } = &document;
    let next = next.as_ref().map(|from| format!("/credits/usage.csv?from={from}&to={to}"));
    let rows = usage.iter().map(|entry| {
        [
            Cell::Value(entry.day.clone()),
            Cell::Text(&entry.route_template),
            Cell::Text(&entry.http_method),
            Cell::Value(entry.client_source.clone()),
            Cell::Value(entry.calls.to_string()),
            Cell::Value(entry.credits_used.to_string()),
            Cell::Text(&entry.key_id),
            Cell::Text(&entry.key_name),
        ]
    });
    let columns = ["day", "route", "method", "source", "calls", "credits", "key_id", "key_name"];
    Ok(csv(&format!("usage-{org_id}-{from}-{to}"), columns, rows, next))
}

/// A part of the ledger, and the maximum number of entries that was asked for.
async fn entries(app: &App, request: &Request, default: u32) -> Result<(LedgerDocument, u32), Problem> {
    let sender = request.sender()?;
    match (optional::<EntryNumber>(&request.query, "after"), number(&request.query, "limit", default)) {
        (Ok(after), Ok(limit)) => Ok((app.service.ledger(&sender, after.map(|entry| entry.0), limit).await?, limit)),
        (Err(error), _) | (_, Err(error)) => Err(after_authorization(app, request, Scope::Read, error).await),
    }
}

async fn days(app: &App, request: &Request) -> Result<DailyUsageDocument, Problem> {
    let sender = request.sender()?;
    match (optional(&request.query, "from"), optional(&request.query, "to")) {
        (Ok(from), Ok(to)) => Ok(app.service.daily_usage(&sender, from, to).await?),
        (Err(error), _) | (_, Err(error)) => Err(after_authorization(app, request, Scope::Read, error).await),
    }
}
