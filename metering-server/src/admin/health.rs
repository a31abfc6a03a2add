//! The health of the server, its database, its chains and its upstreams.

use std::time::Duration;

use http::StatusCode;
use metering_core::wire::ErrorBody;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::AdminApp;
use crate::api;
use crate::endpoints::Request;
use crate::gateway::UpstreamState;
use crate::http::{Problem, Reply, json};
use crate::pay::GasState;

/// How long a chain may take to respond.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthDocument {
    /// `ok` or `not_ready`.
    status: &'static str,
    /// Why it is not ready; null if it is.
    problem: Option<String>,
    /// The program's version.
    version: &'static str,
    /// Since when it runs, as RFC 3339.
    #[schema(format = DateTime)]
    started_at: String,
    /// The configured chains.
    chains: Vec<ChainHealth>,
    /// The wallets that pay the gas of payments with requests, as of the last minute.
    gas_wallets: Vec<GasWalletHealth>,
    /// The upstreams that routes name, as this process sees them.
    upstreams: Vec<UpstreamHealth>,
}

/// The health of an upstream.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UpstreamHealth {
    /// Its name.
    name: String,
    /// Whether it is ejected after failures in a row: others get its requests.
    is_ejected: bool,
    /// Whether its health checks succeed; null if there are none.
    is_healthy: Option<bool>,
}

/// The health of a chain.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChainHealth {
    /// The chain's id (EIP-155).
    chain_id: u64,
    /// The name of its configuration section.
    name: String,
    /// Whether `rpc_urls` to read it from are configured.
    has_rpc_urls: bool,
    /// The newest block; null if the chain cannot be read.
    latest_block: Option<u64>,
    /// The newest block whose payments are credited; null if the chain cannot be read.
    confirmed_block: Option<u64>,
    /// Why it cannot be read; null if it can.
    problem: Option<String>,
}

/// The health of a wallet that pays gas.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GasWalletHealth {
    /// The chain's id (EIP-155).
    chain_id: u64,
    /// The name of its configuration section.
    name: String,
    /// The wallet's address (EIP-55).
    wallet: String,
    /// Its balance, in the smallest unit of the chain's coin, as a string; null if it was never read.
    balance: Option<String>,
    /// How many payments' gas it can pay at current fees, as a string; null if it was never read.
    transactions: Option<String>,
    /// Whether that is fewer than 20, so that it should be refilled.
    is_low: bool,
    /// How many payments reverted within the last hour at its cost, as far as this process knows.
    reverts: usize,
    /// Until when it executes no payments because too many reverted, as RFC 3339; null if it does.
    #[schema(format = DateTime)]
    paused_until: Option<String>,
    /// Why it could not be read; null if it could.
    problem: Option<String>,
}

/// The health of the server, its database and its chains
#[utoipa::path(get, path = "/admin/health", tag = "reports", security(("operator" = [])), responses(
    (status = 200, description = "The health, good or bad", body = HealthDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn health(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let not_ready = api::not_ready(&app.app).await.map(|problem| problem.message().to_owned());
    let chains = futures_util::future::join_all(app.chains.iter().map(|(name, chain)| async {
        let read = match app.app.readers.get(&chain.chain_id) {
            None => Err("no rpc_urls are configured".to_owned()),
            Some(reader) => match tokio::time::timeout(CHAIN_TIMEOUT, reader.heights()).await {
                Ok(Ok(heights)) => Ok(heights),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("the chain did not respond in time".to_owned()),
            },
        };
        let heights = read.as_ref().ok();
        ChainHealth {
            chain_id: chain.chain_id,
            name: name.clone(),
            has_rpc_urls: app.app.readers.contains_key(&chain.chain_id),
            latest_block: heights.map(|heights| heights.newest),
            confirmed_block: heights.map(|heights| heights.confirmed),
            problem: read.as_ref().err().cloned(),
        }
    }));
    let document = HealthDocument {
        status: if not_ready.is_some() { "not_ready" } else { "ok" },
        problem: not_ready,
        version: env!("CARGO_PKG_VERSION"),
        started_at: app.started_at.to_string(),
        chains: chains.await,
        gas_wallets: app
            .app
            .gas
            .wallets()
            .into_iter()
            .map(|(chain_id, state)| gas_wallet(app, chain_id, state))
            .collect(),
        upstreams: app.app.gateway.named_upstreams().states().into_iter().map(UpstreamHealth::from).collect(),
    };
    Ok(json(StatusCode::OK, &document))
}

impl From<UpstreamState> for UpstreamHealth {
    fn from(UpstreamState { name, is_ejected, is_healthy }: UpstreamState) -> Self {
        Self { name, is_ejected, is_healthy }
    }
}

fn gas_wallet(app: &AdminApp, chain_id: u64, state: GasState) -> GasWalletHealth {
    let (reverts, paused_until) = app.app.payments.reverted_payments(chain_id);
    let section = app.chains.iter().find(|(_, chain)| chain.chain_id == chain_id);
    GasWalletHealth {
        chain_id,
        name: section.map(|(name, _)| name.clone()).unwrap_or_default(),
        wallet: state.wallet.to_checksummed(),
        balance: state.funds.map(|funds| funds.balance.get().to_string()),
        transactions: state.funds.map(|funds| funds.transactions().to_string()),
        is_low: state.is_low(),
        reverts,
        paused_until: paused_until.map(|until| until.to_string()),
        problem: state.problem,
    }
}
