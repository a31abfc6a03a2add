//! Assembles the server's parts, serves, and shuts down in order.

mod assembly;
mod catalogue;
mod current;
mod ending;
mod listen;
mod prices;
mod receipt_terms;
mod reload;
mod schedule;
mod settings;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::LocalBoxFuture;
use http::Request;
use hyper::body::Incoming;
use metering_core::charging::MeterEnd;
use metering_core::events::Wake;
use metering_core::store::StoreClock;
use metering_core::{Clock, FullStore, Store, SystemClock};
use metering_evm::ChainConfig;
use tokio::task::JoinHandle;

use crate::admin::{self, AdminApp, Reload};
use crate::api;
use crate::api::app::App;
use crate::authorize::Authorizer;
use crate::chains::{self, Readers, Watch};
use crate::config::{Config, ConfigError, Loaded, Surface};
use crate::front::{Destination, Front};
use crate::gateway;
use crate::http::{Handler, ResponseFuture, Shutdown, Tls};
use crate::log::LogTask;
use crate::mail::MailTask;
use crate::mcp::{self, Mcp};
use crate::operations::forwarding::Forwarding;
use crate::operations::metrics::RequestTimes;
use crate::operations::{maintenance, refills, retention, service_manager};
use crate::pay;
use crate::rates::RateReader;
use crate::stripe::TopUps;
use crate::webhooks::{self, Delivering, Sinks};

pub(crate) use catalogue::{catalogue, conflict};
pub(crate) use current::Current;
pub(crate) use ending::listen_for;
pub use ending::{Ending, RunError};
pub(crate) use listen::{bind, connections, workers};
use reload::Parts;
pub(crate) use reload::{Hangups, Reloader};

/// Serves until `stop` resolves. Calls `announce` with the address once the server accepts requests, and `reload` to
/// read the configuration again: on SIGHUP, and when an operator requests it.
///
/// # Errors
/// When it cannot start.
pub async fn run(
    loaded: Loaded,
    reload: impl Fn() -> Result<Loaded, ConfigError> + Send + Sync + 'static,
    store: Arc<dyn FullStore>,
    readers: Readers,
    announce: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<Ending, RunError> {
    let config = loaded.config.clone();
    let reloader = Arc::new(Reloader::new(loaded, Box::new(reload)));
    serve(config, reloader, store, readers, Box::new(announce), Box::pin(stop)).await
}

/// Boxed: the compiler then generates the server's code once, in this crate, and not again in each program that runs
/// it. A generic future is generated where it is polled.
fn serve<'a>(
    config: Config,
    reloader: Arc<Reloader>,
    store: Arc<dyn FullStore>,
    readers: Readers,
    announce: Box<dyn FnOnce(SocketAddr) + 'a>,
    stop: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Ending, RunError>> {
    Box::pin(run_until(config, reloader, store, readers, announce, stop))
}

async fn run_until(
    config: Config,
    reloader: Arc<Reloader>,
    store: Arc<dyn FullStore>,
    readers: Readers,
    announce: Box<dyn FnOnce(SocketAddr) + '_>,
    stop: LocalBoxFuture<'_, ()>,
) -> Result<Ending, RunError> {
    // Fails if this process has already installed a crypto provider, which is fine: any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    chains::check(&*store, &readers).await?;
    let tls = config.tls.as_ref().map(Tls::new).transpose()?;
    let connections = connections(&config);
    let listener = bind("listen", &config.listen, &config, connections, tls.clone()).await?;
    let address = listener.local_address().map_err(|error| RunError::Setup(Box::new(error)))?;
    let admin = match &config.admin_listen {
        Some(address) => Some(bind("admin_listen", address, &config, connections, None).await?),
        None => None,
    };
    let workers = workers(&config)?;
    let clock = follow_clock(&store).await;
    let wake = Wake::default();
    let (catalogue, version) = prices::at_start(&*store, &*clock, catalogue(&config)?, &config).await?;
    let used = maintenance::used_routes(&*store, &*clock, &catalogue).await;
    let priced = (catalogue, version, Arc::clone(&used));
    let (mut app, mail, unread) =
        assembly::assemble(&config, Arc::clone(&store), readers, Arc::clone(&clock), address, priced, wake.clone())?;
    let alerts = mail.as_ref().map(|mail| mail.alerts(Arc::clone(&app.service)));
    let delivering = Delivering::prepare(&config.webhooks, Arc::clone(&store), Arc::clone(&clock), wake, alerts);
    let delivering = delivering.await.map_err(RunError::Setup)?;
    app.courier = delivering.as_ref().map(Delivering::stats);
    let sinks = Sinks::prepare(&config, &store, &clock).map_err(RunError::Setup)?;
    let log = LogTask::prepare(&config, &app.log, &app.clock).map_err(RunError::Setup)?;
    let app = Arc::new(app);
    let admin = match admin {
        Some(listener) => {
            // Weak, because the reloader has these parts: a circle would keep the store open when the server ends.
            let reloader = Arc::downgrade(&reloader);
            let reload = Reload::by(move || {
                let reloader = reloader.upgrade();
                Box::pin(async move {
                    match reloader {
                        Some(reloader) => reloader.reload().await,
                        None => Err("the server is shutting down".to_owned()),
                    }
                })
            });
            let parts = admin::assemble(&app, &store, &config, reload);
            let parts = parts.map_err(|error| RunError::Setup(Box::new(error)))?;
            Some((listener, Arc::new(Current::new(parts))))
        }
        None => None,
    };
    let letterhead = mail.as_ref().map(|mail| Arc::clone(mail.letterhead()));
    let mail: Option<MailTask> = mail.map(|mail| mail.start(Arc::clone(&app.service)));
    receipt_terms::record(&*store, &*clock, &config).await?;
    // Register recipients before any customer can see where to pay.
    if let Err(error) = app.service.payments().register_recipients().await {
        tracing::error!(%error, "could not register the payment recipients; retrying when plans are listed");
    }
    let shutdown = Shutdown::new();
    let streams = Arc::clone(app.gateway.streams());
    let watch = {
        let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
        let (shutdown, interval) = (shutdown.clone(), config.gateway.stream_check.duration());
        tokio::spawn(async move { streams.watch(&*store, &*clock, interval, shutdown).await })
    };
    check_clock(&app).await;
    let (limits, metrics, clock_watch) = (Arc::clone(&app.limits), app.metrics.clone(), Arc::clone(&app.clock_watch));
    let parts_store = Arc::clone(&store);
    let store_lost = maintenance::watch_store(Arc::clone(&store) as _);
    let idle_state = (limits, app.bot_challenge.clone());
    let refilling = {
        let (store, clock, clock_watch) = (Arc::clone(&store), Arc::clone(&clock), Arc::clone(&clock_watch));
        tokio::spawn(refills::refill(store, clock, clock_watch, shutdown.clone()))
    };
    let (kept, until, watch_of_clock) = (config.retention.kept(), shutdown.clone(), Arc::clone(&clock_watch));
    let retention = retention::enforce(Arc::clone(&store), Arc::clone(&clock), watch_of_clock, kept, until);
    let upkeep = maintenance::maintain(store, clock, clock_watch, idle_state, used, metrics, shutdown.clone());
    let upkeep = tokio::spawn(async move {
        tokio::join!(upkeep, retention);
    });
    let watching = watch_chains(&app, &config, &shutdown);
    let topping_up = top_up_automatically(&app, &shutdown);
    let appending = log.map(|log| tokio::spawn(log.run(shutdown.clone())));
    let paying = unread.map(|unread| {
        tokio::spawn(pay::run(Arc::clone(&app.payments), unread, Arc::clone(&app.gas), shutdown.clone()))
    });
    let front = Arc::new(Current::new(Arc::new(Front::new(Arc::clone(&app), &config))));
    let mcp = mcp(&config, &app, &front, address, &shutdown)?;
    let sessions = mcp.as_ref().map(|mcp| watch_sessions(mcp, &config));
    reloader.start(Parts {
        address,
        front: Arc::clone(&front),
        admin: admin.as_ref().map(|(_, admin)| Arc::clone(admin)),
        mcp: mcp.clone(),
        letterhead,
        tls: tls.clone(),
        store: Arc::clone(&parts_store),
        clock: Arc::clone(&app.clock),
    });
    let rating = read_rates(&app, &config, &shutdown)?;
    let pricing = tokio::spawn(schedule::follow(Arc::clone(&reloader), shutdown.clone()));
    let reloading = tokio::spawn(reload::on_signal(reloader, shutdown.clone()));
    let certificates = tls.map(|tls| tokio::spawn(Arc::clone(tls.certificates()).watch(shutdown.clone())));
    let serving = tokio::spawn(listener.serve(handler(&front, mcp.as_ref()), Arc::clone(&workers), shutdown.clone()));
    let administering = admin.map(|(listener, admin)| {
        let serving = listener.serve(admin_handler(&admin), Arc::clone(&workers), shutdown.clone());
        tokio::spawn(async move {
            serving.await;
            admin.load().drain().await;
        })
    });
    if config.serves(Surface::Gateway) {
        tokio::spawn(gateway::warn_about_upstream(config.clone()));
    }
    let delivering = delivering.map(|delivering| delivering.start(shutdown.clone()));
    let sinks = sinks.start(&shutdown);
    announce(address);
    let stop = listen_for(stop);
    let supervising = tokio::spawn(service_manager::supervise(checks(&app), shutdown.clone()));

    let ending = tokio::select! {
        () = stop => Ending::Orderly,
        () = store_lost => Ending::StoreBroken,
        // The meter ends only when its store breaks.
        end = app.meter.ended() => if end == MeterEnd::StoreBroken { Ending::StoreBroken } else { Ending::Orderly },
    };
    service_manager::stopping();
    tracing::info!("shutting down: finishing accepted requests");
    shutdown.cancel();
    let grace_ends = tokio::time::Instant::now() + config.http.shutdown_grace.duration();
    app.service.payments().end_waits();
    // In this order: accepted requests still charge, refund and respond; then the last batch is committed, while mail
    // that is queued is sent. Mail does not need the meter, and the commit must not wait for a mail server.
    let tasks = [
        Some(serving),
        administering,
        Some(reloading),
        Some(pricing),
        rating,
        certificates,
        sessions,
        Some(watch),
        Some(supervising),
        Some(refilling),
        Some(upkeep),
        paying,
        topping_up,
        appending,
    ]
    .into_iter()
    .flatten()
    .chain(watching)
    .chain(sinks);
    for task in tasks {
        if let Err(error) = task.await {
            tracing::error!(%error, "a server task failed");
        }
    }
    app.gateway.replays().close();
    tokio::join!(app.gateway.reports().finish(grace_ends), webhooks::finish(delivering));
    tokio::join!(app.meter.drain(), async {
        if let Some(mail) = mail {
            mail.drain().await;
        }
    });
    // Last: what requests have spawned runs on the workers until here.
    workers.stop().await;
    Ok(ending)
}

fn checks(app: &Arc<App>) -> service_manager::Checks {
    let (app, same) = (Arc::clone(app), Arc::clone(app));
    service_manager::Checks {
        not_ready: Box::new(move || {
            let app = Arc::clone(&app);
            Box::pin(async move { api::not_ready(&app).await.map(|problem| problem.message().to_owned()) })
        }),
        responds: Box::new(move || {
            let app = Arc::clone(&same);
            Box::pin(async move {
                let _ = app.readiness.store_not_ready(api::readiness_parts(&app)).await;
            })
        }),
    }
}

/// The clock of everything that this server does: the database's, if it has one.
async fn follow_clock(store: &Arc<dyn FullStore>) -> Arc<dyn Clock> {
    let clock = Arc::new(StoreClock::new(Arc::new(SystemClock)));
    if let Err(error) = clock.sync(&**store).await {
        tracing::warn!(%error, "could not read the database's clock; going by this machine's until it can be read");
    }
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    tokio::spawn(Arc::clone(&clock).follow(Arc::downgrade(&store)));
    clock
}

/// Logs at startup if this machine's clock differs from the database's.
async fn check_clock(app: &App) {
    if let Err(error) = app.clock_watch.skew(&*app.store).await {
        tracing::warn!(%error, "could not read the database's clock");
    }
}

/// Serves only MCP tools, for a service that runs elsewhere, until `stop` resolves. For configurations where
/// [`Config::is_mcp_alone`] holds.
///
/// # Errors
/// When it cannot start.
pub async fn run_mcp_alone(
    config: Config,
    announce: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<Ending, RunError> {
    mcp::run_alone(config, Box::new(announce), Box::pin(stop)).await
}

/// The MCP surface, if this process serves it.
fn mcp(
    config: &Config,
    app: &App,
    front: &Arc<Current<Front>>,
    address: SocketAddr,
    shutdown: &Shutdown,
) -> Result<Option<Arc<Mcp>>, RunError> {
    if !config.serves(Surface::Mcp) {
        return Ok(None);
    }
    let mcp = Mcp::new(config, app.service.catalogue(), Some(front), address, shutdown)?;
    Ok(Some(Arc::new(mcp)))
}

fn watch_sessions(mcp: &Arc<Mcp>, config: &Config) -> JoinHandle<()> {
    let (mcp, interval) = (Arc::clone(mcp), config.mcp.key_check.duration());
    tokio::spawn(async move { mcp.watch(interval).await })
}

/// Starts a task that reads exchange rates, if the configuration says where.
fn read_rates(app: &App, config: &Config, shutdown: &Shutdown) -> Result<Option<JoinHandle<()>>, RunError> {
    let Some((currency, rates)) = config.receipts.currency.as_ref().zip(app.service.payments().rates()) else {
        return Ok(None);
    };
    let reader = RateReader::new(currency, rates, &app.clock).map_err(|error| RunError::Setup(Box::new(error)))?;
    Ok(reader.map(|reader| tokio::spawn(reader.follow(shutdown.clone()))))
}

/// Starts a task that charges saved cards, if cards are taken.
fn top_up_automatically(app: &App, shutdown: &Shutdown) -> Option<JoinHandle<()>> {
    let (clock, clock_watch) = (Arc::clone(&app.clock), Arc::clone(&app.clock_watch));
    let stripe = app.stripe.clone()?;
    let top_ups = TopUps { stripe, service: Arc::clone(&app.service), clock, clock_watch };
    Some(tokio::spawn(top_ups.run(shutdown.clone())))
}

/// Starts a task that settles credited payments for each readable chain, and a watcher for each watched chain.
fn watch_chains(app: &Arc<App>, config: &Config, shutdown: &Shutdown) -> Vec<JoinHandle<()>> {
    let watched =
        config.chains.values().filter(|chain| chain.is_watched() && app.readers.contains_key(&chain.chain_id));
    let start = |chain: &ChainConfig| {
        let watch = Watch { chain_id: chain.chain_id, from_block: chain.watch_from_block };
        let interval = config.payments.watch_interval.duration();
        let progress = Arc::clone(&app.progress);
        tokio::spawn(chains::watch(Arc::clone(&app.service), watch, interval, progress, shutdown.clone()))
    };
    let interval = config.payments.watch_interval.duration();
    let settle =
        |chain_id: &u64| tokio::spawn(chains::settle(Arc::clone(&app.service), *chain_id, interval, shutdown.clone()));
    watched.map(start).chain(app.readers.keys().map(settle)).collect()
}

/// Routes MCP paths to the MCP server and everything else to the front.
fn handler(front: &Arc<Current<Front>>, mcp: Option<&Arc<Mcp>>) -> Handler {
    let (front, mcp, times) = (Arc::clone(front), mcp.cloned(), Arc::<RequestTimes>::default());
    let forwarding = Arc::new(Forwarding::new());
    Arc::new(move |request: Request<Incoming>| -> ResponseFuture {
        forwarding.count(&request);
        let started = Instant::now();
        let (front, times) = (front.load(), Arc::clone(&times));
        let destination = front.destination(request.method(), request.uri().path());
        let surface = destination.surface();
        let mcp = mcp.as_ref().filter(|_| matches!(destination, Destination::Mcp)).cloned();
        Box::pin(async move {
            let response = match mcp {
                // Boxed, because it is large, and the future of every request would be as large.
                Some(mcp) => Box::pin(mcp.respond(request)).await,
                None => front.respond(destination, request).await,
            };
            times.record(surface, Authorizer::status_of(&response), started.elapsed());
            response
        })
    })
}

fn admin_handler(app: &Arc<Current<AdminApp>>) -> Handler {
    let app = Arc::clone(app);
    Arc::new(move |request: Request<Incoming>| -> ResponseFuture {
        let app = app.load();
        Box::pin(async move { admin::respond(&app, request).await })
    })
}
