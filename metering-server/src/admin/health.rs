//! The health of the server, its database and its chains.

use std::time::Duration;

use http::StatusCode;
use metering_core::wire::ErrorBody;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::AdminApp;
use crate::api;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

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
    };
    Ok(json(StatusCode::OK, &document))
}
