//! Loads the configuration from file, environment and flags, and validates it.

mod authorize;
mod oauth;
mod pay;
mod service_url;
mod upstreams;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use http::HeaderValue;
use metering_client::ServiceUrl;
use metering_evm::ChainConfigError;
use sha3::{Digest, Sha3_256};
use url::Url;
use zeroize::Zeroizing;

use crate::server::values::flatten;
use crate::server::{BotCheckKind, Config, Mark, Secret, SignupConfig, Surface, secret_files};
use crate::{ConfigError, Sources};

/// Serves metered routes: API keys, exact prepaid credits, usage, and a gateway in front of your API.
///
/// Without any flag it listens on 127.0.0.1:8787, keeps its data in ./metering-data and serves a built-in feed of
/// sample data. Create a key with `metering admin account create`.
#[derive(Debug, Clone, Default, Parser)]
#[command(version, name = "metering-server")]
pub struct Arguments {
    /// The configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder of the default database [default: ./metering-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The database URL, such as sqlite:PATH [default: sqlite:DATA/metering.db]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// The address to listen on [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The service behind the gateway [default: the sample feed]
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// The catalogue of metered routes (JSON) [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,
    /// The surfaces to serve: any of metering,gateway,mcp,authorize [default: metering,gateway,mcp]
    #[arg(long, value_name = "LIST")]
    pub surfaces: Option<String>,
    /// Print the effective configuration with secrets masked, and exit
    #[arg(long)]
    pub print_config: bool,
}

/// The effective configuration, and the variables that were ignored.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Variables that Kubernetes or Docker injected for a service whose name also starts with `metering`.
    pub ignored: Vec<String>,
    /// Digests of the configured values, by key, and of the files that they name. Secrets can only be compared by
    /// digest.
    pub(super) digests: BTreeMap<String, [u8; 32]>,
}

/// Reads the effective configuration.
///
/// # Errors
/// When a source cannot be read, a key is unknown, or a value is invalid.
pub fn load(
    arguments: &Arguments,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Loaded, ConfigError> {
    let path_text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let sources = Sources::new(arguments.config.clone(), environment)?
        .flag("data", arguments.data.as_ref().map(path_text))
        .flag("database", arguments.database.clone())
        .flag("listen", arguments.listen.clone())
        .flag("surfaces", arguments.surfaces.clone())
        .flag("upstream", arguments.upstream.clone())
        .flag("catalogue", arguments.catalogue.as_ref().map(path_text));
    let mut config: Config = sources.read()?;
    secret_files::take_in(&mut config).and_then(|()| check(&config)).map_err(|error| sources.named(error))?;
    let mut values = BTreeMap::new();
    flatten("", sources.read()?, &mut values);
    let digests = values.iter().map(|(key, value)| (key.clone(), digest(key, value))).collect();
    Ok(Loaded { config, ignored: sources.ignored().to_vec(), digests })
}

/// The digest of a value and of the contents of the files that it names. A file that cannot be read is reported
/// elsewhere.
fn digest(key: &str, value: &toml::Value) -> [u8; 32] {
    let held = secret_files::named_by(key, value).into_iter().filter_map(|file| std::fs::read(file).ok());
    let digest = Sha3_256::new().chain_update(Zeroizing::new(value.to_string()).as_bytes());
    held.map(Zeroizing::new).fold(digest, |digest, held| digest.chain_update(&*held)).finalize().into()
}

fn check(config: &Config) -> Result<(), ConfigError> {
    check_address("listen", &config.listen)?;
    config.admin_listen.as_ref().map_or(Ok(()), |address| check_address("admin_listen", address))?;
    config.console.check(config.admin_listen.is_some())?;
    if config.workers.is_some_and(|workers| workers.get() > 1024) {
        return Err(ConfigError::key("workers", "must be 1 to 1024"));
    }
    let urls = [("upstream", &config.upstream), ("public_url", &config.public_url), ("pages_url", &config.pages_url)];
    for (key, url) in urls {
        url.as_ref().map_or(Ok(()), |url| service_url::check(key, url))?;
    }
    check_pages_url(config)?;
    if HeaderValue::from_str(&config.gateway.content_security_policy).is_err() {
        return Err(ConfigError::key("gateway.content_security_policy", "must be a valid header value on one line"));
    }
    config.gateway.upstream_headers.pairs()?;
    upstreams::check(&config.gateway.upstreams)?;
    if !(10..=3_600).contains(&config.gateway.hold_lease.duration().as_secs()) {
        return Err(ConfigError::key("gateway.hold_lease", "must be 10s to 1h"));
    }
    if config.http.max_header_bytes < 8192 {
        return Err(ConfigError::key("http.max_header_bytes", "must be at least 8192"));
    }
    let billing = &config.billing;
    for (key, secret) in
        [("billing.internal_secret", &billing.internal_secret), ("billing.payments_secret", &billing.payments_secret)]
    {
        if secret.as_ref().is_some_and(|secret| secret.expose().len() < 16) {
            return Err(ConfigError::key(key, "must have at least 16 characters"));
        }
    }
    check_mcp(config)?;
    config.authorize.check(config)?;
    config.oauth.check(config)?;
    check_signup(&config.signup)?;
    check_mail(config)?;
    config.webhooks.check()?;
    config.retention.check()?;
    config.usage.check(config.public_url.as_deref(), config.webhooks.deliver)?;
    config.pay.check(config)?;
    let returns_to = config.public_url.as_deref().or(config.pages_url.as_deref());
    config.stripe.as_ref().map_or(Ok(()), |stripe| stripe.check(returns_to))?;
    config.brand.mark.as_deref().map_or(Ok(()), |file| Mark::read(file).map(drop))?;
    config.receipts.check(config.public_url.is_some())?;
    config.log.check(config.public_url.is_some())?;
    config.receipts.terms(config.operator.seller(&config.brand)).map(drop)?;
    config.otlp.as_ref().map_or(Ok(()), |otlp| otlp.check())?;
    let version = &config.terms.version;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if version.is_empty() || version.len() > 32 || !version.bytes().all(plain) {
        // The version is part of a path.
        return Err(ConfigError::key("terms.version", "must be 1 to 32 characters of A-Z a-z 0-9 . _ -"));
    }
    if let Some(primary) = &config.primary_chain
        && !config.chains.contains_key(primary)
    {
        return Err(ConfigError::key("primary_chain", format_args!("{primary:?} is not one of the configured chains")));
    }
    for (section, chain) in &config.chains {
        let invalid =
            |error: ChainConfigError| ConfigError::key(format!("chains.{section}.{}", error.key), error.problem);
        chain.validate().map_err(invalid)?;
    }
    let mut ids: Vec<_> = config.chains.values().map(|chain| chain.chain_id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ConfigError::key("chains", format_args!("two chains have chain_id {}", pair[0]))),
        None => Ok(()),
    }
}

/// Requests for pages are recognized by their host, so a separate origin for pages needs a separate host name.
fn check_pages_url(config: &Config) -> Result<(), ConfigError> {
    let Some(pages) = config.pages_url.as_deref().and_then(|url| Url::parse(url).ok()) else { return Ok(()) };
    let invalid = |problem| Err(ConfigError::key("pages_url", problem));
    if pages.path() != "/" {
        return invalid("must not have a path: pages are served at the root of their host");
    }
    let Some(public) = config.public_url.as_deref().and_then(|url| Url::parse(url).ok()) else {
        return invalid("requires public_url, the URL under which clients reach the metered routes");
    };
    let host = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    if host(&pages) == host(&public) {
        return invalid("has the same host as public_url: use another host name for the pages, or remove this key");
    }
    Ok(())
}

/// Checks that an address has a host and a port. Whether the host exists is only known when the server binds.
fn check_address(key: &str, address: &str) -> Result<(), ConfigError> {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    if is_port(port) && host.is_empty() {
        let hosts = format_args!("127.0.0.1:{port} for this machine only, or 0.0.0.0:{port} for all networks");
        return Err(ConfigError::key(key, format_args!("{address:?} is a port without a host; use {hosts}")));
    }
    if is_port(port) {
        return Ok(());
    }
    let example = "use a host and a port, such as 127.0.0.1:8787";
    Err(ConfigError::key(key, format_args!("{address:?} is not an address to listen on; {example}")))
}

fn check_mcp(config: &Config) -> Result<(), ConfigError> {
    if config.surfaces.is_empty() {
        return Err(ConfigError::key("surfaces", "must list at least one of metering, gateway, mcp, authorize"));
    }
    for (key, url) in [("mcp.gateway", &config.mcp.gateway), ("mcp.metering", &config.mcp.metering)] {
        if let Some(text) = url {
            text.parse::<ServiceUrl>().map_err(|error| ConfigError::key(key, error))?;
        }
    }
    if config.mcp.metering.is_some() && config.mcp.gateway.is_none() {
        return Err(ConfigError::key("mcp.metering", "requires mcp.gateway"));
    }
    let both = config.serves(Surface::Metering) && config.serves(Surface::Gateway);
    if config.serves(Surface::Mcp) && config.mcp.gateway.is_none() && !both {
        return Err(needs_gateway());
    }
    Ok(())
}

/// The error for a process that serves MCP tools but not all the services that they call.
pub fn needs_gateway() -> ConfigError {
    let problem = "is required: this process serves MCP tools, but not the metering and gateway surfaces that they call; \
                   set it to the URL of the service that does";
    ConfigError::key("mcp.gateway", problem)
}

fn check_signup(signup: &SignupConfig) -> Result<(), ConfigError> {
    let long_enough = |secret: &Secret| secret.expose().len() >= 16;
    if !signup.challenge_secret.as_ref().is_none_or(long_enough) {
        return Err(ConfigError::key("signup.challenge_secret", "must have at least 16 characters"));
    }
    if !(1..=1_000_000).contains(&signup.altcha_cost) {
        return Err(ConfigError::key("signup.altcha_cost", "must be 1 to 1000000"));
    }
    if !(1..=32).contains(&signup.altcha_max_factor) {
        return Err(ConfigError::key("signup.altcha_max_factor", "must be 1 to 32"));
    }
    if !(1..=60).contains(&signup.poll_interval.duration().as_secs()) {
        return Err(ConfigError::key("signup.poll_interval", "must be 1s to 60s"));
    }
    if signup.bot_check != BotCheckKind::Turnstile {
        return Ok(());
    }
    if signup.turnstile.site_key.is_empty() {
        return Err(ConfigError::key("signup.turnstile.site_key", "is required for Turnstile"));
    }
    if signup.turnstile.secret.is_none() {
        return Err(ConfigError::key("signup.turnstile.secret", "is required for Turnstile"));
    }
    let url = Url::parse(&signup.turnstile.verify_url);
    let url = url.map_err(|error| ConfigError::key("signup.turnstile.verify_url", error))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        return Ok(());
    }
    Err(ConfigError::key("signup.turnstile.verify_url", "must be an http(s) URL"))
}

/// Mail needs a server to send it through, and a URL for its links.
fn check_mail(config: &Config) -> Result<(), ConfigError> {
    let Some(smtp) = &config.smtp else {
        if config.signup.verify_email == Some(true) {
            let problem = "requires the section [smtp]: set smtp.host and smtp.from, or set this to false";
            return Err(ConfigError::key("signup.verify_email", problem));
        }
        return Ok(());
    };
    smtp.check()?;
    if config.public_url.is_none() && config.pages_url.is_none() {
        let problem = "is required with [smtp]: links in mail start with it";
        return Err(ConfigError::key("public_url", problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
