//! The server's configuration: its keys, their defaults and their constraints.

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
mod log_keys;
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

use metering_core::MeterConfig;
use metering_core::service::BillingSettings;
use metering_evm::ChainConfig;

use section::section;

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
pub use log_keys::LogKeys;
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

section! {
    /// The effective configuration. Every key has a default, and an unknown key is an error.
    pub struct Config;

    /// The address to listen on.
    listen: String = "127.0.0.1:8787".to_owned(),
    /// A separate address for operators: the console, `/admin` and `/metrics`. Without it, `/metrics` is on `listen`.
    admin_listen: Option<String>,
    /// How many threads serve connections, at most 1024; by default one for each core that the process may use.
    workers: Option<NonZeroUsize>,
    /// The surfaces that this process serves.
    surfaces: List<Surface> = Surface::DEFAULT.into_iter().collect(),
    /// The folder of the default database.
    data: PathBuf = PathBuf::from(DEFAULT_DATA),
    /// The database URL; by default `sqlite:DATA/metering.db`.
    database: Option<DatabaseUrl>,
    /// A file with the database URL, for a URL with a password; `database` takes precedence.
    database_file: Option<PathBuf>,
    /// The service behind the gateway, for routes that name no other; by default the sample feed.
    upstream: Option<String>,
    /// The catalogue of metered routes, a JSON file; by default the built-in one.
    catalogue: Option<PathBuf>,
    /// The URL under which clients reach this service; by default `http://`, or `https://` with a
    /// certificate, and the address it listens on.
    public_url: Option<String>,
    /// The URL of the browser pages, if their origin differs from that of `public_url`. The pages are then served only
    /// under that host name, and metered routes only under other host names.
    pages_url: Option<String>,
    /// The plan chain that is listed first; by default the one with the lowest id.
    primary_chain: Option<String>,
    /// The operators' console.
    console: ConsoleConfig,
    /// Logging, and the log of every posting.
    log: LogConfig,
    /// Traces; without it there are none.
    otlp: Option<OtlpConfig>,
    /// Timeouts and limits of HTTP connections.
    http: HttpConfig,
    /// The certificate of `listen`; without it, `listen` serves plain HTTP.
    tls: Option<TlsConfig>,
    /// Rate limits for requests without a key and for accounts, and the number of keys per account.
    limits: LimitsConfig,
    /// How requests are forwarded.
    gateway: GatewayConfig,
    /// Charging for proxies that ask before they forward a request.
    authorize: AuthorizeConfig,
    /// The MCP server: routes as tools for agents.
    mcp: McpConfig,
    /// Programs that get a key with their owner's consent (OAuth).
    oauth: OAuthConfig,
    /// How charges are committed.
    meter: MeterLimits,
    /// Charging over HTTP for other services.
    billing: BillingConfig,
    /// Waiting for payments and watching chains.
    payments: PaymentsConfig,
    /// Signing up.
    signup: SignupConfig,
    /// The SMTP server that mail is sent through; without it no mail is sent.
    smtp: Option<SmtpConfig>,
    /// Webhooks: those of customers, and the operator's own.
    webhooks: WebhooksConfig,
    /// How many days to keep records of activity.
    retention: RetentionConfig,
    /// Usage sinks.
    usage: UsageConfig,
    /// Payable 402s: payments that agents send with their requests, and how they are settled.
    pay: PayConfig,
    /// Selling plans by card; without it no cards are accepted.
    stripe: Option<StripeConfig>,
    /// Topping up existing accounts.
    topup: TopupConfig,
    /// Key recovery by wallet.
    recovery: RecoveryConfig,
    /// The terms that users accept.
    terms: TermsConfig,
    /// Name, texts, mark and accent colour of the browser pages.
    brand: BrandConfig,
    /// The pages at `/docs`: the operator's own guides.
    docs: DocsConfig,
    /// Who operates the service: the seller named on receipts.
    operator: OperatorConfig,
    /// Receipts of payments, and signed receipts of requests.
    receipts: ReceiptsConfig,
    /// The built-in sample feed.
    sample: SampleConfig,
    /// The chains that plans are paid on, by short name.
    chains: BTreeMap<String, ChainConfig>,
}

section! {
    /// How charges are committed.
    pub struct MeterLimits;

    /// Maximum length of the charge queue; further charges are refused as `overloaded`.
    queue: NonZeroUsize = MeterConfig::default().queue,
    /// Maximum number of charges in one commit.
    batch: NonZeroUsize = MeterConfig::default().batch,
}

section! {
    /// Charging over HTTP for other services.
    pub struct BillingConfig;

    /// The secret those services send as `X-BDS-Internal-Billing-Secret`, at least 16 characters. Without it the
    /// endpoints do not exist.
    internal_secret: Option<Secret>,
    /// A file with that secret, instead of `internal_secret`.
    internal_secret_file: Option<PathBuf>,
    /// The secret that a checkout sends in the same header to report payments, at least 16 characters. Whoever has it can
    /// credit accounts. Without it `/internal/payments` does not exist.
    payments_secret: Option<Secret>,
    /// A file with that secret, instead of `payments_secret`.
    payments_secret_file: Option<PathBuf>,
    /// The weight of a request when neither the caller nor the catalogue gives one.
    default_weight: WeightSetting = WeightSetting::of(BillingSettings::default().default_weight),
    /// The largest weight that a caller may send; a larger one is cut to it. At most 1000.
    max_weight: WeightSetting = WeightSetting::of(BillingSettings::default().max_weight),
    /// The largest multiplier that a caller may send; a larger one is cut to it. At most 4096.
    max_multiplier: MultiplierSetting = MultiplierSetting::of(BillingSettings::default().max_multiplier),
    /// Maximum number of route templates per account that are not in the catalogue; usage of further ones is recorded
    /// as `(other)`.
    templates_per_account: NonZeroUsize =
        NonZeroUsize::new(BillingSettings::default().templates_per_account).expect("not zero"),
}

section! {
    /// The terms that users accept.
    pub struct TermsConfig;

    /// Their URL; by default `/agents-tos/VERSION` of this service.
    url: Option<String>,
    /// Their version.
    version: String = "1".to_owned(),
    /// The file with their text, Markdown (`.md`) or plain; by default a short built-in text.
    file: Option<PathBuf>,
}

section! {
    /// The built-in sample feed.
    pub struct SampleConfig;

    /// The time between two blocks.
    block_time: Span = Span::seconds(12),
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

    /// Origins whose pages may call the service: those that the operator listed, and the origin of our own pages, where
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
