//! What needs an operator's attention.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use metering_admin::runways_after;
use metering_admin::wire::{AttentionDocument, AttentionNextDocument};
use metering_core::Error;
use metering_core::store::Cursor;
use metering_core::wire::ErrorBody;

use super::app::AdminApp;
use super::reports::bounded;
use super::shared_lists::Lists;
use crate::endpoints::Request;
use crate::endpoints::query::optional;
use crate::http::{Problem, Reply, json};

/// For how long the lists of accounts that run out and of payments to refund are used. They read the usage of all accounts,
/// and all payments of processors.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The most of each list that a request gets.
const MOST: u32 = 100;

/// The kinds of what needs attention, by the names of their lists.
const UNCLAIMED: &str = "unclaimed";
const WEBHOOKS: &str = "webhooks";
const RUNNING_OUT: &str = "running_out";

/// What needs attention: payments to claim or refund, unpaid usage, webhooks and sinks that fail, accounts that run out
///
/// The accounts and the payments to refund are at most a minute old. Usage that was not paid, payments to refund and sinks
/// are listed without a kind only. If a member of `next` is not null, the list of that name continues: send it as `after`,
/// and the name as `kind`.
#[utoipa::path(get, path = "/admin/attention", tag = "reports", security(("operator" = [])), params(
    ("kind" = Option<String>, Query, description = "Only this list: `unclaimed`, `webhooks` or `running_out`"),
    ("after" = Option<String>, Query, description = "Where to continue; only with a kind"),
    ("limit" = Option<u32>, Query, description = "Maximum number of each, 20 by default", minimum = 1, maximum = 100),
), responses(
    (status = 200, description = "What needs attention", body = AttentionDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn attention(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let kind: Option<String> = optional(&request.query, "kind")?;
    let after = optional::<String>(&request.query, "after")?.map(Cursor::new);
    let limit = bounded::<20, MOST>(&request.query, "limit")?;
    if kind.as_ref().is_some_and(|kind| ![UNCLAIMED, WEBHOOKS, RUNNING_OUT].contains(&&**kind)) {
        return Err(Error::field("kind", "must be unclaimed, webhooks or running_out").into());
    }
    if after.is_some() && kind.is_none() {
        return Err(Error::field("after", "needs kind: each list has its own cursor").into());
    }
    let most = |list: &str| if kind.as_ref().is_none_or(|kind| kind == list) { limit } else { 0 };
    let after = |list: &str| after.as_ref().filter(|_| most(list) > 0);
    let administration = &app.administration;
    let (unclaimed, unclaimed_count) =
        administration.unclaimed_payments(&app.chains, after(UNCLAIMED), most(UNCLAIMED)).await?;
    let webhooks = administration.failing_webhooks(after(WEBHOOKS), most(WEBHOOKS)).await?;
    let lists = if most(RUNNING_OUT) > 0 { shared_lists(app).await? } else { Arc::default() };
    let accounts = runways_after(&lists.running_out, after(RUNNING_OUT), most(RUNNING_OUT))?;
    let refunds = if kind.is_none() { usize::try_from(limit).unwrap_or(usize::MAX) } else { 0 };
    let text = |cursor: Option<Cursor>| cursor.map(|cursor| cursor.as_str().to_owned());
    let usage_sinks = if kind.is_none() { administration.failing_sinks().await? } else { Vec::new() };
    let document = AttentionDocument {
        unclaimed: unclaimed.items,
        unclaimed_count,
        unpaid: if kind.is_none() { administration.unpaid_usage(limit).await? } else { Vec::new() },
        to_refund: lists.to_refund.iter().take(refunds).cloned().collect(),
        webhooks: webhooks.items,
        usage_sinks,
        running_out: accounts.items,
        next: AttentionNextDocument {
            unclaimed: text(unclaimed.next),
            webhooks: text(webhooks.next),
            running_out: text(accounts.next),
        },
    };
    Ok(json(StatusCode::OK, &document))
}

/// Several operators who ask at the same time share one read.
async fn shared_lists(app: &AdminApp) -> Result<Arc<Lists>, Problem> {
    let mut known = app.shared_lists.lock().await;
    let now = app.app.clock.now();
    if let Some((read_at, lists)) = &*known
        && (*read_at..read_at.saturating_add(MAX_AGE)).contains(&now)
    {
        return Ok(Arc::clone(lists));
    }
    let running_out = app.administration.accounts_running_out().await?;
    let to_refund = app.administration.payments_to_refund(MOST).await?;
    let lists = Arc::new(Lists { running_out, to_refund });
    *known = Some((now, Arc::clone(&lists)));
    Ok(lists)
}
