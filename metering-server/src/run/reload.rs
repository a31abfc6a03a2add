//! Applies a new configuration to a running server, on SIGHUP or when an operator requests it.
//!
//! All or nothing: everything is read, checked and built before anything is replaced. Keys outside [`RELOADED`] keep
//! their values until a restart.

mod difference;
mod shared_runs;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use metering_admin::wire::ReloadDocument;
use metering_client::tools::Toolbox;
use metering_core::prices::PriceNumber;
use metering_core::{Catalogue, Clock, FullStore};

use super::current::Current;
use super::ending::RunError;
use super::{assembly, catalogue, prices, receipt_terms, settings};
use crate::admin::{self, AdminApp};
use crate::api::app::App;
use crate::config::{Config, ConfigError, GatewayConfig, Loaded, ReceiptsConfig};
use crate::front::Front;
use crate::gateway::HeaderSettings;
use crate::http::{Certificates, Shutdown, Tls};
use crate::mail::Letterhead;
use crate::mcp::Mcp;
use crate::operations::{metrics, service_manager};
use crate::pages::Pages;
use crate::signed_receipts::SignedReceipts;
use shared_runs::SharedRuns;

/// Reads the configuration again.
pub(crate) type Load = Box<dyn Fn() -> Result<Loaded, ConfigError> + Send + Sync>;

/// The keys and sections that a reload takes.
const RELOADED: [&str; 18] = [
    "brand",
    "catalogue",
    "console.oidc.operators",
    "docs",
    "gateway.request_headers",
    "gateway.response_headers",
    "gateway.upstream_headers",
    "gateway.upstreams",
    "limits",
    "operator",
    "receipts.always",
    "receipts.key_file",
    "receipts.numbering",
    "receipts.prefix",
    "receipts.tax",
    "terms",
    "tls.certificate",
    "tls.key",
];

/// Reloads the configuration of a server.
pub(crate) struct Reloader {
    load: Load,
    /// The configuration in use.
    loaded: Mutex<Loaded>,
    turns: SharedRuns<Result<ReloadDocument, String>>,
    parts: OnceLock<Parts>,
}

const GIVEN_UP: &str = "the reload took more than a minute and was given up; nothing has changed. Is one of its files on a \
                        mount that does not respond?";

/// A reload that takes longer is given up: a file may be on a mount that does not respond.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The parts of a server that a reload replaces.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) address: SocketAddr,
    pub(crate) front: Arc<Current<Front>>,
    pub(crate) admin: Option<Arc<Current<AdminApp>>>,
    pub(crate) mcp: Option<Arc<Mcp>>,
    pub(crate) letterhead: Option<Arc<Current<Letterhead>>>,
    pub(crate) tls: Option<Tls>,
    pub(crate) store: Arc<dyn FullStore>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The parts that serve a catalogue, built but not in use.
struct Prepared {
    front: Arc<Front>,
    admin: Option<Arc<AdminApp>>,
    tools: Option<Arc<Toolbox>>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Reloader {
    /// For a server with this configuration.
    pub(crate) fn new(loaded: Loaded, load: Load) -> Self {
        Self { load, loaded: Mutex::new(loaded), turns: SharedRuns::new(), parts: OnceLock::new() }
    }

    /// Begins to accept reloads: the server has started.
    pub(crate) fn start(&self, parts: Parts) {
        let _ = self.parts.set(parts);
        metrics::reloaded(0, 0);
    }

    /// Reads the configuration again, and applies the changes. The log has the result. Of several waiting callers, one
    /// reloads for all.
    ///
    /// # Errors
    /// When anything in it cannot be used, or cannot be read within a minute. Nothing is changed then. The text has the
    /// reason, without secrets.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<ReloadDocument, String> {
        // A separate task: a caller that goes away must not let the next one start before the reload has ended.
        let reloader = Arc::clone(self);
        let shared = tokio::spawn(async move { reloader.turns.share(reloader.reload_now()).await });
        shared.await.unwrap_or_else(|error| Err(format!("the reload failed: {error}")))
    }

    async fn reload_now(self: &Arc<Self>) -> Result<ReloadDocument, String> {
        let (reloader, decided) = (Arc::clone(self), Arc::<AtomicBool>::default());
        let here = Arc::clone(&decided);
        service_manager::reloading();
        // Reads files, and renders all pages.
        let mut taking = tokio::task::spawn_blocking(move || reloader.take(&here).map_err(|error| error.to_string()));
        let taken = match tokio::time::timeout(RELOAD_TIMEOUT, &mut taking).await {
            Err(_) if !decided.swap(true, Ordering::SeqCst) => Ok(Err(GIVEN_UP.to_owned())),
            Err(_) => taking.await,
            Ok(taken) => taken,
        };
        let reloaded = taken.unwrap_or_else(|error| Err(format!("the reload failed: {error}")));
        service_manager::reloaded(reloaded.as_ref().err().map(String::as_str));
        match &reloaded {
            Ok(ReloadDocument { changed, needs_restart }) => {
                metrics::reloaded(1, 0);
                tracing::info!(changed = %list(changed), "the configuration was reloaded");
                if !needs_restart.is_empty() {
                    tracing::warn!("needs a restart: {}", list(needs_restart));
                }
            }
            Err(error) => {
                metrics::reloaded(0, 1);
                tracing::error!(%error, "the configuration was not reloaded; nothing has changed");
            }
        }
        reloaded
    }

    /// Serves a price version of the store from now on.
    ///
    /// # Errors
    /// When this server cannot serve its catalogue. Nothing is changed then.
    pub(super) async fn switch(self: &Arc<Self>, version: PriceNumber) -> Result<(), String> {
        self.with_version(version, |parts, prepared| parts.install(prepared)).await
    }

    /// Whether this server could serve a price version of the store.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) async fn check(self: &Arc<Self>, version: PriceNumber) -> Result<(), String> {
        self.with_version(version, |_, prepared| drop(prepared)).await
    }

    /// Builds what serves a price version. Off the async threads: it waits for reloads, and renders all pages.
    async fn with_version(
        self: &Arc<Self>,
        version: PriceNumber,
        then: impl FnOnce(&Parts, Prepared) + Send + 'static,
    ) -> Result<(), String> {
        let reloader = Arc::clone(self);
        let _turn = self.turns.turn().await;
        let built = tokio::task::spawn_blocking(move || {
            let Some(parts) = reloader.parts.get() else { return Ok(()) };
            let config = reloader.loaded().config.clone();
            let runtime = tokio::runtime::Handle::current();
            let catalogue = runtime.block_on(prices::load(&*parts.store, version, &config))?;
            let receipts = parts.front.load().app().receipts.clone();
            then(parts, parts.prepare(&config, &catalogue, Some(version), receipts)?);
            Ok(())
        });
        match built.await {
            Ok(built) => built.map_err(|error: RunError| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The parts, once the server has started.
    pub(super) fn parts(&self) -> Option<&Parts> {
        self.parts.get()
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first to set `decided` decides: this task, to use the new state, or its caller, to give up.
    fn take(&self, decided: &AtomicBool) -> Result<ReloadDocument, RunError> {
        let Some(parts) = self.parts.get() else {
            return Err(RunError::Setup("the server is still starting; try again in a second".into()));
        };
        // Not locked while files are read, which may block.
        let loaded = self.loaded().clone();
        let new = (self.load)()?;
        let (mut changed, needs_restart): (Vec<_>, Vec<_>) =
            difference::between(&loaded, &new)?.into_iter().partition(|key| is_reloaded(key));
        let config = with_reloaded(&loaded.config, new.config.clone());

        let before = Arc::clone(&parts.front.load().app().service);
        let runtime = tokio::runtime::Handle::current();
        let catalogue =
            runtime.block_on(prices::to_serve(&*parts.store, &*parts.clock, catalogue(&config)?, &config))?;
        let is_new = before.catalogue().json() != catalogue.json();
        let running = parts.front.load().app().log.running();
        let receipts = SignedReceipts::start(&config, &parts.store, &parts.clock, running)?;
        let prepared = parts.prepare(&config, &catalogue, before.price_version(), receipts.clone())?;
        let letterhead = match (&parts.letterhead, &config.smtp) {
            (Some(current), Some(smtp)) => {
                let urls = settings::Urls::new(&config, parts.address);
                Some((current, Letterhead::new(smtp, &config.brand, urls.pages()).map_err(setup)?))
            }
            _ => None,
        };
        let certificate = match (&parts.tls, &config.tls) {
            (Some(tls), Some(files)) => Some((tls.certificates(), Certificates::check(files)?)),
            _ => None,
        };

        if decided.swap(true, Ordering::SeqCst) {
            return Err(RunError::Setup(GIVEN_UP.into()));
        }
        // Recorded only after everything else was checked.
        let prepared = if is_new {
            let version = runtime.block_on(prices::record(&*parts.store, &*parts.clock, &catalogue))?;
            // Before the other is built: they take memory for all routes.
            drop(prepared);
            changed.push("catalogue".to_owned());
            parts.prepare(&config, &catalogue, Some(version), receipts)?
        } else {
            prepared
        };
        runtime.block_on(receipt_terms::record(&*parts.store, &*parts.clock, &config))?;

        // Nothing below can fail.
        prepared.front.app().limits.replace(&config.limits);
        parts.install(prepared);
        if let Some((current, letterhead)) = letterhead {
            current.replace(Arc::new(letterhead));
        }
        if let Some((certificates, checked)) = certificate
            && certificates.replace(checked)
        {
            changed.push("tls.certificate".to_owned());
        }
        self.loaded().take(config, &new, is_reloaded);
        changed.sort_unstable();
        changed.dedup();
        Ok(ReloadDocument { changed, needs_restart })
    }
}

impl Parts {
    /// Builds what serves a catalogue.
    fn prepare(
        &self,
        config: &Config,
        catalogue: &Arc<Catalogue>,
        version: Option<PriceNumber>,
        receipts: Option<SignedReceipts>,
    ) -> Result<Prepared, RunError> {
        let app = self.reconfigured(config, catalogue, version, receipts)?;
        let admin = self.admin.as_ref().map(|admin| admin::reassemble(&admin.load(), &app, config)).transpose();
        let toolbox = || Toolbox::with_prefix(catalogue, config.mcp.tool_prefix.clone()).map(Arc::new);
        let tools = self.mcp.as_ref().map(|_| toolbox()).transpose().map_err(setup)?;
        Ok(Prepared { front: Arc::new(Front::new(app, config)), admin: admin.map_err(setup)?, tools })
    }

    fn reconfigured(
        &self,
        config: &Config,
        catalogue: &Arc<Catalogue>,
        version: Option<PriceNumber>,
        receipts: Option<SignedReceipts>,
    ) -> Result<Arc<App>, RunError> {
        let front = self.front.load();
        let app = front.app();
        let urls = settings::Urls::new(config, self.address);
        let pages = Pages::new(config, catalogue, app.service.used_routes(), urls.public()).map_err(setup)?;
        let documents = assembly::documents(config, catalogue)?;
        let mut service = app.service.reconfigured(Arc::clone(catalogue), settings::service(config, &urls));
        if let Some(version) = version {
            service = service.with_prices(Arc::clone(&self.store) as _, version);
        }
        let service = Arc::new(SignedReceipts::in_service(receipts.as_ref(), service));
        let headers = HeaderSettings::new(&config.gateway)?;
        let upstreams = assembly::named_upstreams(config, app.gateway.named_upstreams())?;
        let gateway = Arc::new(app.gateway.reconfigured(Arc::clone(&service), headers, upstreams));
        let (pages, documents, published_keys) = (Arc::new(pages), Arc::new(documents), Arc::default());
        Ok(Arc::new(App { service, gateway, receipts, published_keys, pages, documents, ..(**app).clone() }))
    }

    /// Serves new requests with the prepared parts.
    fn install(&self, Prepared { front, admin, tools }: Prepared) {
        metrics::price_version(front.app().service.price_version());
        self.front.replace(front);
        if let Some((current, admin)) = self.admin.as_ref().zip(admin) {
            current.replace(admin);
        }
        if let Some((mcp, tools)) = self.mcp.as_ref().zip(tools) {
            mcp.replace_tools(tools);
        }
    }
}

/// Reloads on each SIGHUP until shutdown.
pub(crate) async fn on_signal(reloader: Arc<Reloader>, shutdown: Shutdown) {
    let Some(mut signals) = Hangups::new() else { return shutdown.cancelled().await };
    loop {
        tokio::select! {
            () = signals.next() => {}
            () = shutdown.cancelled() => return,
        }
        tokio::select! {
            _ = reloader.reload() => {}
            // It may be blocked by a mount that does not respond.
            () = shutdown.cancelled() => return,
        }
    }
}

/// The SIGHUPs that this process gets. Without a handler, one would end it.
#[cfg(unix)]
pub(crate) struct Hangups(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangups {
    pub(crate) fn new() -> Option<Self> {
        let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup());
        signals.map_err(|error| tracing::warn!(%error, "SIGHUP cannot be received")).ok().map(Self)
    }

    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Other systems have no SIGHUP.
#[cfg(not(unix))]
pub(crate) struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}

fn setup(error: impl std::error::Error + Send + Sync + 'static) -> RunError {
    RunError::Setup(Box::new(error))
}

fn is_reloaded(key: &str) -> bool {
    RELOADED
        .iter()
        .any(|reloaded| key.strip_prefix(reloaded).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The configuration in use, with those keys of a new one that a reload takes.
fn with_reloaded(config: &Config, new: Config) -> Config {
    let Config { brand, catalogue, console, docs, gateway, limits, operator, receipts, terms, tls, .. } = new;
    let receipts = ReceiptsConfig { currency: config.receipts.currency.clone(), ..receipts };
    let GatewayConfig { request_headers, response_headers, upstream_headers, upstreams, .. } = gateway;
    let gateway =
        GatewayConfig { request_headers, response_headers, upstream_headers, upstreams, ..config.gateway.clone() };
    // Whether `listen` serves HTTPS is settled when it is bound.
    let tls = config.tls.as_ref().map(|old| tls.unwrap_or_else(|| old.clone()));
    // Without the section, no one may sign in any more.
    let operators = console.oidc.map(|oidc| oidc.operators).unwrap_or_default();
    let mut console = config.console.clone();
    if let Some(oidc) = &mut console.oidc {
        oidc.operators = operators;
    }
    Config { brand, catalogue, console, docs, gateway, limits, operator, receipts, terms, tls, ..config.clone() }
}

fn list(keys: &[String]) -> String {
    if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") }
}
