//! The state that the operators' API shares.

use std::sync::Arc;

use metering_admin::Administration;
use metering_core::chains::Chain;
use metering_core::{FullStore, Timestamp};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::oidc::Oidc;
use super::reload_handle::Reload;
use super::sessions::Sessions;
use super::shared_lists::SharedLists;
use crate::api::app::App;
use crate::config::Config;
use crate::http::Document;
use crate::pages::ErrorLinks;
use crate::run::conflict;

/// The parts of a server that operators use.
#[derive(Debug, Clone)]
pub(crate) struct AdminApp {
    pub(super) app: Arc<App>,
    pub(super) administration: Administration,
    pub(super) reload: Reload,
    pub(super) sessions: Arc<Sessions>,
    /// The provider that operators can sign in through.
    pub(super) oidc: Option<Arc<Oidc>>,
    /// The chains by the names of their configuration sections.
    pub(super) chains: Vec<(String, Chain)>,
    pub(super) brand: String,
    pub(super) config: Arc<Config>,
    /// Requests in progress. Each is finished, and logged, although its client hangs up or the server stops.
    pub(super) tasks: TaskTracker,
    /// One report and one scan of a chain at a time: both read a lot, for one person.
    pub(super) reports: Arc<Semaphore>,
    pub(super) scans: Arc<Semaphore>,
    pub(super) openapi: Document,
    pub(super) error_links: ErrorLinks,
    pub(super) started_at: Timestamp,
    /// Held while a verification reads the whole database.
    pub(super) verifying: Arc<tokio::sync::Mutex<()>>,
    pub(super) shared_lists: Arc<SharedLists>,
    /// Held while a rehearsal reads the usage of all accounts.
    pub(super) rehearsing: Arc<tokio::sync::Mutex<()>>,
}

impl AdminApp {
    pub(super) fn new(
        app: Arc<App>,
        store: Arc<dyn FullStore>,
        config: &Config,
        openapi: Document,
        reload: Reload,
    ) -> Self {
        let chains = config.chains.iter().map(|(section, chain)| (section.clone(), chain.chain(section)));
        let chains: Vec<(String, Chain)> = chains.collect();
        let error_links = ErrorLinks::for_operators(config);
        let (config, served) = shared(config);
        let recipients = chains.iter().map(|(_, chain)| (chain.chain_id, chain.recipient));
        Self {
            administration: Administration::new(store)
                .with_clock(Arc::clone(&app.clock))
                .with_recipients(recipients.collect())
                .with_conflict(move |catalogue| conflict(catalogue, &served))
                .with_catalogue(Arc::new(app.service.catalogue().clone()))
                .with_rates(app.service.payments().rates().cloned()),
            reload,
            sessions: Arc::default(),
            oidc: Oidc::new(&config).map(Arc::new),
            chains,
            brand: config.brand.name.as_str().to_owned(),
            config,
            tasks: TaskTracker::new(),
            reports: Arc::new(Semaphore::new(1)),
            scans: Arc::new(Semaphore::new(1)),
            openapi,
            error_links,
            started_at: app.clock.now(),
            verifying: Arc::default(),
            shared_lists: Arc::default(),
            rehearsing: Arc::default(),
            app,
        }
    }

    /// The same after a reload, with everything that is in progress.
    pub(super) fn reconfigured(&self, app: Arc<App>, config: &Config, openapi: Document) -> Self {
        let (config, served) = shared(config);
        let administration = self.administration.clone().with_catalogue(Arc::new(app.service.catalogue().clone()));
        Self {
            administration: administration.with_conflict(move |catalogue| conflict(catalogue, &served)),
            app,
            brand: config.brand.name.as_str().to_owned(),
            config,
            openapi,
            ..self.clone()
        }
    }

    /// Waits until no request is in progress.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// For the parts themselves, and for the check of catalogues.
fn shared(config: &Config) -> (Arc<Config>, Arc<Config>) {
    let config = Arc::new(config.clone());
    (Arc::clone(&config), config)
}
