//! The server's configuration: its keys, their defaults and what they must be.

mod authorize;
mod brand;
mod certificate_files;
mod console;
mod difference;
mod docs;
mod gateway;
mod http;
mod limits;
mod list;
mod load;
mod log;
mod mcp;
mod oauth;
mod operator;
mod otlp;
mod pay;
mod payments;
mod proxies;
mod quota;
mod receipt_keys;
mod receipts;
mod retention;
mod secret;
mod secret_files;
mod section;
mod signup;
mod smtp;
mod span;
mod stripe;
mod text;
mod tls;
mod upstream_headers;
mod upstreams;
mod usage;
mod values;
mod web;
mod webhooks;
mod weight;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use metering_evm::ChainConfig;
use serde::{Deserialize, Serialize};

pub use crate::{ConfigError, DatabaseUrl};
use crate::{DEFAULT_DATA, FILE_IN_DATA};

pub use authorize::AuthorizeConfig;
pub use brand::{BrandConfig, BrandText, Colour, ColourError, Mark, MarkKind};
pub use certificate_files::CertificateFiles;
pub use console::{ConsoleConfig, OidcConfig, OidcOperator};
pub use docs::DocsConfig;
pub use gateway::{GatewayConfig, HeaderRules};
pub use http::HttpConfig;
pub use limits::LimitsConfig;
pub use list::List;
pub use load::needs_gateway;
pub use load::{Arguments, Loaded, load};
pub use log::{LogConfig, LogFormat, LogWitness, WitnessConfig};
pub use mcp::{McpConfig, Surface};
pub use oauth::OAuthConfig;
pub use operator::{OperatorConfig, PostalAddress};
pub use otlp::OtlpConfig;
pub use pay::{Amount, OfferConfig, PayConfig, Settle};
pub use payments::{CreditAmount, PaymentsConfig, RecoveryConfig, TopupConfig};
pub use proxies::{Network, NetworkError, TrustedProxies};
pub use quota::{Quota, QuotaError};
pub use receipt_keys::read_key_ring;
pub use receipts::{CurrencyConfig, RateFeed, ReceiptNumbering, ReceiptsConfig, TaxConfig};
pub use retention::RetentionConfig;
pub use secret::MASK;
pub use secret::Secret;
pub use signup::{BotCheckKind, SignupConfig, TurnstileConfig};
pub use smtp::{Sender, SenderError, SmtpConfig, SmtpTls};
pub use span::{Span, SpanError, SpanOrOff};
pub use stripe::{CardPlan, StripeConfig};
pub use tls::TlsConfig;
pub use upstream_headers::UpstreamHeaders;
pub use upstreams::{Http2, UpstreamConfig};
pub use usage::{UsageConfig, UsageSinkConfig};
pub use web::{HostName, HostNameError, WebOrigin, WebOriginError};
pub use webhooks::{EventName, WebhooksConfig};
pub use weight::{FactorSetting, MultiplierSetting, SettableFactor, WeightSetting};

/// The effective configuration. Every key has a default, and an unknown key is an error.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address to listen on.
    pub listen: String,
    /// A separate address for operators: the console, `/admin` and `/metrics`. Without it, `/metrics` is on `listen`.
    pub admin_listen: Option<String>,
    /// How many threads serve connections, at most 1024; by default one for each core that the process may use.
    pub workers: Option<NonZeroUsize>,
    /// The surfaces that this process serves.
    pub surfaces: List<Surface>,
    /// The folder of the default database.
    pub data: PathBuf,
    /// The database URL; by default `sqlite:DATA/metering.db`.
    pub database: Option<DatabaseUrl>,
    /// A file with the database URL, for one with a password; `database` takes precedence.
    pub database_file: Option<PathBuf>,
    /// The service behind the gateway, for routes that name no other; by default the sample feed.
    pub upstream: Option<String>,
    /// The catalogue of metered routes, a JSON file; by default the built-in one.
    pub catalogue: Option<PathBuf>,
    /// The URL under which clients reach this service; by default `http://`, or `https://` with a
    /// certificate, and the address it listens on.
    pub public_url: Option<String>,
    /// The URL of the browser pages, if their origin differs from that of `public_url`. The pages are then served only
    /// under that host name, and metered routes only under other host names.
    pub pages_url: Option<String>,
    /// The plan chain that is listed first; by default the one with the lowest id.
    pub primary_chain: Option<String>,
    /// The operators' console.
    pub console: ConsoleConfig,
    /// Logging, and the log of every posting.
    pub log: LogConfig,
    /// Traces; without it there are none.
    pub otlp: Option<OtlpConfig>,
    /// Timeouts and limits of HTTP connections.
    pub http: HttpConfig,
    /// The certificate of `listen`; without it, `listen` serves plain HTTP.
    pub tls: Option<TlsConfig>,
    /// Rate limits for requests without a key and for accounts, and the number of keys per account.
    pub limits: LimitsConfig,
    /// How requests are forwarded.
    pub gateway: GatewayConfig,
    /// Charging for proxies that ask before they forward a request.
    pub authorize: AuthorizeConfig,
    /// The MCP server: routes as tools for agents.
    pub mcp: McpConfig,
    /// Programs that get a key by their owner's consent.
    pub oauth: OAuthConfig,
    /// How charges are committed.
    pub meter: MeterLimits,
    /// Charging over HTTP for other services.
    pub billing: BillingConfig,
    /// Waiting for payments and watching chains.
    pub payments: PaymentsConfig,
    /// Signing up.
    pub signup: SignupConfig,
    /// The SMTP server that mail is sent through; without it no mail is sent.
    pub smtp: Option<SmtpConfig>,
    /// Webhooks: those of customers, and the operator's own.
    pub webhooks: WebhooksConfig,
    /// For how many days records of what people did are kept.
    pub retention: RetentionConfig,
    /// Where usage is sent to be analysed.
    pub usage: UsageConfig,
    /// Payable 402s: what agents can pay with their requests, and how that is settled.
    pub pay: PayConfig,
    /// Selling plans by card; without it no cards are accepted.
    pub stripe: Option<StripeConfig>,
    /// Topping up existing accounts.
    pub topup: TopupConfig,
    /// Key recovery by wallet.
    pub recovery: RecoveryConfig,
    /// The terms that users accept.
    pub terms: TermsConfig,
    /// Name, texts, mark and accent colour of the browser pages.
    pub brand: BrandConfig,
    /// The operator's own pages next to the guides.
    pub docs: DocsConfig,
    /// Who operates the service: the seller named on receipts.
    pub operator: OperatorConfig,
    /// What receipts of payments say, and which requests get signed ones.
    pub receipts: ReceiptsConfig,
    /// The built-in sample feed.
    pub sample: SampleConfig,
    /// The chains that plans are paid on, by short name.
    pub chains: BTreeMap<String, ChainConfig>,
}

/// How charges are committed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeterLimits {
    /// Maximum length of the charge queue; further charges are refused as `overloaded`.
    pub queue: NonZeroUsize,
    /// Maximum number of charges in one commit.
    pub batch: NonZeroUsize,
}

/// Charging over HTTP for other services.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BillingConfig {
    /// The secret those services send as `X-BDS-Internal-Billing-Secret`, at least 16 characters. Without it the
    /// endpoints do not exist.
    pub internal_secret: Option<Secret>,
    /// A file with that secret, instead of `internal_secret`.
    pub internal_secret_file: Option<PathBuf>,
    /// The secret that a checkout sends in the same header to report payments, at least 16 characters. Whoever has it can
    /// credit accounts. Without it `/internal/payments` does not exist.
    pub payments_secret: Option<Secret>,
    /// A file with that secret, instead of `payments_secret`.
    pub payments_secret_file: Option<PathBuf>,
    /// The weight of a request when neither the caller nor the catalogue gives one.
    pub default_weight: WeightSetting,
    /// The largest weight that a caller may send; a larger one is cut to it. At most 1000.
    pub max_weight: WeightSetting,
    /// The largest multiplier that a caller may send; a larger one is cut to it. At most 4096.
    pub max_multiplier: MultiplierSetting,
    /// Maximum number of route templates per account that are not in the catalogue; usage of further ones is recorded
    /// as `(other)`.
    pub templates_per_account: NonZeroUsize,
}

/// The terms that users accept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermsConfig {
    /// Their URL; by default `/agents-tos/VERSION` of this service.
    pub url: Option<String>,
    /// Their version.
    pub version: String,
    /// The file with their text, Markdown (`.md`) or plain; by default a short built-in text.
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
            workers: None,
            surfaces: Surface::DEFAULT.into_iter().collect(),
            data: PathBuf::from(DEFAULT_DATA),
            database: None,
            database_file: None,
            upstream: None,
            catalogue: None,
            public_url: None,
            pages_url: None,
            primary_chain: None,
            console: ConsoleConfig::default(),
            log: LogConfig::default(),
            otlp: None,
            http: HttpConfig::default(),
            tls: None,
            limits: LimitsConfig::default(),
            gateway: GatewayConfig::default(),
            authorize: AuthorizeConfig::default(),
            mcp: McpConfig::default(),
            oauth: OAuthConfig::default(),
            meter: MeterLimits::default(),
            billing: BillingConfig::default(),
            payments: PaymentsConfig::default(),
            signup: SignupConfig::default(),
            smtp: None,
            webhooks: WebhooksConfig::default(),
            retention: RetentionConfig::default(),
            usage: UsageConfig::default(),
            pay: PayConfig::default(),
            stripe: None,
            topup: TopupConfig::default(),
            recovery: RecoveryConfig::default(),
            terms: TermsConfig::default(),
            brand: BrandConfig::default(),
            docs: DocsConfig::default(),
            operator: OperatorConfig::default(),
            receipts: ReceiptsConfig::default(),
            sample: SampleConfig::default(),
            chains: BTreeMap::new(),
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
        let settings = metering_core::service::BillingSettings::default();
        Self {
            internal_secret: None,
            internal_secret_file: None,
            payments_secret: None,
            payments_secret_file: None,
            default_weight: WeightSetting::of(settings.default_weight),
            max_weight: WeightSetting::of(settings.max_weight),
            max_multiplier: MultiplierSetting::of(settings.max_multiplier),
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

    /// How many threads serve connections.
    #[must_use]
    pub fn worker_count(&self) -> NonZeroUsize {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.workers.unwrap_or_else(cores)
    }

    /// The scheme of URLs at `listen`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Whether new accounts must verify their email address.
    #[must_use]
    pub fn verifies_email(&self) -> bool {
        self.signup.verify_email.unwrap_or(self.smtp.is_some())
    }

    /// Origins whose pages may call the service: those that the operator listed, and that of our own pages, from which
    /// customers try the metered routes.
    pub fn web_origins(&self) -> impl Iterator<Item = WebOrigin> {
        let pages = self.pages_url.as_deref().and_then(|url| url.parse().ok());
        self.http.allowed_origins.iter().cloned().chain(pages)
    }

    /// Other origins whose web pages may call the MCP server.
    pub fn mcp_origins(&self) -> impl Iterator<Item = &WebOrigin> {
        self.http.allowed_origins.iter().chain(self.mcp.allowed_origins.iter())
    }

    /// Whether this process serves only MCP. It then needs no database.
    #[must_use]
    pub fn is_mcp_alone(&self) -> bool {
        self.surfaces.iter().all(|surface| *surface == Surface::Mcp)
    }

    /// The database URL.
    #[must_use]
    pub fn database_url(&self) -> String {
        let default = || format!("sqlite:{}", self.data.join(FILE_IN_DATA).display());
        self.database.as_ref().map_or_else(default, |url| url.expose().to_owned())
    }
}
