//! The service that wallets sign in to.

use std::str::FromStr;

use url::{Origin, Url};

/// The service that wallets sign in to, with the address that clients use: scheme, host and port. Take it from the
/// configuration, never from the header `Host`, which the client chooses.
///
/// ```
/// use metering_pay::wire::x402::Site;
///
/// let site: Site = "https://api.example.com:8443/v1".parse()?;
/// assert_eq!(site.domain(), "api.example.com:8443");
/// # Ok::<(), metering_pay::wire::x402::SiteError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    origin: Origin,
    domain: String,
}

/// The text is not the URL of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a URL with http or https, such as https://api.example.com")]
pub struct SiteError;

impl Site {
    /// Host and port, without the port that is the scheme's default.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Whether this URL is at this service.
    pub(super) fn has(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| url.origin() == self.origin)
    }
}

impl FromStr for Site {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<Self, SiteError> {
        let url = Url::parse(text).map_err(|_| SiteError)?;
        let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")).ok_or(SiteError)?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self { origin: url.origin(), domain: format!("{host}{port}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_scheme_host_and_port() {
        let site: Site = "https://API.example.com:443/v1?a#b".parse().unwrap();
        assert_eq!(site.domain(), "api.example.com");
        for (url, at_site) in [
            ("https://api.example.com/other", true),
            ("https://api.example.com:443/", true),
            ("http://api.example.com/", false),
            ("https://api.example.com:8443/", false),
            ("https://api.example.com.evil.example/", false),
            ("https://api.example.com@evil.example/", false),
            ("/v1", false),
        ] {
            assert_eq!(site.has(url), at_site, "{url}");
        }
        assert_eq!("http://127.0.0.1:8080".parse::<Site>().unwrap().domain(), "127.0.0.1:8080");
        for text in ["", "api.example.com", "mailto:a@b", "ftp://a.example"] {
            assert_eq!(text.parse::<Site>(), Err(SiteError), "{text}");
        }
    }
}
