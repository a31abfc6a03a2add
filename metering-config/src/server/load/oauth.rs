//! Where the section `[oauth]` can take effect, against the keys that it depends on.

use metering_core::access::is_own_machine;
use url::Url;

use crate::ConfigError;
use crate::server::{Config, OAuthConfig, Surface};

impl OAuthConfig {
    /// Whether this process offers OAuth: with its pages, and where no one on the network can read along. A process
    /// that serves MCP alone sends clients to the service that its tools call.
    #[must_use]
    pub fn is_on(&self, config: &Config) -> bool {
        self.enabled.unwrap_or(true) && problem(config).is_none()
    }

    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        match problem(config) {
            Some(problem) if self.enabled == Some(true) => Err(ConfigError::key("oauth.enabled", problem)),
            _ => Ok(()),
        }
    }
}

/// Why this process cannot offer OAuth.
fn problem(config: &Config) -> Option<&'static str> {
    if !config.serves(Surface::Metering) && !config.is_mcp_alone() {
        return Some("needs the surface metering, whose pages ask for consent");
    }
    let Some(public) = &config.public_url else {
        let is_local = config.listen.rsplit_once(':').is_some_and(|(host, _)| is_own_machine(host));
        return (!is_local).then_some("needs public_url, the https URL under which clients reach this service");
    };
    let Ok(url) = Url::parse(public) else { return Some("needs a valid URL in public_url") };
    if url.path() != "/" {
        return Some("needs a public_url without a path: clients look for OAuth at the root of the host");
    }
    let is_safe = url.scheme() == "https" || url.host_str().is_some_and(is_own_machine);
    (!is_safe).then_some("needs a public_url that starts with https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_is_on_where_nobody_can_read_along() {
        // configuration, is on, can be switched on
        let table = [
            ("", true, true),
            ("listen = '[::1]:80'", true, true),
            ("listen = '0.0.0.0:80'", false, false),
            ("listen = '0.0.0.0:80'\npublic_url = 'https://api.example'", true, true),
            ("public_url = 'https://api.example/'", true, true),
            ("public_url = 'https://api.example/v1'", false, false),
            ("public_url = 'http://api.example'", false, false),
            ("public_url = 'http://localhost:8787'", true, true),
            ("surfaces = ['gateway']", false, false),
            ("surfaces = ['gateway', 'mcp']", false, false),
            ("surfaces = ['mcp']", true, true),
            ("surfaces = ['mcp']\npublic_url = 'https://mcp.example'", true, true),
            ("surfaces = ['mcp']\npublic_url = 'http://mcp.example'", false, false),
        ];
        for (toml, is_on, can_be_on) in table {
            let mut config: Config = toml::from_str(toml).unwrap();
            assert_eq!(config.oauth.is_on(&config), is_on, "{toml}");
            config.oauth.enabled = Some(true);
            assert_eq!(config.oauth.check(&config).is_ok(), can_be_on, "{toml}");
            config.oauth.enabled = Some(false);
            assert!(!config.oauth.is_on(&config) && config.oauth.check(&config).is_ok(), "{toml}");
        }
    }
}
