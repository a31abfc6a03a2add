//! Payments that arrived on chains, and assigning them. Those that were credited are listed by a call.

use std::num::NonZeroU64;

use http::StatusCode;
use metering_admin::payments::{Assignment, ReadableChain, ScanRequest, Worth, scan};
use metering_admin::wire::{ArrivalsDocument, AssignRequest, AssignmentDocument};
use metering_core::chains::{Chain, ChainReader, TxHash};
use metering_core::wire::{ErrorBody, ErrorCode};
use metering_core::{AccountId, Error, PaymentStore};

use super::app::AdminApp;
use super::reports::busy;
use crate::endpoints::Request;
use crate::endpoints::query::{optional, required};
use crate::http::{Problem, Reply, json};

/// The maximum number of blocks that one request scans.
const MAX_BLOCKS: NonZeroU64 = NonZeroU64::new(10_000).unwrap();

/// The payments that arrived on a chain, and which account has them
///
/// Reads the chain, at most 10,000 blocks at a time. Without `from_block`, begins 10,000 blocks before the last block
/// that the watcher has seen. If `scanned` has a `next_block`, continue there.
#[utoipa::path(get, path = "/admin/payments/arrivals", tag = "payments", security(("operator" = [])), params(
    ("chain" = String, Query, description = "The chain, by the name of its configuration section"),
    ("from_block" = Option<u64>, Query, description = "The first block"),
    ("to_block" = Option<u64>, Query, description = "The last block"),
    ("all" = Option<bool>, Query, description = "Also those that an account has"),
), responses(
    (status = 200, description = "Payments", body = ArrivalsDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`: there is no such chain", body = ErrorBody),
    (status = 429, description = "`rate_limited`: another scan is being made", body = ErrorBody),
    (status = 502, description = "`rpc_error`", body = ErrorBody),
))]
pub(super) async fn arrivals(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let (name, chain, reader) = app.chain(&required(&request.query, "chain")?)?;
    let wanted = ScanRequest {
        from_block: optional(&request.query, "from_block")?,
        to_block: optional(&request.query, "to_block")?,
        blocks_max: Some(MAX_BLOCKS),
        with_used: optional(&request.query, "all")?.unwrap_or(false),
    };
    let _permit = app.scans.try_acquire().map_err(|_| busy("scan"))?;
    let plans = app.administration.plans().await?;
    let store: &dyn PaymentStore = &**app.administration.store();
    let chain = ReadableChain { name, chain, reader };
    let scanned = scan(store, &plans, chain, wanted, &mut |_, _| {}).await?;
    let mut document = ArrivalsDocument::default();
    document.add(chain, &scanned, &plans);
    let accounts = document.payments.iter().flat_map(|payment| &payment.org_ids).map(String::as_str);
    document.agent_names = app.administration.agent_names(accounts.collect()).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Assign a payment to an account
///
/// The transaction must have succeeded, be confirmed, and contain one payment to where plans of the chain are paid. The
/// owner of the paying wallet is not asked. Assigning it to the same account again changes nothing.
#[utoipa::path(post, path = "/admin/payments/assign", tag = "payments", security(("operator" = [])),
    request_body = AssignRequest, responses(
    (status = 200, description = "It was credited", body = AssignmentDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: used before, or waited for by a quote; `payment_unconfirmed`", body = ErrorBody),
    (status = 502, description = "`rpc_error`", body = ErrorBody),
))]
pub(super) async fn assign(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: AssignRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let tx: TxHash = wanted.tx_hash.trim().parse().map_err(|error| Error::field("tx_hash", error))?;
    let account: AccountId = wanted.account.trim().parse().map_err(|error| Error::field("account", error))?;
    let worth = match (wanted.plan_id, wanted.credits) {
        (Some(plan), None) => Worth::Plan(plan),
        (None, Some(credits)) => Worth::Credits(credits),
        _ => return Err(Error::field("credits", "give either plan_id or credits").into()),
    };
    let reason = Some(action.reason().parse().map_err(|error| Error::field("reason", error))?);
    let assignment = Assignment { tx, account, worth, reason, despite_quote: wanted.despite_quote };
    let (name, chain, reader) = app.chain(&wanted.chain)?;
    let chain = ReadableChain { name, chain, reader };
    let assigned = app.administration.assign(&action, chain, &assignment).await?;
    Ok(json(StatusCode::OK, &AssignmentDocument::with_details(&assigned)))
}

impl AdminApp {
    /// The chain of that name, if it can be read.
    fn chain(&self, name: &str) -> Result<(&str, &Chain, &dyn ChainReader), Problem> {
        let unknown = || {
            let names: Vec<&str> = self.chains.iter().map(|(name, _)| name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Problem::new(ErrorCode::NotFound, format!("No chain {name} is configured; there are: {known}."))
        };
        let (name, chain) = self.chains.iter().find(|(known, _)| known == name).ok_or_else(unknown)?;
        let reader = self.app.readers.get(&chain.chain_id).ok_or_else(|| {
            Problem::new(ErrorCode::RpcError, format!("Chain {name} has no rpc_urls to read it from."))
        })?;
        Ok((name, chain, &**reader))
    }
}
