//! Configuration of the endpoint that proxies ask before they forward a request.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::ConfigError;
use http::HeaderName;
use serde::{Deserialize, Serialize};

use crate::server::{Config, Span, Surface};

/// Charging for proxies that ask before they forward a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizeConfig {
    /// The header with the id that the proxy gives to a request; empty for none. A proxy that asks again with the same
    /// id is charged once, so the proxy must replace what clients send in it.
    pub request_id_header: String,
    /// Whether the price is held until the proxy says how the request ended (`POST /internal/billing/settle`). Routes
    /// that are priced by usage need it.
    pub settle: bool,
    /// How long the proxy may take to say so, 10s to 24h. After that, the request is charged.
    pub settle_within: Span,
    /// Whether requests are admitted, uncharged and without a key, if no route of the catalogue has their first path
    /// segment.
    pub pass_others: bool,
}

impl Default for AuthorizeConfig {
    fn default() -> Self {
        Self {
            request_id_header: "X-Request-Id".to_owned(),
            settle: false,
            settle_within: Span::seconds(300),
            pass_others: false,
        }
    }
}

impl AuthorizeConfig {
    const SETTLE_WITHIN: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);

    /// The name of the header with the proxy's id of a request.
    pub fn request_id_header(&self) -> Option<HeaderName> {
        self.request_id_header.parse().ok()
    }

    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        if !self.request_id_header.is_empty() && self.request_id_header().is_none() {
            return Err(ConfigError::key("authorize.request_id_header", "must be the name of a header, or empty"));
        }
        if !Self::SETTLE_WITHIN.contains(&self.settle_within.duration()) {
            return Err(ConfigError::key("authorize.settle_within", "must be 10s to 24h"));
        }
        if !config.serves(Surface::Authorize) {
            return Ok(());
        }
        if config.http.trusted_proxies.is_empty() {
            let problem = "is required with the surface authorize: list the addresses of the proxies that may ask";
            return Err(ConfigError::key("http.trusted_proxies", problem));
        }
        if self.settle && config.billing.internal_secret.is_none() {
            let problem = "is required with authorize.settle: the proxy sends it to /internal/billing/settle";
            return Err(ConfigError::key("billing.internal_secret", problem));
        }
        Ok(())
    }
}
