//! Checks the section `[authorize]`, against the keys that it depends on.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::ConfigError;
use crate::server::{AuthorizeConfig, Config, Surface};

impl AuthorizeConfig {
    const SETTLE_WITHIN: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);

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
