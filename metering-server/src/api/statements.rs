//! Statements of the caller's account: ledger and daily usage, as JSON and as CSV files.

use metering_client::calls::account::{DayRange, GetDailyUsage, GetLedger, GetLedgerCsv};
use metering_core::access::Scope;
use metering_core::wire::{DailyUsageDocument, LedgerDocument};

use crate::api::account::parameters;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::csv::{Cell, csv};
use crate::http::{Problem, Reply};

pub(crate) async fn ledger(app: &App, request: Request) -> Result<LedgerDocument, Problem> {
    let page = parameters::<GetLedger>(app, &request, Scope::Read).await?;
    Ok(app.service.usage().ledger(&request.sender()?, page.after.map(|entry| entry.0), page.limit.0).await?)
}

pub(crate) async fn ledger_csv(app: &App, request: Request) -> Result<Reply, Problem> {
    let page = parameters::<GetLedgerCsv>(app, &request, Scope::Read).await?;
    let (after, limit) = (page.after.map(|entry| entry.0), page.limit.0);
    let document = app.service.usage().ledger(&request.sender()?, after, limit).await?;
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

pub(crate) async fn usage_daily(app: &App, request: Request) -> Result<DailyUsageDocument, Problem> {
    days(app, &request).await
}

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
            Cell::Text(entry.model.as_deref().unwrap_or_default()),
        ]
    });
    let columns = ["day", "route", "method", "source", "calls", "credits", "key_id", "key_name", "model"];
    Ok(csv(&format!("usage-{org_id}-{from}-{to}"), columns, rows, next))
}

async fn days(app: &App, request: &Request) -> Result<DailyUsageDocument, Problem> {
    let DayRange { from, to } = parameters::<GetDailyUsage>(app, request, Scope::Read).await?;
    Ok(app.service.usage().daily(&request.sender()?, from, to).await?)
}
