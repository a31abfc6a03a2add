//! The state that the operators' API shares.

use std::sync::Arc;
use std::time::Duration;

use metering_core::administration::Administration;
use metering_core::chains::Chain;
use metering_core::{FullStore, Timestamp};

use super::openapi;
use super::sessions::Sessions;
use crate::api::app::App;
use crate::config::Config;
use crate::http::Document;

/// The parts of a server that operators use.
#[derive(Debug)]
pub(crate) struct AdminApp {
    pub(super) app: Arc<App>,
    pub(super) administration: Administration,
    pub(super) sessions: Sessions,
    /// The chains by the names of their configuration sections.
    pub(super) chains: Vec<(String, Chain)>,
    pub(super) brand: String,
    pub(super) body_timeout: Duration,
    pub(super) openapi: Document,
    pub(super) started_at: Timestamp,
    /// Held while a verification reads the whole database.
    pub(super) verifying: tokio::sync::Mutex<()>,
}

impl AdminApp {
    /// # Errors
    /// When the OpenAPI document cannot be written.
    pub(crate) fn new(app: Arc<App>, store: Arc<dyn FullStore>, config: &Config) -> serde_json::Result<Self> {
        let brand = config.brand.name.as_str().to_owned();
        let openapi = Document::new("application/json", openapi::document(&brand).to_json()?);
        let chains = config.chains.iter().map(|(section, chain)| (section.clone(), chain.chain(section)));
        Ok(Self {
            administration: Administration::new(store).with_clock(Arc::clone(&app.clock)),
            sessions: Sessions::default(),
            chains: chains.collect(),
            brand,
            body_timeout: config.http.body_timeout.duration(),
            openapi,
            started_at: app.clock.now(),
            verifying: tokio::sync::Mutex::default(),
            app,
        })
    }
}
