//! The audit log as a file. Its entries are listed by a call.

use metering_admin::wire::AuditEntryDocument;
use metering_core::clock::Day;
use metering_core::operators::{AuditId, AuditQuery, Period};
use metering_core::wire::ErrorBody;
use serde_json::value::RawValue;

use super::app::AdminApp;
use super::reports::bounded;
use crate::endpoints::Request;
use crate::endpoints::query::{EntryNumber, optional};
use crate::http::csv::{Cell, csv};
use crate::http::{Problem, Reply};

/// The audit log as a CSV file, newest entry first
///
/// The columns are `id,at,actor,action,subject,reason,request,before,result,ended_at,detail,after`. If older entries follow, the
/// `Link` header has their URL (`rel="next"`). A text that a spreadsheet would take for a formula begins with an
/// apostrophe.
#[utoipa::path(get, path = "/admin/audit.csv", tag = "audit", security(("operator" = [])), params(
    ("subject" = Option<String>, Query, description = "Only entries about this, such as an account's id"),
    ("action" = Option<String>, Query, description = "Only this kind of action, such as `account.grant`"),
    ("from" = Option<String>, Query, description = "Only entries of this UTC day or later"),
    ("to" = Option<String>, Query, description = "Only entries of this UTC day or earlier"),
    ("before" = Option<i64>, Query, description = "The number of the entry to continue before"),
    ("limit" = Option<u32>, Query, description = "Maximum number of entries, 10,000 by default", minimum = 1, maximum = 10000),
), responses(
    (status = 200, description = "Entries", body = String, content_type = "text/csv"),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn audit_csv(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let subject: Option<String> = optional(&request.query, "subject")?;
    let action: Option<String> = optional(&request.query, "action")?;
    let before: Option<EntryNumber> = optional(&request.query, "before")?;
    let (from, to): (Option<Day>, Option<Day>) = (optional(&request.query, "from")?, optional(&request.query, "to")?);
    let limit = bounded::<10_000, 10_000>(&request.query, "limit")?;
    let before = before.map(|entry| AuditId(entry.0));
    let (at, wanted) = (Period::of_days(from, to), (subject.clone(), action.clone()));
    let document = app.administration.audit_entries(AuditQuery { subject, before, action, at }, limit).await?;
    let next = document.next.map(|before| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("before", &before.to_string()).append_pair("limit", &limit.to_string());
        let days = [("from", from), ("to", to)].map(|(name, day)| (name, day.map(|day| day.to_string())));
        let filters = [("subject", wanted.0), ("action", wanted.1)].into_iter().chain(days);
        query.extend_pairs(filters.filter_map(|(name, value)| Some((name, value?))));
        format!("/admin/audit.csv?{}", query.finish())
    });
    let columns = [
        "id", "at", "actor", "action", "subject", "reason", "request", "before", "result", "ended_at", "detail",
        "after",
    ];
    Ok(csv("audit-log", columns, document.entries.iter().map(row), next))
}

fn row(entry: &AuditEntryDocument) -> [Cell<'_>; 12] {
    let outcome = entry.outcome.as_ref();
    [
        Cell::Value(entry.id.to_string()),
        Cell::Value(entry.at.clone()),
        Cell::Text(&entry.actor),
        Cell::Text(&entry.action),
        Cell::Text(&entry.subject),
        Cell::Text(&entry.reason),
        Cell::Text(text(&entry.request)),
        Cell::Text(text(&entry.before)),
        Cell::Text(outcome.map_or("", |outcome| &outcome.result)),
        Cell::Value(outcome.map(|outcome| outcome.at.clone()).unwrap_or_default()),
        Cell::Text(outcome.map_or("", |outcome| &outcome.detail)),
        Cell::Text(outcome.map_or("", |outcome| text(&outcome.after))),
    ]
}

fn text(document: &Option<Box<RawValue>>) -> &str {
    document.as_deref().map_or("", RawValue::get)
}
