//! Checks chains against the plans at startup, and watches them while the server runs.

pub(crate) mod progress;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metering_core::chains::{ChainError, ChainReader};
use metering_core::payments::{PaymentKind, Plan};
use metering_core::{Error, PaymentStore, Service};
use tokio::time::Instant;

use crate::chains::progress::{ChainProgress, Change};
use crate::http::Shutdown;
use crate::operations::metrics;

/// The chain readers, by chain id.
pub type Readers = BTreeMap<u64, Arc<dyn ChainReader>>;

/// A chain does not match the configuration or a plan. The server refuses to start, since it would sell at wrong
/// prices.
#[derive(Debug, thiserror::Error)]
pub enum ChainMismatch {
    /// An RPC URL serves another chain.
    #[error("chain {chain_id}: {error}; correct its rpc_urls or its chain_id")]
    OtherChain {
        /// The configured chain.
        chain_id: u64,
        /// The mismatch.
        error: ChainError,
    },
    /// A plan's token decimals differ from the contract's.
    #[error(
        "plan {plan}: token {token} has {} on that chain, but the plan says {expected}; correct the plan with \
         metering admin plan", decimals(*found)
    )]
    TokenDecimals {
        /// The plan.
        plan: String,
        /// Its token.
        token: String,
        /// The plan's decimals.
        expected: u8,
        /// The contract's decimals; `None` when there is no such contract.
        found: Option<u8>,
    },
}

fn decimals(found: Option<u8>) -> String {
    found.map_or_else(|| "no contract with decimals()".to_owned(), |found| format!("{found} decimals"))
}

/// Checks the active plans against their chains. If a chain cannot be read now, this logs a warning; the plan is
/// checked again when it is bought.
///
/// # Errors
/// The first mismatch.
pub(crate) async fn check(store: &dyn PaymentStore, readers: &Readers) -> Result<(), ChainMismatch> {
    let plans = match store.plans().await {
        Ok(plans) => plans,
        Err(error) => {
            tracing::error!(%error, "could not check the plans against their chains");
            return Ok(());
        }
    };
    for plan in plans.iter().filter(|plan| plan.active) {
        let Some(reader) = readers.get(&plan.chain_id) else {
            tracing::warn!(plan = %plan.key(), "the plan cannot be bought: its chain has no rpc_urls");
            continue;
        };
        check_plan(plan, &**reader).await?;
    }
    Ok(())
}

async fn check_plan(plan: &Plan, reader: &dyn ChainReader) -> Result<(), ChainMismatch> {
    if plan.payment_kind == PaymentKind::NativeValue {
        return Ok(());
    }
    match reader.token_decimals(plan.token_contract).await {
        Ok(Some(found)) if found == plan.token_decimals => Ok(()),
        Ok(found) => Err(ChainMismatch::TokenDecimals {
            plan: plan.key().to_string(),
            token: plan.token_contract.to_checksummed(),
            expected: plan.token_decimals,
            found,
        }),
        Err(error @ ChainError::WrongChain { .. }) => Err(ChainMismatch::OtherChain { chain_id: plan.chain_id, error }),
        Err(error) => {
            tracing::warn!(plan = %plan.key(), %error, "could not check the plan's token; it is checked when the plan is bought");
            Ok(())
        }
    }
}

/// A chain to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) chain_id: u64,
    pub(crate) from_block: Option<u64>,
}

/// Rechecks a chain's payments that are credited but not final, until `shutdown`.
pub(crate) async fn settle(service: Arc<Service>, chain_id: u64, interval: Duration, shutdown: Shutdown) {
    let mut failing = false;
    loop {
        let result = tokio::select! {
            result = service.payments().settle(chain_id) => result,
            () = shutdown.cancelled() => return,
        };
        match &result {
            Ok(report) => metrics::settled(chain_id, report),
            Err(error) if !failing => {
                tracing::warn!(chain_id, why = why(error), "could not recheck credited payments; retrying");
            }
            Err(_) => {}
        }
        failing = result.is_err();
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Credits payments that arrive on a chain, until `shutdown`.
pub(crate) async fn watch(
    service: Arc<Service>,
    watch: Watch,
    interval: Duration,
    progress: Arc<ChainProgress>,
    shutdown: Shutdown,
) {
    let mut failing = false;
    loop {
        let result = tokio::select! {
            result = service.payments().watch(watch.chain_id, watch.from_block) => result,
            () = shutdown.cancelled() => return,
        };
        let (pause, block) = match &result {
            Ok(watched) => {
                metrics::watched(watch.chain_id, watched);
                let pause = if watched.up_to_date || watched.held { interval } else { Duration::ZERO };
                (pause, watched.scanned_to)
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(chain_id = watch.chain_id, why = why(error), "could not watch the chain; retrying");
                }
                (interval, None)
            }
        };
        failing = result.is_err();
        let change = progress.record(watch.chain_id, block, Instant::now());
        log_change(watch.chain_id, change, result.as_ref().err());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Why a chain could not be read, in words for operators.
fn why(error: &Error) -> String {
    error.chain_problem().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Logs once when a chain stalls, and once when it resumes.
fn log_change(chain_id: u64, change: Change, error: Option<&Error>) {
    match change {
        Change::None => {}
        Change::Stalled => {
            let why = error.map_or_else(|| "no new block has been scanned".to_owned(), why);
            tracing::error!(
                chain_id,
                why,
                "the chain makes no progress: payments on it are not credited; `metering admin doctor` asks each of its \
                 rpc_urls"
            );
        }
        Change::Resumed => tracing::info!(chain_id, "the chain makes progress again"),
    }
}
