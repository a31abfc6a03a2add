//! A separate origin for the pages, which no upstream document can share.

use http::Request;
use http::header::HOST;
use http::uri::Authority;
use url::Url;

use crate::config::Config;

/// The separate origin of the pages, if one is configured.
#[derive(Debug)]
pub(crate) struct PagesOrigin {
    url: String,
    host: String,
    port: u16,
    /// The default port of the URL's scheme.
    implied_port: u16,
}

impl PagesOrigin {
    /// The origin that `pages_url` names; `None` without it.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let url = Url::parse(config.pages_url.as_deref()?).ok()?;
        let implied_port = if url.scheme() == "https" { 443 } else { 80 };
        Some(Self {
            url: url.as_str().trim_end_matches('/').to_owned(),
            host: url.host_str()?.to_owned(),
            port: url.port().unwrap_or(implied_port),
            implied_port,
        })
    }

    /// Whether a request names this origin's host. Browsers send the host of the document's URL, and pages cannot
    /// change it.
    pub(crate) fn is_named_by<B>(&self, request: &Request<B>) -> bool {
        let named = || request.headers().get(HOST)?.to_str().ok()?.parse::<Authority>().ok();
        request.uri().authority().cloned().or_else(named).is_some_and(|authority| {
            let port = authority.port_u16().unwrap_or(self.implied_port);
            authority.host().eq_ignore_ascii_case(&self.host) && port == self.port
        })
    }

    /// The URL of a page on this origin.
    pub(crate) fn url_of(&self, path_and_query: &str) -> String {
        format!("{}{path_and_query}", self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_origin_by_host_and_port() {
        // pages_url, Host, named
        let table = [
            ("https://account.example", "account.example", true),
            ("https://account.example", "Account.Example:443", true),
            ("https://account.example", "account.example:8443", false),
            ("https://account.example", "api.example", false),
            ("https://account.example", "account.example.evil.example", false),
            ("https://account.example", "", false),
            ("http://account.localhost:8787", "account.localhost:8787", true),
            ("http://account.localhost:8787", "account.localhost", false),
            ("http://[::1]:8787", "[::1]:8787", true),
        ];
        for (pages_url, host, named) in table {
            let config = Config { pages_url: Some(pages_url.to_owned()), ..Config::default() };
            let origin = PagesOrigin::new(&config).unwrap();
            let request = Request::get("/metering").header("host", host).body(()).unwrap();
            assert_eq!(origin.is_named_by(&request), named, "{pages_url} {host}");
        }
        assert!(PagesOrigin::new(&Config::default()).is_none());
    }
}
