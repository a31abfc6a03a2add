//! The `metering-server` program: loads the configuration, opens the store, handles signals. Only this file names
//! storage backends.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use metering_core::FullStore;
use metering_core::chains::{ChainError, ChainReader};
use metering_evm::EvmReader;
use metering_postgres::{PostgresConfig, PostgresStore};
use metering_server::config::{Arguments, Config, DatabaseUrl, Loaded, Surface, load};
use metering_server::{ChainMismatch, Ending, Readers, run, run_mcp_alone, start_logging};
use metering_sqlite::{SqliteStore, path_of_url};
use tokio::runtime::Runtime;

/// Faster than the C library's allocator on charged requests; see docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the end of the program waits for blocked threads. A DNS lookup for a webhook may block one for half a
/// minute, and nothing depends on its result.
const BLOCKED_THREADS: Duration = Duration::from_secs(1);

/// Threads for what runs beside the workers: accepting, watchers, webhooks, mail, upkeep, and on PostgreSQL the committer
/// and the connections to the database.
const BACKGROUND_THREADS: usize = 2;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(Ending::Orderly) => ExitCode::SUCCESS,
        Ok(Ending::StoreBroken) => {
            eprintln!(
                "metering-server: stopped: the database can no longer be written to safely. The log has the cause. Fix \
                 the disk or the database file, then start the server again"
            );
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("metering-server: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &Arguments) -> Result<Ending, Failure> {
    let loaded = load(arguments, std::env::vars_os())?;
    let config = loaded.config.clone();
    if arguments.print_config {
        let masked = |url: DatabaseUrl| {
            let shown = shown(url.expose());
            url.shown_as(shown)
        };
        print!("{}", toml::to_string(&Config { database: config.database.map(masked), ..config })?);
        return Ok(Ending::Orderly);
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(BACKGROUND_THREADS).enable_all().build()?;
    let traces = runtime.block_on(async { start_logging(&config) })?;
    let ended = serve(&runtime, arguments, loaded);
    traces.end();
    runtime.shutdown_timeout(BLOCKED_THREADS);
    ended
}

fn serve(runtime: &Runtime, arguments: &Arguments, loaded: Loaded) -> Result<Ending, Failure> {
    let config = loaded.config.clone();
    for variable in &loaded.ignored {
        tracing::debug!(variable, "ignoring an environment variable that Kubernetes or Docker injected for a service");
    }
    if config.is_mcp_alone() {
        let announced = config.clone();
        let announce = |address| announce_mcp(&announced, address);
        return runtime.block_on(async { Ok(run_mcp_alone(config, announce, stop_signal()?).await?) });
    }
    let database = config.database_url();
    let announced = config.clone();
    let arguments = arguments.clone();
    let reload = move || load(&arguments, std::env::vars_os());
    runtime.block_on(async {
        let store = open(&database).await?;
        let database = shown(&database);
        let readers = open_chains(&config).await?;
        let announce = |address| announce(&announced, &database, address);
        Ok(run(loaded, reload, store, readers, announce, stop_signal()?).await?)
    })
}

async fn open(database: &str) -> Result<Arc<dyn FullStore>, Failure> {
    let scheme = database.split_once(':').map_or("", |(scheme, _)| scheme);
    if is_postgres(database) {
        let config: PostgresConfig =
            database.parse().map_err(|error| format!("configuration key database: {error}"))?;
        let store = PostgresStore::connect(&config).await;
        return Ok(Arc::new(store.map_err(|error| format!("database {config}: {}", causes(&error)))?));
    }
    let path = path_of_url(database).map_err(|error| {
        format!("configuration key database: {error} ({scheme}:...); supported: sqlite:PATH, postgres://...")
    })?;
    Ok(Arc::new(SqliteStore::create(&path)?))
}

fn is_postgres(database: &str) -> bool {
    ["postgres:", "postgresql:"].iter().any(|scheme| database.starts_with(scheme))
}

/// A database URL without its password. A URL that does not parse is masked entirely: the password could be anywhere in
/// it.
fn shown(database: &str) -> String {
    if database.starts_with("sqlite:") {
        return database.to_owned();
    }
    database.parse().map_or_else(|_| "********".to_owned(), |config: PostgresConfig| config.to_string())
}

/// An error followed by its causes. A connection error says little without them.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

/// The readers of the configured chains. Each checks that its RPC source serves the configured chain id.
async fn open_chains(config: &Config) -> Result<Readers, Failure> {
    let mut readers = Readers::new();
    for (section, chain) in &config.chains {
        let reader = chain.reader().map_err(|error| format!("configuration key chains.{section}.{error}"))?;
        let Some(reader) = reader else {
            tracing::warn!(
                chain = section,
                "no rpc_urls configured: plans on this chain are listed but cannot be bought"
            );
            continue;
        };
        check(&reader).await?;
        readers.insert(chain.chain_id, Arc::new(reader));
    }
    Ok(readers)
}

async fn check(reader: &EvmReader) -> Result<(), ChainMismatch> {
    let chain_id = reader.chain_id();
    match reader.check().await {
        Ok(()) => {
            // Measures the block time, so that the first customer is shown the right number of confirmations.
            if let Err(error) = reader.heights().await {
                tracing::warn!(chain_id, %error, "cannot read the chain's block heights at the moment");
            }
            Ok(())
        }
        Err(error @ ChainError::WrongChain { .. }) => Err(ChainMismatch::OtherChain { chain_id, error }),
        Err(error) => {
            tracing::warn!(chain_id, %error, "the chain cannot be read at the moment; payments on it will still be tried");
            Ok(())
        }
    }
}

fn announce(config: &Config, database: &str, address: SocketAddr) {
    println!("metering-server {}", env!("CARGO_PKG_VERSION"));
    println!("  listening  {}://{address}", config.scheme());
    println!("  database   {database}");
    if let Some(admin) = &config.admin_listen {
        println!("  console    http://{admin}/console");
    }
    for upstream in &config.gateway.upstreams {
        println!("  upstream   {} ({})", upstream.url, upstream.name);
    }
    match &config.upstream {
        Some(url) => println!("  upstream   {url}"),
        None if !config.gateway.upstreams.is_empty() => {}
        None => {
            println!(
                "  upstream   built-in sample feed: SAMPLE DATA, not a real market; use --upstream URL for your own API"
            )
        }
    }
    if config.serves(Surface::Mcp) {
        let scheme = config.scheme();
        println!("  tools      {scheme}://{address}/mcp, {scheme}://{address}/sse (MCP)");
    }
    let create = "account create --agent-name NAME --credits 2";
    if database.starts_with("sqlite:") {
        println!("  new key    metering admin --database {database} {create}");
    } else {
        // The printed URL has its password masked, so a copied command would not work.
        println!("  new key    metering admin {create}, with the same METERING_DATABASE");
    }
}

/// The startup banner of a process that serves only MCP tools.
fn announce_mcp(config: &Config, address: SocketAddr) {
    println!("metering-server {}", env!("CARGO_PKG_VERSION"));
    let scheme = config.scheme();
    println!("  listening  {scheme}://{address}");
    println!("  gateway    {}", config.mcp.gateway.as_deref().unwrap_or_default());
    println!("  tools      {scheme}://{address}/mcp, {scheme}://{address}/sse");
}

/// Resolves on SIGTERM or Ctrl-C. Both are caught from this call on, so a server that has said that it listens stops in
/// order.
#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
