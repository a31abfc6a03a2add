//! The configuration: one TOML file, `METERING_...` variables over it, flags over those.

mod brand;
mod limits;
mod list;
mod load;
mod mcp;
mod payments;
mod proxies;
mod quota;
mod secret;
mod signup;
mod span;
mod web;
mod weight;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use metering_config::{ConfigError, DatabaseUrl};
use metering_config::{DEFAULT_DATA, FILE_IN_DATA};
use metering_evm::ChainConfig;
use serde::{Deserialize, Serialize};

pub use brand::{BrandConfig, BrandText, Colour, ColourError};
pub use limits::LimitsConfig;
pub use list::List;
pub(crate) use load::needs_gateway;
pub use load::{Arguments, Loaded, load};
pub use mcp::{McpConfig, Surface};
pub use payments::{CreditAmount, PaymentsConfig, RecoveryConfig, TopupConfig};
pub use proxies::TrustedProxies;
pub use quota::{Quota, QuotaError};
pub use secret::Secret;
pub use signup::{BotCheckKind, SignupConfig, TurnstileConfig};
pub use span::{Span, SpanError};
pub use web::{HostName, HostNameError, WebOrigin, WebOriginError};
pub use weight::WeightSetting;

/// The effective configuration. Every key has a default, and an unknown key is an error.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where to listen.
    pub listen: String,
    /// Where to serve `/metrics` instead of on `listen`, when given.
    pub admin_listen: Option<String>,
    /// What this process serves.
    pub surfaces: List<Surface>,
    /// The folder of the default database.
    pub data: PathBuf,
    /// Which database, as a URL; by default `sqlite:DATA/metering.db`.
    pub database: Option<DatabaseUrl>,
    /// The service behind the gateway; by default the sample feed.
    pub upstream: Option<String>,
    /// The catalogue of metered routes, a JSON file; by default the built-in one.
    pub catalogue: Option<PathBuf>,
    /// Where clients reach this service; by default `http://` and the address it listens on.
    pub public_url: Option<String>,
    /// Where people reach the browser pages, when that is another origin than `public_url`: the pages are then served
    /// under that host name only, and metered routes under all others.
    pub pages_url: Option<String>,
    /// Which plan chain stands first; by default the one with the lowest id.
    pub primary_chain: Option<String>,
    /// What is logged.
    pub log: LogConfig,
    /// What HTTP clients may do.
    pub http: HttpConfig,
    /// How often clients may ask for what needs no key.
    pub limits: LimitsConfig,
    /// How requests are forwarded.
    pub gateway: GatewayConfig,
    /// The routes as tools for agents.
    pub mcp: McpConfig,
    /// How charges are committed.
    pub meter: MeterLimits,
    /// Charging over HTTP for other services.
    pub billing: BillingConfig,
    /// How payments are waited for.
    pub payments: PaymentsConfig,
    /// How people sign up.
    pub signup: SignupConfig,
    /// Registering payments for accounts that exist.
    pub topup: TopupConfig,
    /// Rotating keys by wallet.
    pub recovery: RecoveryConfig,
    /// The terms that users accept.
    pub terms: TermsConfig,
    /// What the browser pages call the service, and in which colour.
    pub brand: BrandConfig,
    /// The built-in sample feed.
    pub sample: SampleConfig,
    /// The chains that plans are paid on, by a short name.
    pub chains: BTreeMap<String, ChainConfig>,
}

/// What is logged, to standard error.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// A level or a filter of `tracing-subscriber`, such as `info` or `metering_server=debug`.
    pub filter: String,
    /// `text` or `json`.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What HTTP clients may do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// How long a connection may take to send a request's head, and how long it may be idle between requests.
    pub header_timeout: Span,
    /// How long a request's body may take to arrive.
    pub body_timeout: Span,
    /// How long a client may take nothing of a response before its connection is closed.
    pub write_timeout: Span,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// The largest head, in bytes; at least 8192.
    pub max_header_bytes: usize,
    /// Connections at one time. For one more, an idle one is closed; it waits while all are busy.
    pub max_connections: NonZeroUsize,
    /// Connections at one time of one client address (a /64 of IPv6), trusted proxies excepted. For one more, an idle
    /// one is closed; it is refused while all are busy.
    pub max_connections_per_address: NonZeroUsize,
    /// The proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// Other origins whose web pages may call the API, the gateway and the MCP server (CORS).
    pub allowed_origins: List<WebOrigin>,
    /// How long a shutdown waits for requests to finish.
    pub shutdown_grace: Span,
}

/// How requests are forwarded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// How long connecting to the upstream may take.
    pub connect_timeout: Span,
    /// How long the upstream may take to begin its answer, and to go on with it.
    pub upstream_timeout: Span,
    /// Streams that one key may have open on this node at one time.
    pub max_streams_per_key: NonZeroUsize,
    /// How often the keys of open streams are looked up: a revoked one ends within this and a little more.
    pub stream_check: Span,
    /// The `Content-Security-Policy` that every upstream response gets, beside its own; empty for none.
    pub content_security_policy: String,
    /// Whether upstream responses get `X-Content-Type-Options: nosniff`.
    pub nosniff: bool,
}

/// How charges are committed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeterLimits {
    /// Charges waiting at most; more are refused as `overloaded`.
    pub queue: NonZeroUsize,
    /// Charges in one commit at most.
    pub batch: NonZeroUsize,
}

/// Charging over HTTP for other services.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BillingConfig {
    /// What those services send as `X-BDS-Internal-Billing-Secret`, 16 characters or more; without it the endpoints
    /// do not exist.
    pub internal_secret: Option<Secret>,
    /// The weight of a request for which neither the caller nor the catalogue names one.
    pub default_weight: WeightSetting,
    /// Templates that the catalogue does not have, per account; more usage is booked on `(other)`.
    pub templates_per_account: NonZeroUsize,
}

/// The terms that users accept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermsConfig {
    /// Where they stand; by default `/agents-tos/VERSION` of this service.
    pub url: Option<String>,
    /// Their version.
    pub version: String,
    /// Their text for that page, Markdown (`.md`) or plain; by default a short text of our own.
    pub file: Option<PathBuf>,
}

/// The built-in sample feed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SampleConfig {
    /// The time between two blocks.
    pub block_time: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8787".to_owned(),
            admin_listen: None,
            surfaces: Surface::ALL.into_iter().collect(),
            data: PathBuf::from(DEFAULT_DATA),
            database: None,
            upstream: None,
            catalogue: None,
            public_url: None,
            pages_url: None,
            primary_chain: None,
            log: LogConfig::default(),
            http: HttpConfig::default(),
            limits: LimitsConfig::default(),
            gateway: GatewayConfig::default(),
            mcp: McpConfig::default(),
            meter: MeterLimits::default(),
            billing: BillingConfig::default(),
            payments: PaymentsConfig::default(),
            signup: SignupConfig::default(),
            topup: TopupConfig::default(),
            recovery: RecoveryConfig::default(),
            terms: TermsConfig::default(),
            brand: BrandConfig::default(),
            sample: SampleConfig::default(),
            chains: BTreeMap::new(),
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::Text }
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            header_timeout: Span::seconds(15),
            body_timeout: Span::seconds(15),
            write_timeout: Span::seconds(30),
            max_body_bytes: 64 * 1024,
            max_header_bytes: 32 * 1024,
            max_connections: NonZeroUsize::new(10_000).expect("not zero"),
            max_connections_per_address: NonZeroUsize::new(1_000).expect("not zero"),
            trusted_proxies: TrustedProxies::default(),
            allowed_origins: List::default(),
            shutdown_grace: Span::seconds(20),
        }
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Span::seconds(5),
            upstream_timeout: Span::seconds(30),
            max_streams_per_key: NonZeroUsize::new(16).expect("not zero"),
            stream_check: Span::seconds(1),
            content_security_policy: "sandbox".to_owned(),
            nosniff: true,
        }
    }
}

impl Default for MeterLimits {
    fn default() -> Self {
        let metering_core::MeterConfig { queue, batch } = metering_core::MeterConfig::default();
        Self { queue, batch }
    }
}

impl Default for BillingConfig {
    fn default() -> Self {
        let settings = metering_core::BillingSettings::default();
        Self {
            internal_secret: None,
            default_weight: WeightSetting::of(settings.default_weight),
            templates_per_account: NonZeroUsize::new(settings.templates_per_account).expect("not zero"),
        }
    }
}

impl Default for TermsConfig {
    fn default() -> Self {
        Self { url: None, version: "1".to_owned(), file: None }
    }
}

impl Default for SampleConfig {
    fn default() -> Self {
        Self { block_time: Span::seconds(12) }
    }
}

impl Config {
    /// Whether this process serves a surface.
    #[must_use]
    pub fn serves(&self, surface: Surface) -> bool {
        self.surfaces.contains(&surface)
    }

    /// Other origins whose web pages may call the MCP server.
    pub(crate) fn mcp_origins(&self) -> impl Iterator<Item = &WebOrigin> {
        self.http.allowed_origins.iter().chain(self.mcp.allowed_origins.iter())
    }

    /// Whether this process is the MCP server and nothing else: it needs no database.
    #[must_use]
    pub fn is_mcp_alone(&self) -> bool {
        !self.serves(Surface::Metering) && !self.serves(Surface::Gateway)
    }

    /// The database's URL.
    #[must_use]
    pub fn database_url(&self) -> String {
        let default = || format!("sqlite:{}", self.data.join(FILE_IN_DATA).display());
        self.database.as_ref().map_or_else(default, |url| url.expose().to_owned())
    }
}
